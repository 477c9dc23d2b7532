// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankRecognition
import OvercrankRecording
import TestSupport
import Testing

extension VividTests {
  @Suite struct Recording {
    private let node = Vivid.node ?? ""

    @Test func `A take in the fastest mode of vivid is complete and playable`() async throws {
      let file = "\(Vivid.directory)/fastest.mov"
      let (take, streamed) = try await Vivid.traced {
        try await Vivid.record(["-t", "4", "--fastest"], file: file)
      }
      let ledger = try Vivid.ledger(take)
      let measured = try #require(take["measured_fps_value"] as? Double)
      print(
        "vivid: measured \(measured) fps, \(streamed.frameRate) by the kernel's trace; "
          + "ledger \(ledger.sorted { $0.key < $1.key })")
      #expect(abs(measured / streamed.frameRate - 1) <= 0.002)
      try await Vivid.expectWhole(take, file: file, stoppedBy: "duration")
    }

    @Test func `A scan for codes and faces costs no frame of a take`() async throws {
      let (take, scan) = try await takeBesideScan()
      try await Vivid.waitUntilClosed()
      print("vivid: \(take); scan \(scan)")
      #expect(take.stored == 45 && take.stored == take.expected)
      #expect(scan.isBalanced && scan.offered >= 45, "\(scan)")
    }

    /// The ledgers of a take of 45 frames and of a scan beside it.
    private func takeBesideScan() async throws -> (FrameLedger, MetadataLedger) {
      let device = try CaptureDevice.named(node)
      let session = CaptureSession(
        try await DeviceInput(
          device: device, format: device.format(matching: ModeRequest(parsing: "320x180/yuyv"))))
      let objects = MetadataOutput()
      try objects.setMetadataObjectTypes([.qr, .face])
      try await session.addOutput(objects)
      var settings = RecordingSettings(path: "\(Vivid.directory)/scan.mov")
      settings.overwrites = true
      settings.recordsAudio = false
      settings.limit.frameCount = 45
      let movie = MovieFileOutput(settings: settings)
      try await session.addOutput(movie)
      let report = try await movie.record()
      session.removeOutput(objects)
      return (report.ledger, objects.ledger)
    }

    @Test(arguments: [0, 1])
    func `Gaps in a take match the dropped buffers in the kernel trace`(
      wrapping: Int
    ) async throws {
      try await Vivid.set("wrap_sequence_number", to: wrapping)
      try await Vivid.set("percentage_of_dropped_buffers", to: 20)
      let file = "\(Vivid.directory)/drops.mov"
      func record() async throws -> (take: [String: Any], streamed: [Vivid.Dequeued]) {
        try await Vivid.traced { try await Vivid.record(["-t", "4", "--fastest"], file: file) }
      }
      var (take, streamed) = try await record()
      // On a busy machine, vivid's thread may be late by several periods, and gap positions are
      // then meaningless. Such a take is repeated.
      for _ in 0..<3 where streamed.lateCount(atRate: 60) > 30 {
        print("vivid: once more, since it was late for \(streamed.lateCount(atRate: 60)) buffers")
        (take, streamed) = try await record()
      }
      try await Vivid.set("percentage_of_dropped_buffers", to: 0)
      try await Vivid.set("wrap_sequence_number", to: 0)
      try await Vivid.expectWhole(take, file: file, stoppedBy: "duration")
      #expect(streamed.hasWrappedSequence == (wrapping == 1))
      let stored = Int(try #require(try Vivid.ledger(take)["stored"]))
      // The last buffer was dequeued too, but only ended the take.
      #expect(streamed.count == stored + 1)
      let kept = streamed.prefix(stored)
      let steps = zip(kept, kept.dropFirst()).map {
        Int(Int32(bitPattern: $1.sequence &- $0.sequence))
      }
      // After a repeated frame number, the next number is skipped although no frame is missing.
      let theirs = steps.indices.filter { steps[$0] > 1 && !($0 > 0 && steps[$0 - 1] < 1) }
        .map { "\(steps[$0] - 1) after \($0)" }
      let gaps = try #require(take["gaps"] as? [[String: Any]])
      // The trace cannot show gaps before its first frame or after its last.
      let ours = try gaps.compactMap { gap -> String? in
        let after = try #require(gap["after_index"] as? Int)
        guard after >= 0, after < stored - 1 else { return nil }
        return "\(try #require(gap["count"] as? Int)) after \(after)"
      }
      let lateCount = streamed.lateCount(atRate: 60)
      print(
        "vivid: \(theirs.count) gaps by the kernel's trace, \(ours.count) by the ledger; "
          + "\(lateCount) buffers late")
      #expect(theirs.count > 10)
      // If vivid's thread is late, a gap may be at a wrong position, off by an unknown number of
      // frames.
      let apart = Set(ours).symmetricDifference(theirs)
      #expect(apart.count * 10 <= theirs.count, "\(apart.sorted()), \(lateCount) late")
    }

    @Test func `A busy device error names the program that streams from it`() async throws {
      let file = "\(Vivid.directory)/busy.mov"
      let mark = "\(Vivid.directory)/streaming"
      try? FileManager.default.removeItem(atPath: file)
      // v4l2-ctl prints a character for each frame.
      let script = """
        v4l2-ctl -d "$1" --stream-mmap --stream-count=100000 2>"$4" >/dev/null &
        other=$!
        until [ -s "$4" ] || ! kill -0 $other; do sleep 0.1; done
        "$2" record "$1" -o "$3" -t 1
        status=$?
        kill -9 $other
        exit $status
        """
      let finished = try await run("sh", ["-c", script, "sh", node, slowmoPath, file, mark])
      #expect(finished.status == 69)
      #expect(finished.errors.split(separator: "\n").count == 1, "\(finished.errors)")
      #expect(finished.errors.contains(node))
      #expect(finished.errors.contains("v4l2-ctl"), "\(finished.errors)")
      #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test(.enabled(if: getuid() == 0, "only root can become another user"))
    func `Recording without read permission fails with exit code 77`() async throws {
      let finished = try await run(
        "setpriv",
        ["--reuid=65534", "--regid=65534", "--clear-groups", slowmoPath, "modes", node])
      #expect(finished.status == 77)
      #expect(finished.errors.contains("video"), "\(finished.errors)")
      #expect(finished.errors.split(separator: "\n").count == 1, "\(finished.errors)")
    }
  }
}
