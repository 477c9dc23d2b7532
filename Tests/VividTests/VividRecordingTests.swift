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
      let take = try await record(["-t", "4", "--fastest"], file: file)
      let ledger = try ledger(take)
      let measured = try #require(take["measured_fps_value"] as? Double)
      print("vivid: measured \(measured) fps, ledger \(ledger.sorted { $0.key < $1.key })")
      #expect(abs(measured / 60 - 1) <= 0.01)
      expectSum(ledger)
      #expect(take["playable"] as? Bool == true)
      #expect(take["stopped_by"] as? String == "duration")
      #expect(try await packetCount(file) == ledger["stored"])
    }

    @Test func `Dropped buffers are found one by one, where the kernel's own trace has them`()
      async throws
    {
      try await set("percentage_of_dropped_buffers", to: 20)
      try write("16384", to: "\(tracing)/buffer_size_kb")
      try write("", to: "\(tracing)/trace")
      let event = "\(tracing)/events/v4l2/v4l2_dqbuf/enable"
      try write("1", to: event)
      let file = "\(Vivid.folder)/drops.mov"
      let take = try await record(["-t", "4", "--fastest"], file: file)
      try write("0", to: event)
      try await set("percentage_of_dropped_buffers", to: 0)
      // The file says that it has no length, which stops Foundation from reading it whole.
      let trace = try await run("cat", ["\(tracing)/trace"]).output
      let ledger = try ledger(take)
      let stored = Int(try #require(ledger["stored"]))
      let sequences = trace.split(separator: "\n").compactMap { line in
        line.contains("v4l2_dqbuf:")
          ? line.firstMatch(of: /sequence = (\d+)/).flatMap { Int64($0.1) } : nil
      }
      // The buffer that ended the take was dequeued too and is none of its frames.
      #expect(sequences.count == stored + 1)
      let kept = sequences.prefix(stored)
      let theirs = zip(kept, kept.dropFirst()).enumerated()
        .filter { $0.element.1 - $0.element.0 > 1 }
        .map { "\($0.element.1 - $0.element.0 - 1) after \($0.offset)" }
      let gaps = try #require(take["gaps"] as? [[String: Any]])
      // What is missing before the first frame or after the last is between no two of the trace.
      let ours = try gaps.compactMap { gap -> String? in
        let after = try #require(gap["after_index"] as? Int)
        guard after >= 0, after < stored - 1 else { return nil }
        return "\(try #require(gap["count"] as? Int)) after \(after)"
      }
      print("vivid: \(theirs.count) gaps by the kernel's trace, \(ours.count) by the ledger")
      #expect(theirs.count > 10)
      #expect(ours == theirs)
      expectSum(ledger)
      #expect(take["playable"] as? Bool == true)
      #expect(try await packetCount(file) == Int64(stored))
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

    private func record(_ options: [String], file: String) async throws -> [String: Any] {
      try? FileManager.default.removeItem(atPath: file)
      let finished = try await run(
        slowmoPath, ["record", node, "-o", file, "--json", "--progress", "none"] + options)
      try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
      return try finished.document()
    }

    private func set(_ control: String, to value: Int) async throws {
      let finished = try await run("v4l2-ctl", ["-d", node, "-c", "\(control)=\(value)"])
      try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
    }

    private func ledger(_ take: [String: Any]) throws -> [String: Int64] {
      try #require(take["ledger"] as? [String: Any]).compactMapValues { value in
        (value as? Int).map(Int64.init)
      }
    }

    private func expectSum(_ ledger: [String: Int64]) {
      let sum = ledger.filter { $0.key != "expected" }.values.reduce(0, +)
      #expect(ledger["expected"] == sum, "\(ledger)")
    }

    private func packetCount(_ file: String) async throws -> Int64? {
      let finished = try await run(
        "ffprobe",
        [
          "-v", "error", "-select_streams", "v:0", "-count_packets", "-show_entries",
          "stream=nb_read_packets", "-of", "csv=p=0", file,
        ])
      try #require(finished.status == 0, "\(finished.errors)")
      return Int64(finished.output.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    private func write(_ text: String, to path: String) throws {
      let handle = try #require(FileHandle(forWritingAtPath: path), "cannot write \(path)")
      try handle.write(contentsOf: Data((text + "\n").utf8))
      try handle.close()
    }
  }
}
