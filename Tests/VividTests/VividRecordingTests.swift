// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@Suite(.serialized, .enabled(if: Vivid.isPresent, "\(Vivid.whyNot)"))
struct VividRecordingTests {
  private let node = Vivid.node ?? ""
  private let tracing = "/sys/kernel/tracing"

  @Test func `Four seconds at the fastest mode are accounted for and can be played`() throws {
    let file = "\(Vivid.folder)/fastest.mov"
    let take = try record("-t", "4", "--fastest", file: file)
    let ledger = try ledger(take)
    let measured = try #require(take["measured_fps_value"] as? Double)
    print("vivid: measured \(measured) fps, ledger \(ledger.sorted { $0.key < $1.key })")
    #expect(abs(measured / 60 - 1) <= 0.01)
    expectSum(ledger)
    #expect(take["playable"] as? Bool == true)
    #expect(take["stopped_by"] as? String == "duration")
    #expect(try packetCount(file) == ledger["stored"])
  }

  @Test func `Dropped buffers are found one by one, where the kernel's own trace has them`() throws
  {
    try require(run("v4l2-ctl", "-d", node, "-c", "percentage_of_dropped_buffers=20"))
    defer {
      #expect(throws: Never.self) {
        try require(run("v4l2-ctl", "-d", node, "-c", "percentage_of_dropped_buffers=0"))
      }
    }
    let event = "\(tracing)/events/v4l2/v4l2_dqbuf/enable"
    try write("16384", to: "\(tracing)/buffer_size_kb")
    try write("", to: "\(tracing)/trace")
    try write("1", to: event)
    let file = "\(Vivid.folder)/drops.mov"
    let take = try record("-t", "4", "--fastest", file: file)
    try write("0", to: event)
    let trace = try String(contentsOfFile: "\(tracing)/trace", encoding: .utf8)
    var sequences = trace.split(separator: "\n").compactMap { line in
      line.contains("v4l2_dqbuf:")
        ? line.firstMatch(of: /sequence = (\d+)/).flatMap { Int64($0.1) } : nil
    }
    let ledger = try ledger(take)
    let stored = try #require(ledger["stored"])
    // The buffer that ended the take was dequeued too and is none of its frames.
    sequences = Array(sequences.prefix(Int(stored)))
    #expect(sequences.count == Int(stored))
    let theirs = zip(sequences, sequences.dropFirst()).enumerated()
      .filter { $0.element.1 - $0.element.0 > 1 }
      .map { "\($0.element.1 - $0.element.0 - 1) after \($0.offset)" }
    let gaps = try #require(take["gaps"] as? [[String: Any]])
    let ours = try gaps.compactMap { gap -> String? in
      let after = Int64(try #require(gap["after_index"] as? Int))
      // What is missing before the first frame or after the last is between no two of the trace.
      guard after >= 0, after < stored - 1 else { return nil }
      return "\(try #require(gap["count"] as? Int)) after \(after)"
    }
    print("vivid: \(theirs.count) gaps by the kernel's trace, \(ours.count) by the ledger")
    #expect(theirs.count > 10)
    #expect(ours == theirs)
    expectSum(ledger)
    #expect(take["playable"] as? Bool == true)
    #expect(try packetCount(file) == stored)
  }

  @Test func `A device that another program streams from is busy, and the program is named`() throws
  {
    let other = Process()
    other.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    other.arguments = ["v4l2-ctl", "-d", node, "--stream-mmap", "--stream-count=100000"]
    let output = Pipe()
    other.standardOutput = FileHandle.nullDevice
    other.standardError = output
    try other.run()
    defer {
      other.terminate()
      other.waitUntilExit()
    }
    // v4l2-ctl prints a mark for each frame: once one came, it streams.
    _ = try output.fileHandleForReading.read(upToCount: 1)
    let file = "\(Vivid.folder)/busy.mov"
    let finished = try run(Vivid.slowmo, "record", node, "-o", file, "-t", "1")
    #expect(finished.status == 69)
    #expect(finished.errors.split(separator: "\n").count == 1)
    #expect(finished.errors.contains(node))
    #expect(finished.errors.contains("v4l2-ctl"), "\(finished.errors)")
    #expect(!FileManager.default.fileExists(atPath: file))
  }

  @Test(.enabled(if: getuid() == 0, "only root can become another user"))
  func `A device that this user may not open is a question of permission`() throws {
    let finished = try run(
      "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", Vivid.slowmo, "modes", node)
    #expect(finished.status == 77)
    #expect(finished.errors.contains("video"), "\(finished.errors)")
    #expect(finished.errors.split(separator: "\n").count == 1)
  }

  private func record(_ options: String..., file: String) throws -> [String: Any] {
    try? FileManager.default.removeItem(atPath: file)
    let finished = try run(
      Vivid.slowmo, ["record", node, "-o", file, "--json", "--progress", "none"] + options)
    try require(finished)
    return try finished.document()
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

  private func packetCount(_ file: String) throws -> Int64? {
    let finished = try run(
      "ffprobe", "-v", "error", "-select_streams", "v:0", "-count_packets", "-show_entries",
      "stream=nb_read_packets", "-of", "csv=p=0", file)
    try require(finished)
    return Int64(finished.output.trimmingCharacters(in: .whitespacesAndNewlines))
  }

  private func require(_ finished: Finished) throws {
    try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
  }

  private func write(_ text: String, to path: String) throws {
    let handle = try #require(FileHandle(forWritingAtPath: path), "cannot write \(path)")
    try handle.write(contentsOf: Data((text + "\n").utf8))
    try handle.close()
  }
}
