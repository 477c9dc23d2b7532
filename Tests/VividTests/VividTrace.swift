// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The kernel's trace of the buffers that a program dequeued.
extension Vivid {
  struct Dequeued {
    let sequence: UInt32
    /// The time by vivid's clock, before the kernel converts it to seconds and microseconds.
    let nanoseconds: UInt64
  }

  /// Runs a closure and returns the buffers that were dequeued from the last stream in the
  /// meantime.
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
    // The trace file reports a length of 0, so Foundation cannot read it.
    let trace = try await run("cat", ["\(tracing)/trace"]).output
    var stream: [Dequeued] = []
    for line in trace.split(separator: "\n") where line.contains("v4l2_dqbuf:") {
      let match = try #require(line.firstMatch(of: /timestamp = (\d+),.*sequence = (\d+)/))
      let next = Dequeued(
        sequence: try #require(UInt32(match.2)), nanoseconds: try #require(UInt64(match.1)))
      // An earlier stream was used to verify the frame rate. Each stream counts from 0.
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
  /// The number of timestamps that differ from the frame numbers by half a period or more.
  func lateCount(atRate rate: Double) -> Int {
    zip(steps, zip(self, dropFirst())).count { step, pair in
      let numbers = Int32(bitPattern: pair.1.sequence &- pair.0.sequence)
      return abs(Double(step) * rate / 1e9 - Double(numbers)) >= 0.5
    }
  }

  /// The times between frames in nanoseconds, by vivid's clock.
  var steps: [Int64] {
    zip(self, dropFirst()).map { Int64(bitPattern: $1.nanoseconds &- $0.nanoseconds) }
  }

  /// The frame rate in frames per second, by vivid's own numbers and times.
  var frameRate: Double {
    guard let first, let last, last.nanoseconds != first.nanoseconds else { return 0 }
    let periods = Int32(bitPattern: last.sequence &- first.sequence)
    return Double(periods) * 1e9 / Double(last.nanoseconds &- first.nanoseconds)
  }

  var hasWrappedSequence: Bool { zip(self, dropFirst()).contains { $1.sequence < $0.sequence } }
}
