// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The error code, message, hint and exit status of each failure that a test can cause.
@Suite(.serialized)
struct ContractBadInputTests {
  /// Command lines with bad arguments or files.
  ///
  /// The frames of the cameras are small, so that a slow disk causes no warning.
  private static let lines = [
    "slowdown", "info", "info mjpeg.mov --fast", "info missing.mov", "info folder",
    "info text.mov", "info empty.mov", "info cut.mov",
    "devices mjpeg.mov", "modes", "modes nosuch", "modes /dev/null", "modes synthetic:1x1",
    "modes synthetic?speed=1", "modes synthetic?drop=200%", "modes synthetic?seed=x",
    "modes synthetic?counter=", "modes file:missing.mov", "modes file:text.mov",
    "modes file:mjpeg.mov?pace=slow", "modes synthetic --min-fps fast", "modes synthetic --size 1",
    "modes synthetic --probe 0",
    "controls synthetic gain=1", "controls synthetic gain", "controls /dev/video99",
    "record nosuch -o out.mov -t 1", "record /dev/video99 -o out.mov -t 1",
    "record /dev/null -o out.mov -t 1", "record file:missing.mov -o out.mov -t 1",
    "record synthetic", "record synthetic:128x96@60 -o text.mov -t 1",
    "record synthetic:128x96@60 -o nowhere/out.mov -t 1",
    "record synthetic:128x96@60 -o out.mov -t 0", "record synthetic:128x96@60 -o out.mov -t soon",
    "record synthetic:128x96@60 -o out.mov --frames 0",
    "record synthetic:128x96@60 -o out.mov --max-drops=-1",
    "record synthetic -o out.mov --mode 1x1", "record synthetic -o out.mov --mode fast",
    "record synthetic -o out.mov --mode 640x480 --fastest",
    "record synthetic:128x96@60 -o out.mov --codec vp9",
    "record synthetic:128x96@60 -o out.mov --audio-codec mp3",
    "record synthetic:128x96@60 -o out.mov --audio hw:31,7",
    "record synthetic:128x96@60 -o out.mov --audio synthetic",
    "record synthetic:128x96@60 -o out.mov --max-size 0",
    "record synthetic:128x96@60 -o out.mov --min-free much",
    "record synthetic:128x96@60 -o out.mov --min-free 9000TB -t 1",
    "record synthetic:128x96@60 -o out.mov --post 1",
    "record synthetic:128x96@60 -o out.mov --trigger bell",
    "record synthetic:128x96@60 -o out.mov --trigger udp:x",
    "record synthetic:128x96@60 -o out.mov --trigger udp:192.0.2.1:9 -t 1",
    "record synthetic:128x96@60 -o out.mov --trigger audio:loud",
    "record synthetic:128x96@60 -o out.mov --trigger motion:200%",
    "record synthetic:128x96@60 -o out.mov --trigger key --frames 3",
    "record synthetic:128x96@60 -o out.mov --trigger key --burst",
    "record synthetic:128x96@60 -o out.mov --quiet-period 1",
    "record synthetic:128x96@60 -o out.mov --trigger key --repeat",
    "record synthetic:128x96@60 -o out{x}.mov --trigger key --repeat",
    "record synthetic:128x96@60 -o out{n}.mov --trigger key --repeat --frames-csv a.csv",
    "record synthetic:128x96@60 -o out.mov --report out.mov",
    "record synthetic:128x96@60 -o out.mov --report text.mov",
    "record synthetic:128x96@60 -o out.mov --trigger signal -t 0.1 --audio none --progress none",
    "record file:mjpeg.mov --mode 640x480 -o out.mov",
    "record file:mjpeg.mov --codec raw -o out.mov",
    "record synthetic:128x96@60/yuyv --codec copy -o out.mov",
    "retime mjpeg.mov -o out.mov --speed 1/8", "retime mjpeg.mov -o out.mov --copy",
    "retime mjpeg.mov -o out.mov --copy --fps 30 --speed 1/8",
    "retime mjpeg.mov -o out.mov --copy --speed 0", "retime mjpeg.mov -o out.mov --copy --speed -0",
    "retime mjpeg.mov -o out.mov --copy --preset impact --at 0.1 --speed -1",
    "retime mjpeg.mov -o out.mov --copy --speed slow",
    "retime mjpeg.mov -o out.mov --copy --speed 1/8 --crf 18",
    "retime mjpeg.mov -o out.mov --copy --speed 1/8 --sampling blend",
    "retime mjpeg.mov -o out.mov --copy --speed 1/8 --shutter 180",
    "retime mjpeg.mov -o out.mov --fps 30 --speed 1/8 --shutter 180 --sampling nearest",
    "retime mjpeg.mov -o out.mov --fps 30 --speed 1/8 --shutter 180 --sampling hold",
    "retime mjpeg.mov -o out.mov --fps 30 --speed 1/8 --shutter 361",
    "retime mjpeg.mov -o out.mov --fps 30 --speed 1/8 --crf 99",
    "retime mjpeg.mov -o out.mov --fps 0 --speed 1/8",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --max-size 8mb",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --max-size 0",
    "retime mjpeg.mov -o out.mp4 --copy --speed 1/8 --max-size 8MB",
    "retime mjpeg.mov -o out.mp4 --copy --speed 1/8 --deflicker",
    "retime mjpeg.mov -o out.gif --copy --speed 1/8",
    "retime mjpeg.mov -o out.gif --fps 60 --speed 1/8",
    "retime mjpeg.mov -o out.webp --fps 100 --speed 1/8",
    "retime mjpeg.mov -o out.webp --fps 30 --speed 1/8 --codec mjpeg",
    "retime mjpeg.mov -o out.gif --fps 30 --speed 1/8 --crf 20",
    "retime mjpeg.mov -o out.gif --fps 30 --speed 1/8 --shard 1/2",
    "retime mjpeg.mov -o out.mp4 --copy --speed 1/8 --burn-in time",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --burn-in time,clock",
    "compare mjpeg.mov mjpeg.mov -o out.mp4 --fps 30 --burn-in mark=0.1",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --burn-in mark=@missing",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --burn-in mark",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --burn-in logo=missing.png",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --burn-in font=monospace",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --burn-in time,font=",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --burn-in time,font=a/b",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --max-size 8MB --codec mjpeg",
    "retime mjpeg.mov -o out.mp4 --fps 30 --speed 1/8 --max-size 8MB --shard 1/2",
    "retime mjpeg.mov -o out.mov --fps 30 --speed 1/8 --box huge",
    "retime mjpeg.mov -o out.mov --fps 30 --speed 1/8 --encoder-preset lazy",
    "retime mjpeg.mov -o out.mov --fps 30 --speed 1/8 --profile none",
    "retime mjpeg.mov -o out.mov --copy --range 5..6 --speed 1/8",
    "retime mjpeg.mov -o out.mov --copy --range 0.1..5 --speed 1/8",
    "retime mjpeg.mov -o out.mov --copy --range 0.1..0.05 --speed 1/8",
    "retime mjpeg.mov -o out.mov --copy --range 0.1..0.1 --speed 1/8",
    "retime mjpeg.mov -o out.mov --copy --range 0..0.1 --range 0.05..0.15 --speed 1/8 --speed 1/2",
    "retime mjpeg.mov -o out.mov --copy --range 0..0.1 --range 0.1..0.15 --speed 1/8",
    "retime mjpeg.mov -o out.mov --copy --range 0..99f --speed 1/8",
    "retime mjpeg.mov -o out.mov --copy --ramp ''", "retime mjpeg.mov -o out.mov --copy --ramp 0.1",
    "retime mjpeg.mov -o out.mov --copy --ramp '0.1=1 0.05=1/8'",
    "retime mjpeg.mov -o out.mov --copy --ramp '9=1 10=1/8'",
    "retime mjpeg.mov -o out.mov --copy --preset impact",
    "retime mjpeg.mov -o out.mov --copy --preset boom --at 0.1",
    "retime mjpeg.mov -o out.mov --copy --preset freeze --at 9",
    "retime mjpeg.mov -o out.mov --copy --sidecar missing.aae",
    "retime mjpeg.mov -o out.mov --copy --sidecar text.mov",
    "retime mjpeg.mov -o out.mov --copy --playback-fps 0",
    "retime mjpeg.mov -o out.mkv --copy --speed 1/8",
    "retime mjpeg.mov -o text.mov --copy --speed 1/8",
    "retime mjpeg.mov -o nowhere/out.mov --copy --speed 1/8",
    "retime mjpeg.mov -o text.otio --speed 1/8",
    "retime mjpeg.mov -o out.mov --copy --speed 1/8 --pitch low-quality",
    "retime mjpeg.mov -o out.mov --copy --speed 1/100000000000 --pitch spectral",
    "retime h264.mov -o out.mov --copy --range 0.1..0.2 --speed 1/8 --boundary never",
    "retime text.mov -o out.mov --copy --speed 1/8",
    "retime missing.mov -o out.mov --copy --speed 1",
    "edit missing.otio -o out.mov --copy", "edit text.mov -o out.mov --copy",
    "edit nothing.otio -o out.mov --copy", "edit lost.otio -o out.mov --copy",
    "edit nothing.otio -o out.mov",
    "edit inside.otio -o out.mov --copy --boundary keyframe", "edit mixed.otio -o out.mov --copy",
    "frames mjpeg.mov", "frames mjpeg.mov --at 960f -o out.png",
    "frames mjpeg.mov --at 9 -o out.png",
    "frames mjpeg.mov --at then -o out.png", "frames mjpeg.mov --range 0..0.1 -o out.png",
    "frames mjpeg.mov --range 0..9 -o '{index}.png'",
    "frames mjpeg.mov --range 0..0.1 --at 0 -o '{index}.png'",
    "frames mjpeg.mov --at 0 -o '{size}.png'", "frames mjpeg.mov --at 0 -o nowhere/a.png",
    "frames mjpeg.mov --at 0 -o text.mov", "frames mjpeg.mov --csv text.mov",
    "frames mjpeg.mov --csv /dev/full --overwrite", "frames missing.mov --csv a.csv",
    "recover missing.mov", "recover text.mov", "recover folder",
    "bench", "bench capture nosuch", "bench capture synthetic -t 0",
    "bench capture synthetic -t 0.1 --folder nowhere", "bench diff old.json",
    "bench writer --folder nowhere", "bench writer --runs 0", "bench writer --baseline mpv",
    "bench retime missing.mov", "bench retime mjpeg.mov -t 1", "bench retime text.mov",
    "bench pitch mjpeg.mov --mode 128x96", "bench pitch --pitch mute",
    "bench diff missing.json missing.json", "bench diff text.mov text.mov",
    "bench diff bench.json bench.json --fail-on much",
    "bench diff bench.json bench.json --fail-on 'speed>0'",
    "bench diff bench.json bench.json --fail-on 'drops>=0'",
  ]
  /// Fake cameras that fail, with the arguments for each.
  private static let cameraLines = [
    ("hfr-usb busy=1", "record /dev/fakevideo0 -o out.mov --mode 640x360@120/mjpg"),
    ("hfr-usb nobandwidth=1", "record /dev/fakevideo0 -o out.mov --mode 640x360@120/mjpg"),
    ("hfr-usb fail=STREAMON:EIO", "record /dev/fakevideo0 -o out.mov --mode 640x360@120/mjpg"),
    ("hfr-usb", "controls /dev/fakevideo0 gain=256"),
    ("hfr-usb", "controls /dev/fakevideo0 gian=1"),
    ("hfr-usb", "controls /dev/fakevideo0 gain=much"),
    ("hfr-usb", "controls /dev/fakevideo0 exposure_time_absolute=4ms"),
    ("hfr-usb", "controls /dev/fakevideo0 privacy=1"),
    ("hfr-usb start=100000", "record /dev/fakevideo0 -o out.mov --mode 640x360@120/mjpg"),
    ("hfr-usb fail=REQBUFS:ENOMEM", "record /dev/fakevideo0 -o out.mov --mode 640x360@120/mjpg"),
    ("hfr-usb fail=QUERYCAP:EACCES", "record /dev/fakevideo0 -o out.mov --mode 640x360@120/mjpg"),
    ("hfr-usb fail=DQBUF:EIO@1", "record /dev/fakevideo0 -o out.mov --mode 640x360@120/mjpg"),
    ("hdmi-card", "modes '/dev/fakevideo0?input=2&timings=query'"),
    ("hdmi-card", "modes '/dev/fakevideo0?input=7'"),
    ("hdmi-card", "modes '/dev/fakevideo0?timings=index=99'"),
    ("output", "modes /dev/fakevideo0"), ("m2m", "record /dev/fakevideo0 -o out.mov"),
  ]
  private static let (arguments, cameras) = ("errors/arguments.txt", "errors/cameras.txt")
  private static let (signals, root) = ("errors/signals.txt", "errors/root.txt")
  private static let recorded = "errors/being-recorded.txt"

