// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

extension VividTests {
  @Suite struct Recording {
    private let node = Vivid.node ?? ""
    private let tracing = "/sys/kernel/tracing"

    @Test func `Four seconds at the fastest mode are accounted for and can be played`() async throws
    {
      let file = "\(Vivid.folder)/fastest.mov"
      let take = try await Vivid.record(["-t", "4", "--fastest"], file: file)
      let ledger = try Vivid.ledger(take)
      let measured = try #require(take["measured_fps_value"] as? Double)
      print("vivid: measured \(measured) fps, ledger \(ledger.sorted { $0.key < $1.key })")
      #expect(abs(measured / 60 - 1) <= 0.01)
      Vivid.expectSum(ledger)
      #expect(take["playable"] as? Bool == true)
      #expect(take["stopped_by"] as? String == "duration")
      #expect(try await Vivid.packetCount(file) == ledger["stored"])
    }

    @Test func `Dropped buffers are found one by one, where the kernel's own trace has them`()
      async throws
    {
      try await Vivid.set("percentage_of_dropped_buffers", to: 20)
      try write("16384", to: "\(tracing)/buffer_size_kb")
      try write("", to: "\(tracing)/trace")
      let event = "\(tracing)/events/v4l2/v4l2_dqbuf/enable"
      try write("1", to: event)
      let file = "\(Vivid.folder)/drops.mov"
      let take = try await Vivid.record(["-t", "4", "--fastest"], file: file)
      try write("0", to: event)
      try await Vivid.set("percentage_of_dropped_buffers", to: 0)
      // The file says that it has no length, which stops Foundation from reading it whole.
      let trace = try await run("cat", ["\(tracing)/trace"]).output
      let ledger = try Vivid.ledger(take)
      let stored = Int(try #require(ledger["stored"]))
      let sequences = trace.split(separator: "\n").compactMap { line in
        line.contains("v4l2_dqbuf:")
          ? line.firstMatch(of: /sequence = (\d+)/).flatMap { Int64($0.1) } : nil
      }
      // The stream before was the proof of the rate; each stream counts anew.
      var streamed: [Int64] = []
      for sequence in sequences {
        if let last = streamed.last, sequence < last { streamed = [] }
        streamed.append(sequence)
      }
      // The buffer that ended the take was dequeued too and is none of its frames.
      #expect(streamed.count == stored + 1)
      let kept = streamed.prefix(stored)
      let steps = zip(kept, kept.dropFirst()).map { $1 - $0 }
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
      print("vivid: \(theirs.count) gaps by the kernel's trace, \(ours.count) by the ledger")
      #expect(theirs.count > 10)
      // Vivid's times are those of a thread that may be late by a period; by how many it then
      // misplaces a gap, its numbers cannot tell.
      let apart = Set(ours).symmetricDifference(theirs)
      #expect(apart.count * 10 <= theirs.count, "\(apart.sorted())")
      Vivid.expectSum(ledger)
      #expect(take["playable"] as? Bool == true)
      #expect(try await Vivid.packetCount(file) == Int64(stored))
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
        for try in $(seq 600); do [ -s "$4" ] && break; sleep 0.1; done
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

    private func write(_ text: String, to path: String) throws {
      let handle = try #require(FileHandle(forWritingAtPath: path), "cannot write \(path)")
      try handle.write(contentsOf: Data((text + "\n").utf8))
      try handle.close()
    }
  }
}
