// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

extension VividTests {
  @Suite struct Recording {
    private let node = Vivid.node ?? ""

    @Test func `Four seconds at the fastest mode are accounted for and can be played`() async throws
    {
      let file = "\(Vivid.folder)/fastest.mov"
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

    @Test(arguments: [0, 1])
    func `Dropped buffers are found one by one, where the kernel's own trace has them`(
      wrapping: Int
    ) async throws {
      try await Vivid.set("wrap_sequence_number", to: wrapping)
      try await Vivid.set("percentage_of_dropped_buffers", to: 20)
      let file = "\(Vivid.folder)/drops.mov"
      func record() async throws -> (take: [String: Any], streamed: [Vivid.Dequeued]) {
        try await Vivid.traced { try await Vivid.record(["-t", "4", "--fastest"], file: file) }
      }
      var (take, streamed) = try await record()
      // Vivid's times are those of a thread, which may be late by periods where the machine is busy:
      // such a take says nothing of where gaps are.
      for _ in 0..<3 where streamed.lateCount(atRate: 60) > 30 {
        print("vivid: once more, since it was late for \(streamed.lateCount(atRate: 60)) buffers")
        (take, streamed) = try await record()
      }
      try await Vivid.set("percentage_of_dropped_buffers", to: 0)
      try await Vivid.set("wrap_sequence_number", to: 0)
      try await Vivid.expectWhole(take, file: file, stoppedBy: "duration")
      #expect(streamed.hasWrappedSequence == (wrapping == 1))
      let stored = Int(try #require(try Vivid.ledger(take)["stored"]))
      // The buffer that ended the take was dequeued too and is none of its frames.
      #expect(streamed.count == stored + 1)
      let kept = streamed.prefix(stored)
      let steps = zip(kept, kept.dropFirst()).map {
        Int(Int32(bitPattern: $1.sequence &- $0.sequence))
      }
      // A number that vivid gives twice is made up for by the next; then nothing is missing.
      let theirs = steps.indices.filter { steps[$0] > 1 && !($0 > 0 && steps[$0 - 1] < 1) }
        .map { "\(steps[$0] - 1) after \($0)" }
      let gaps = try #require(take["gaps"] as? [[String: Any]])
      // What is missing before the first frame or after the last is between no two of the trace.
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
      // By how many a late thread misplaces a gap, its numbers cannot tell.
      let apart = Set(ours).symmetricDifference(theirs)
      #expect(apart.count * 10 <= theirs.count, "\(apart.sorted()), \(lateCount) late")
    }

    @Test func `A device that another program streams from is busy, and the program is named`()
      async throws
    {
      let file = "\(Vivid.folder)/busy.mov"
      let mark = "\(Vivid.folder)/streaming"
      try? FileManager.default.removeItem(atPath: file)
      // v4l2-ctl prints a mark for each frame: once one came, it streams.
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
    func `A device that this user may not open is a question of permission`() async throws {
      let finished = try await run(
        "setpriv",
        ["--reuid=65534", "--regid=65534", "--clear-groups", slowmoPath, "modes", node])
      #expect(finished.status == 77)
      #expect(finished.errors.contains("video"), "\(finished.errors)")
      #expect(finished.errors.split(separator: "\n").count == 1, "\(finished.errors)")
    }
  }
}
