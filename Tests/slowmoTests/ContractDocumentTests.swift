// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The JSON documents of all commands except `record`, which has separate tests.
@Suite(.serialized)
struct ContractDocumentTests {
  /// Documents that depend only on files: a name, the takes, and the command lines.
  private static let ofFiles: [(name: String, takes: [String], lines: [String])] = [
    ("info", ["foreign"], ["info foreign.mov --json", "info foreign.mov"]),
    (
      "frames", ["mjpeg"],
      [
        "frames mjpeg.mov --at 0.1 --at 3f -o '{name}-{index:03}-{us}-{ms}.png' --csv a.csv --json",
        "frames mjpeg.mov --range 0.05..0.1 -o 'r{index}.png' --json",
        "frames mjpeg.mov --csv b.csv --json", "frames mjpeg.mov --csv c.csv --dry-run --json",
        "frames mjpeg.mov --at -0.1s -o e.png --dry-run --json",
      ]
    ),
    (
      "recover", ["mjpeg", "killed-drops"],
      [
        "recover mjpeg.mov --json", "recover killed-drops.mov --json",
        "recover killed-drops.mov --json",
      ]
    ),
    (
      "retime", ["mjpeg", "h264", "drops"],
      [
        "retime mjpeg.mov -o a.mov --speed 1/8 --copy --pitch mute --json",
        "retime mjpeg.mov -o b.mov --range 0.05..0.1 --speed 1/8 --copy --json",
        "retime mjpeg.mov -o c.mov --speed 1/2 --copy --pitch time-domain --json",
        "retime mjpeg.mov -o d.mov --speed 1/2 --copy --pitch varispeed --json",
        "retime mjpeg.mov -o e.mov --speed 1/2 --copy --pitch low-quality --json",
        "retime mjpeg.mov -o f.mov --speed 1/3 --copy --dry-run --json",
        "retime h264.mov -o g.mov --ramp '0.1=1 0.2=1/8 0.4=1' --easing eased --copy --json",
        "retime h264.mov -o h.mov --preset freeze --at 0.3 --copy --json",
        "retime drops.mov -o i.mov --playback-fps 30 --copy --json",
        "retime drops.mov -o j.mov --speed 1/8 --fps 30 --codec ffv1 --json",
        "retime drops.mov -o k.mov --speed 4 --fps 30 --sampling blend --codec mjpeg --json",
        "retime drops.mov -o n.mov --speed 4 --fps 30 --shutter 90 --codec mjpeg --json",
        "retime mjpeg.mov -o l.mp4 --speed 1/2 --fps 60 --box 64x64 --crf 30 --pitch mute --json",
        "retime mjpeg.mov -o m.mp4 --speed 1/2 --fps 24 --sampling nearest --dry-run --json",
      ]
    ),
    (
      "edit", ["mjpeg", "h264"],
      [
        "edit inside.otio -o a.mov --copy --boundary squeeze --json",
        "edit inside.otio -o b.mov --copy --boundary render --json",
        "edit inside.otio -o c.mov --copy --boundary render --dry-run --json",
        "edit inside.otio -o d.mov --copy --dry-run --json",
        "edit mixed.otio -o e.mp4 --fps 30 --codec mjpeg --json",
        "edit mixed.otio -o f.otio --json", "edit mixed.otio -o g.otio --dry-run --json",
      ]
    ),
    (
      "bench-diff", [],
      [
        "bench diff bench.json bench-newer.json --json",
        "bench diff bench.json bench-newer.json --fail-on 'drops>0' --fail-on 'frames<1' --json",
      ]
    ),
    (
      "modes-file", ["mjpeg", "h264", "ffv1"],
      [
        "modes file:mjpeg.mov --json", "modes file:h264.mov?pace=max --json",
        "modes file:ffv1.mov --json",
      ]
    ),
    (
      "modes-synthetic", [],
      [
        "modes synthetic", "modes synthetic --min-fps 240 --json",
        "modes synthetic --min-fps 120 --size 640x480 --json",
        "modes synthetic:128x96@1000/grey --json", "modes synthetic --fourcc none --json",
        "controls synthetic --json",
      ]
    ),
  ]
  /// Documents that depend on fake cameras: a name, the cameras, and the command lines.
  private static let ofCameras: [(name: String, cameras: String, lines: [String])] = [
    ("modes-webcam", "uvc-webcam", ["modes /dev/fakevideo0 --json"]),
    (
      "modes-hdmi", "hdmi-card",
      [
        "modes /dev/fakevideo0 --json", "modes '/dev/fakevideo0?input=1' --json",
      ]
    ),
    ("modes-tv", "tv-card", ["modes /dev/fakevideo0 --json"]),
    (
      "modes-stepwise", "stepwise-sensor",
      [
        "modes /dev/fakevideo0", "modes /dev/fakevideo0 --size 320x240 --json",
      ]
    ),
    ("modes-odd", "odd-rates", ["modes /dev/fakevideo0 --json"]),
    ("controls-webcam", "uvc-webcam", ["controls /dev/fakevideo0 --json"]),
    (
      "controls-set", "hfr-usb",
      [
        "controls /dev/fakevideo0 exposure_time_absolute=4ms gain=10 'auto_exposure=manual mode' --json"
      ]
    ),
  ]
  private static let (devices, watch) = ("documents/devices.txt", "documents/devices-watch.txt")
  private static let live = "documents/live.txt"
  private static let photo = "documents/photo.txt"
  private static let inputs = ["inside.otio", "mixed.otio", "bench.json", "bench-newer.json"]

