// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The kernel's own account of the buffers that a program dequeued.
extension Vivid {
  struct Dequeued {
    let sequence: UInt32
    /// Of vivid's clock, as it is before the kernel makes seconds and microseconds of it.
    let nanoseconds: UInt64
  }

  /// Does something, and gives what was dequeued in the last stream meanwhile.
  static func traced<Value>(
    _ body: () async throws -> Value
  ) async throws -> (Value, [Dequeued]) {
    let tracing = "/sys/kernel/tracing"
    let event = "\(tracing)/events/v4l2/v4l2_dqbuf/enable"
    try write("16384", to: "\(tracing)/buffer_size_kb")
    try write("", to: "\(tracing)/trace")
    try write("1", to: event)
    let value: Value
    do { value = try await body() } catch {
      try write("0", to: event)
      throw error
    }
    try write("0", to: event)
    // The file says that it has no length, which stops Foundation from reading it whole.
    let trace = try await run("cat", ["\(tracing)/trace"]).output
    var stream: [Dequeued] = []
    for line in trace.split(separator: "\n") where line.contains("v4l2_dqbuf:") {
      let match = try #require(line.firstMatch(of: /timestamp = (\d+),.*sequence = (\d+)/))
      let next = Dequeued(
        sequence: try #require(UInt32(match.2)), nanoseconds: try #require(UInt64(match.1)))
      // The stream before was the proof of the rate; each stream counts anew.
      if let last = stream.last, Int32(bitPattern: next.sequence &- last.sequence) < 0 {
        stream = []
      }
      stream.append(next)
    }
    return (value, stream)
  }

  private static func write(_ text: String, to path: String) throws {
    let handle = try #require(FileHandle(forWritingAtPath: path), "cannot write \(path)")
    try handle.write(contentsOf: Data((text + "\n").utf8))
    try handle.close()
  }
}

extension [Vivid.Dequeued] {
  /// How many times are off by half a period or more from what the numbers say since the one before.
  func lateCount(atRate rate: Double) -> Int {
    zip(steps, zip(self, dropFirst())).count { step, pair in
      let numbers = Int32(bitPattern: pair.1.sequence &- pair.0.sequence)
      return abs(Double(step) * rate / 1e9 - Double(numbers)) >= 0.5
    }
  }

  /// How long each frame lasted until the next, in nanoseconds of vivid's clock.
  var steps: [Int64] {
    zip(self, dropFirst()).map { Int64(bitPattern: $1.nanoseconds &- $0.nanoseconds) }
  }

  /// Frames a second by vivid's own numbers and times.
  var frameRate: Double {
    guard let first, let last, last.nanoseconds != first.nanoseconds else { return 0 }
    let periods = Int32(bitPattern: last.sequence &- first.sequence)
    return Double(periods) * 1e9 / Double(last.nanoseconds &- first.nanoseconds)
  }

  var hasWrappedSequence: Bool { zip(self, dropFirst()).contains { $1.sequence < $0.sequence } }
}
