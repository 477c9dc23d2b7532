// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import SystemPackage
import Testing

@testable import OvercrankLinuxSystem

/// Lines written to a pipe whose reader may not read.
struct BackgroundWriterTests {
  private let ends: (readEnd: FileDescriptor, writeEnd: FileDescriptor)

  init() throws { ends = try FileDescriptor.pipe() }

  /// Fills the pipe, so that another byte would have to wait.
  ///
  /// Returns the number of bytes in the pipe.
  private func fill() throws -> Int {
    let descriptor = ends.writeEnd.rawValue
    let count = Int(fcntl(descriptor, 1_032))  // F_GETPIPE_SZ
    #expect(ends.writeEnd.writeFully([UInt8](repeating: 0, count: count)) == nil)
    return count
  }

  /// Reads the rest of the pipe as lines, after a number of bytes.
  private func lines(after count: Int) throws -> [String] {
    try ends.writeEnd.close()
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    while true {
      let length = try block.withUnsafeMutableBytes { try ends.readEnd.read(into: $0) }
      guard length > 0 else { break }
      bytes += block[..<length]
    }
    try ends.readEnd.close()
    return String(decoding: bytes[count...], as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private func write(_ text: String, _ writer: BackgroundWriter, isProgress: Bool = false) {
    writer.write(Array("\(text)\n".utf8), isProgress: isProgress)
  }

  @Test func `A background writer writes all lines in order`() throws {
    let writer = BackgroundWriter(ends.writeEnd)
    for number in 0..<1_000 { write("\(number)", writer) }
    #expect(writer.drain())
    #expect(writer.droppedCount == 0)
    #expect(try lines(after: 0) == (0..<1_000).map(String.init))
  }

  @Test func `A full pipe does not block the caller of a background writer`() throws {
    let count = try fill()
    let writer = BackgroundWriter(ends.writeEnd, capacity: 1_000)
    // The writer thread takes the first line from the queue. If it is slow, it does so only after
    // the other lines have filled the queue.
    for number in 0..<1_000 { write("line \(number)", writer) }
    #expect(!writer.drain(withinMilliseconds: 1))
    #expect((800..<1_000).contains(writer.droppedCount))
    #expect(!writer.drain(withinMilliseconds: 10))
    var block = [UInt8](repeating: 0, count: count)
    #expect(try block.withUnsafeMutableBytes { try ends.readEnd.read(into: $0) } == count)
    #expect(writer.drain(withinMilliseconds: 100_000))
    let seen = try lines(after: 0)
    #expect(seen.count + writer.droppedCount == 1_000)
    #expect(seen.first == "line 0")
  }

  @Test func `An unwritten progress line is replaced by the next one`() throws {
    let count = try fill()
    let writer = BackgroundWriter(ends.writeEnd)
    write("begin", writer)
    for number in 0..<100 { write("at \(number)", writer, isProgress: true) }
    write("warning", writer)
    for number in 100..<200 { write("at \(number)", writer, isProgress: true) }
    #expect(!writer.drain(withinMilliseconds: 1))
    var block = [UInt8](repeating: 0, count: count)
    #expect(try block.withUnsafeMutableBytes { try ends.readEnd.read(into: $0) } == count)
    #expect(writer.drain(withinMilliseconds: 100_000))
    #expect(writer.droppedCount == 198)
    #expect(try lines(after: 0) == ["begin", "at 99", "warning", "at 199"])
  }

  @Test func `A write to a full pipe can be cancelled by a signal`() throws {
    let count = try fill()
    // A thread sends signals until the write, which waits in the kernel, is interrupted.
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    sigaction(SIGURG, &action, nil)
    // Libdispatch blocks signals in its threads, so they are unblocked here.
    var (signals, before) = (sigset_t(), sigset_t())
    sigaddset(&signals, SIGURG)
    pthread_sigmask(SIG_UNBLOCK, &signals, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    let waiter = pthread_self()
    let hasEnded = DispatchSemaphore(value: 0)
    let sender = try BlockingThread {
      // Signals without a pause would leave the writing thread no processor time.
      while hasEnded.wait(timeout: .now() + .milliseconds(1)) == .timedOut {
        pthread_kill(waiter, SIGURG)
      }
    }
    var counts: [Int] = []
    let failure = [UInt8](repeating: 1, count: 10).withUnsafeBytes { bytes in
      ends.writeEnd.writeFully(bytes) {
        counts.append($0)
        return counts.count == 3
      }
    }
    hasEnded.signal()
    sender.join()
    #expect(failure == .interrupted)
    #expect(counts == [0, 0, 0])
    #expect(try lines(after: count) == [])
  }
}