  static let fixtures =
    ofFiles.map { "documents/\($0.name).txt" } + ofCameras.map { "documents/\($0.name).txt" }
    + [devices, watch, live, photo] + inputs.map { "inputs/\($0)" }

  @Test(arguments: ofFiles.indices)
  func `JSON output about movie files matches its fixtures`(index: Int) async throws {
    let (name, takes, lines) = Self.ofFiles[index]
    let scratch = try Scratch()
    for take in takes { try await ContractTakes.unpack(take, into: scratch) }
    for input in Self.inputs {
      try FileManager.default.copyItem(
        atPath: ContractFixtures.path("inputs/\(input)"), toPath: scratch.file(input))
    }
    var transcript = Transcript(in: scratch, mask: .machine)
    for line in lines {
      // Long exports would print progress lines.
      let isWork = ["retime", "edit", "frames"].contains(name)
      try await transcript.slowmo(isWork ? "\(line) --progress none" : line)
    }
    try ContractFixtures.check(transcript.text, is: "documents/\(name).txt")
  }

  @Test(arguments: ofCameras.indices)
  func `JSON output about cameras matches its fixtures`(index: Int) async throws {
    let (name, cameras, lines) = Self.ofCameras[index]
    var transcript = Transcript(in: try Scratch(), cameras: cameras)
    for line in lines { try await transcript.slowmo(line) }
    try ContractFixtures.check(transcript.text, is: "documents/\(name).txt")
  }

  @Test func `The JSON device list matches its fixture on any machine`() async throws {
    var mask = ContractMask.none
    mask.keepsOwnDevicesOnly = true
    mask.showsErrors = false
    var transcript = Transcript(in: try Scratch(), mask: mask)
    try await transcript.slowmo("devices --json")
    try ContractFixtures.check(transcript.text, is: Self.devices)
  }

  @Test func `The output of devices --watch matches its fixture`() async throws {
    var transcript = Transcript(in: try Scratch())
    // The synthetic camera is listed last of the present devices.
    try await transcript.script(
      """
      "$1" devices --watch --json >lines &
      watching=$!
      until grep -qs synthetic lines || ! kill -0 $watching; do sleep 0.05; done
      kill -INT $watching
      wait $watching
      status=$?
      grep synthetic lines
      exit $status
      """, as: "slowmo devices --watch --json, interrupted")
    try ContractFixtures.check(transcript.text, is: Self.watch)
  }

  @Test func `JSON output about photos matches its fixtures`() async throws {
    let mask = ContractMask(typed: ["at_ns", "shutter_lag_ns"])
    var transcript = Transcript(in: try Scratch(), mask: mask)
    for line in [
      "-o a.jpg --json", "-o 'b{n:02}.png' --burst 3 --json",
      "-o 'c{n}-{index}-{us}.jpg' --every 1s -t 2.5s --json",
      "-o 'd{n}.jpg' --every 10s --count 2", "-o a.jpg --json", "-o a.jpg --quality 50 -y",
      "-o e.jpg --dry-run --json", "-o e.jpg --dry-run", "-o e.gif --json", "-o e.jpg --burst 2",
      "-o e.jpg --burst 2 --every 1s", "-o e.jpg --count 2", "-o - --json",
      "-o f.jpg --tag Artist=Ada --tag dc:title=Goal --location +46.5-007.25/ --json",
      "-o g.jpg --bracket 0,x", "-o g.jpg --bracket 0,1", "-o 'g{n}.jpg' --bracket 0,1 --json",
      "-o g.jpg --flash on --json", "-o g.jpg --flash auto", "-o g.jpg --live --burst 2",
      "-o - --live", "-o g.dng", "-o g.jpg --repeat", "-o g.jpg --trigger key --every 1s",
      "-o h.jpg --tag x:y=z", "-o g.jpg --tag x",
    ] {
      try await transcript.slowmo("photo synthetic:128x96@60?pace=max \(line) --progress none")
    }
    try ContractFixtures.check(transcript.text, is: Self.photo)
  }

  @Test func `JSON documents of measured values keep their keys and types`() async throws {
    var transcript = Transcript(in: try Scratch(), mask: .live)
    try await transcript.slowmo(
      "modes synthetic:128x96@60 --fourcc grey --probe 100ms --json")
    try await transcript.slowmo("bench capture synthetic:128x96@60 -t 0.3 --json")
    try await transcript.slowmo("bench capture --mode 128x96@60/grey -t 0.3 --codec raw --json")
    for line in ["writer", "retime", "retime --fps 30", "pitch --pitch varispeed"] {
      try await transcript.slowmo("bench \(line) --mode 128x96@60/mjpg -t 0.2 --runs 1 --json")
    }
    try ContractFixtures.check(transcript.text, is: Self.live)
  }
}
