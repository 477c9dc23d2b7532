// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Every JSON document that `record` prints, and its progress events.
@Suite(.serialized)
struct ContractRecordTests {
  /// Takes from a file camera.
  ///
  /// Only values that depend on the machine vary.
  private static let waiting = [
    "record file:mjpeg.mov?pace=max -o a.mov --json --progress none",
    "record file:mjpeg.mov?pace=max -o b.mov --frames 5 --title Five --json --progress none",
    "record file:mjpeg.mov?pace=max -o c.mov -t 0.1 --codec copy --json --progress none",
    "record file:h264.mov?pace=max -o d.mov --codec copy --json --progress none",
    "record file:ffv1.mov?pace=max -o e.mov --codec ffv1 --json --progress none",
    "record file:ffv1.mov?pace=max -o f.mov --codec mjpeg --faststart --json --progress none",
    "record file:ffv1.mov?pace=max -o g.mov --codec h264 --burst --json --progress none",
    // The report or the `--exec` command of this take fails.
    "record file:mjpeg.mov?pace=max -o h.mov --report /dev/full -y --json --progress none",
    "record file:mjpeg.mov?pace=max -o i.mov --exec false --json --progress none",
    "record file:mjpeg.mov?pace=max -o k{n}.mov --segment 100ms --tag make=Acme --json --progress none",
    // The previous take, with its report as text.
    "record file:mjpeg.mov?pace=max -o j.mov --codec copy --progress none",
    "record file:mjpeg.mov -o k.mov --dry-run --json",
    "record synthetic:640x480@240 -o l.mov --dry-run --json",
    "record synthetic -o m.mov --mode 1280x720@120/yuyv --codec ffv1 --audio none --dry-run --json",
    "record synthetic -o n.mov --dry-run",
  ]
  /// Takes in real time.
  ///
  /// Only keys, types and requested values are fixed.
  private static let live = [
    "record synthetic:128x96@60?drop=20%&seed=7 -o a.mov --frames 24 --audio none --json",
    "record synthetic:128x96@60/yuyv?drop=20%&seed=7 -o b.mov --frames 24 --codec h264 --audio none --json",
    "record synthetic:128x96@60?drop=50%&seed=7 -o c.mov --frames 12 --audio none --max-drops 0 --json",
    "record synthetic:128x96@60?drop=20%&seed=7 -o d.mov --pre 100ms --post 200ms --trigger audio:-12dBFS --audio none --json",
  ]
  /// Takes in real time with audio, in which a busy machine may cause a gap.
  private static let withAudio = [
    "record synthetic:128x96@60 -o g.mov --frames 24 --json",
    "record synthetic:128x96@60 -o h.mov --frames 24 --audio-codec pcm --json",
  ]
  private static let (waitingName, liveName) =
    ("documents/record-waiting.txt", "documents/record-live.txt")
  private static let (camera, events) =
    ("documents/record-camera.txt", "documents/record-events.txt")

  static let fixtures = [waitingName, liveName, camera, events]

  @Test func `JSON reports of takes from file cameras match their fixtures`() async throws {
    let scratch = try Scratch()
    for take in ["mjpeg", "h264", "ffv1"] { try await ContractTakes.unpack(take, into: scratch) }
    var transcript = Transcript(in: scratch, mask: .machine)
    // Warnings of a full queue depend on the machine.
    transcript.mask.showsErrors = false
    for line in Self.waiting { try await transcript.slowmo(line) }
    try ContractFixtures.check(transcript.text, is: Self.waitingName)
  }

  @Test func `JSON reports of real-time takes keep their keys and types`() async throws {
    var transcript = Transcript(in: try Scratch(), mask: .live)
    for line in Self.live { try await transcript.slowmo("\(line) --progress none") }
    transcript.mask = .liveWithOrWithoutGaps
    for line in Self.withAudio { try await transcript.slowmo("\(line) --progress none") }
    // The first of several clips. Then Ctrl-C ends the wait for the next trigger.
    try await transcript.script(
      """
      mkfifo keys
      "$1" record synthetic:128x96@60 -o 'i{n}.mov' --pre 100ms --post 200ms --trigger key \
        --repeat --audio none --json --progress plain <keys 2>said &
      take=$!
      exec 3>keys
      until grep -qs waiting said || ! kill -0 $take; do sleep 0.05; done
      echo >&3
      until grep -qs 'i1.mov is finished' said || ! kill -0 $take; do sleep 0.05; done
      kill -INT $take
      wait $take
      """,
      as: "slowmo record synthetic:128x96@60 -o i{n}.mov --pre 100ms --post 200ms --trigger key "
        + "--repeat --audio none --json")
    try ContractFixtures.check(transcript.text, is: Self.liveName)
  }

  @Test func `JSON reports of takes with an unplugged camera keep all keys`() async throws {
    var mask = ContractMask.liveWithOrWithoutGaps
    // On a busy machine, the frame rate may not be verified.
    mask.typed.insert("locked")
    mask.open["cause"] = .string
    var transcript = Transcript(
      in: try Scratch(), mask: mask, cameras: "hfr-usb mjpegbytes=2000 unplug=120")
    try await transcript.slowmo(
      "record /dev/fakevideo0 -o a.mov -t 60 --mode 640x360@120/mjpg --json --progress none")
    try ContractFixtures.check(transcript.text, is: Self.camera)
  }

  @Test func `JSON progress events keep their keys and types`() async throws {
    let scratch = try Scratch()
    let mask = ContractMask(
      typed: ["pts_ns", "frame", "total_frames", "drops", "bytes"],
      numbers: ["fps", "speed"], open: ["queue_fill": .number], lists: ["peak_dbfs"])
    var text = ""
    for (line, kinds) in [
      (
        "synthetic:128x96@60?drop=20%&seed=7 -o a.mov -t 1",
        ["start", "drop", "progress", "file", "end"]
      ),
      (
        "synthetic:128x96@60 -o b.mov --trigger audio:-12dBFS --post 100ms --exec false",
        ["start", "trigger", "file", "warning", "end"]
      ),
    ] {
      let finished = try await run(
        slowmoPath,
        ["record"] + line.split(separator: " ").map(String.init) + ["--progress", "json"],
        in: scratch.path)
      #expect(finished.status == 0)
      let events = finished.errors.split(separator: "\n").map {
        mask.applied(to: String($0)).replacing(/\d+ now, \d+ so far/, with: "N now, N so far")
      }
      text += "$ slowmo record \(line) --progress json\n"
      // Takes the last event of each kind, since the number and order of events depend on the load.
      for kind in kinds {
        text += (events.last { $0.contains("\"event\":\"\(kind)\"") } ?? "no \(kind)") + "\n"
      }
      let others = events.filter { event in
        ["progress", "drop", "warning", "note"].allSatisfy {
          !event.contains("\"event\":\"\($0)\"")
        }
      }
      #expect(others.count == kinds.count { !["progress", "drop", "warning"].contains($0) })
    }
    try ContractFixtures.check(text, is: Self.events)
  }
}