  /// Input files, each of which causes a different error.
  private static let inputs = ["nothing.otio", "lost.otio", "inside.otio", "mixed.otio"]

  static let fixtures =
    [arguments, cameras, signals, recorded, root] + inputs.map { "inputs/\($0)" }

  @Test func `Error messages about bad arguments match their fixtures`() async throws {
    let scratch = try await prepared()
    let before = try scratch.names()
    var transcript = Transcript(in: scratch)
    for line in Self.lines {
      try await transcript.slowmo("\(line) --json")
      #expect(try scratch.names() == before, "\(line) left something behind")
    }
    // Without `--json`, a usage error and another error are printed as text.
    try await transcript.slowmo("info mjpeg.mov --fast")
    try await transcript.slowmo("info missing.mov")
    try ContractFixtures.check(transcript.text, is: Self.arguments)
  }

  @Test func `Error messages about faulty cameras match their fixtures`() async throws {
    var transcript = Transcript(in: try Scratch())
    for (cameras, line) in Self.cameraLines {
      transcript.cameras = cameras
      try await transcript.slowmo("\(line) --json")
    }
    try ContractFixtures.check(transcript.text, is: Self.cameras)
  }

  @Test func `The error message of an interrupted export matches a fixture`() async throws {
    var transcript = Transcript(in: try await prepared())
    for signal in ["INT", "TERM"] {
      // The video lasts half an hour, so the signal comes long before the export ends.
      let script = """
        "$1" retime mjpeg.mov -o slow.mp4 --speed 1/10000 --fps 60 --pitch mute --json \
        --progress none &
        export=$!
        # Once it writes, it has read the index of the source.
        until [ "$(find . -name '.*.part.*' -size +0)" ] || ! kill -0 $export; do sleep 0.05; done
        kill -\(signal) $export
        wait $export
        """
      try await transcript.script(script, as: "slowmo retime … interrupted by SIG\(signal)")
    }
    try ContractFixtures.check(transcript.text, is: Self.signals)
  }

  @Test func `The command recover rejects a take that is being recorded`() async throws {
    var transcript = Transcript(in: try Scratch())
    try await transcript.script(
      """
      "$1" record synthetic:128x96@60 -o take.mov --progress none >/dev/null &
      take=$!
      until [ "$(stat -c %s take.mov 2>/dev/null || echo 0)" -gt 20000 ] || ! kill -0 $take
      do sleep 0.05; done
      "$1" recover take.mov --json
      status=$?
      kill -INT $take
      wait $take
      exit $status
      """, as: "slowmo recover take.mov --json, while it is recorded")
    try ContractFixtures.check(transcript.text, is: Self.recorded)
  }

  @Test(.enabled(if: getuid() == 0, "only root can mount, and become another user"))
  func `Errors about full disks and permissions match their fixtures`() async throws {
    let scratch = try await prepared(in: "/var/tmp")
    var transcript = Transcript(in: scratch)
    // All users may run this copy, since the checkout may be unreadable for some users.
    try FileManager.default.copyItem(
      atPath: URL(fileURLWithPath: slowmoPath).resolvingSymlinksInPath().path,
      toPath: scratch.file("slowmo"))
    try await transcript.script(
      """
      chmod 600 mjpeg.mov nothing.otio
      nobody="setpriv --reuid=65534 --regid=65534 --clear-groups ./slowmo"
      $nobody info mjpeg.mov --json || echo "= $?"
      $nobody edit nothing.otio -o out.mov --copy --json || echo "= $?"
      $nobody retime h264.mov -o out.mov --speed 1/8 --copy --json || echo "= $?"
      """, as: "slowmo, by a user who may neither read nor write")
    transcript.mask = .liveWithOrWithoutGaps
    let mounting = "mount -t tmpfs -o size=300k tmpfs disk"
    try await transcript.script(
      """
      mkdir disk
      unshare -m sh -c '\(mounting) && "$0" record synthetic:128x96@60/yuyv -o disk/a.mov \
        --frames 60 --codec raw --audio none --progress none --json' "$1"
      """, as: "slowmo record … on a disk that becomes full")
    transcript.mask = .machine
    try await transcript.script(
      """
      unshare -m sh -c '\(mounting) && "$0" retime mjpeg.mov -o disk/a.mov --fps 60 \
        --speed 1/100 --codec ffv1 --pitch mute --progress none --json' "$1"
      """, as: "slowmo retime … on a disk that becomes full")
    try ContractFixtures.check(transcript.text, is: Self.root)
  }

  /// Makes a directory with valid and invalid files.
  private func prepared(in parent: String? = nil) async throws -> Scratch {
    let scratch = try Scratch(in: parent)
    try await ContractTakes.unpack("mjpeg", into: scratch)
    try await ContractTakes.unpack("h264", into: scratch)
    try FileManager.default.createDirectory(
      atPath: scratch.file("folder"), withIntermediateDirectories: false)
    let whole = try bytes(of: scratch.file("mjpeg.mov"))
    for (name, content) in [
      ("text.mov", Array("This is no movie.\n".utf8)), ("empty.mov", []),
      ("text.otio", Array("This is no project.\n".utf8)),
      ("cut.mov", Array(whole.prefix(whole.count / 2))),
    ] { _ = try scratch.write(content, as: name) }
    for name in Self.inputs + ["bench.json"] {
      try FileManager.default.copyItem(
        atPath: ContractFixtures.path("inputs/\(name)"), toPath: scratch.file(name))
    }
    return scratch
  }
}
