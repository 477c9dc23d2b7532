// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import SystemPackage
import Testing

@testable import OvercrankLinuxSystem

struct SplicedPipeTests {
  /// Memory that overwrites itself when its owner is released.
  private final class Block: Sendable {
    nonisolated(unsafe) let start: UnsafeMutableRawBufferPointer

    init(_ count: Int, _ value: UInt8) {
      start = .allocate(byteCount: count, alignment: 16)
      start.initializeMemory(as: UInt8.self, repeating: value)
    }

    deinit {
      start.initializeMemory(as: UInt8.self, repeating: 255)
      start.deallocate()
    }
  }

  @Test(arguments: [100, 5_000, 70_000, 300_000])
  func `A reader receives the bytes of a spliced pipe in order`(size: Int) throws {
    let ends = try FileDescriptor.pipe()
    let count = 4_000_000 / size
    // The owners of the last blocks are kept until everything is read.
    let last = Mutex<[Block]>([])
    let writer = try BlockingThread {
      // The write end is closed even after an error, so that the reader ends.
      defer { try? ends.writeEnd.close() }
      guard var pipe = SplicedPipe<Block>(ends.writeEnd) else { return }
      for number in 0..<count {
        let block = Block(size, UInt8(number % 251))
        guard pipe.write(UnsafeRawBufferPointer(block.start)) == nil else { return }
        pipe.keep(block)
      }
      let owners = pipe.owners
      last.withLock { $0 = owners }
    }
    var wrong = 0
    var (total, block) = (0, [UInt8](repeating: 0, count: 10_007))
    while total < count * size {
      let length = try block.withUnsafeMutableBytes { try ends.readEnd.read(into: $0) }
      guard length > 0 else { break }
      for index in 0..<length where block[index] != UInt8((total + index) / size % 251) {
        wrong += 1
      }
      total += length
    }
    writer.join()
    #expect(total == count * size && wrong == 0)
    #expect(last.withLock { !$0.isEmpty })
    try ends.readEnd.close()
  }

  @Test func `Memory spliced into a pipe is released after it was read`() throws {
    let ends = try FileDescriptor.pipe()
    defer { try? ends.readEnd.close() }
    guard var pipe = SplicedPipe<Int>(ends.writeEnd) else {
      Issue.record("a pipe was not accepted")
      return
    }
    let page = Int(getpagesize())
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: page, alignment: page)
    defer { bytes.deallocate() }
    bytes.initializeMemory(as: UInt8.self, repeating: 7)
    let target = UnsafeMutableRawBufferPointer.allocate(byteCount: page, alignment: 16)
    defer { target.deallocate() }
    let capacity = Int(fcntl(ends.writeEnd.rawValue, 1_032)) / page
    for number in 0..<3 * capacity {
      #expect(pipe.write(UnsafeRawBufferPointer(bytes)) == nil)
      pipe.keep(number)
      #expect(pipe.owners == Array(max(0, number - capacity + 1)...number))
      #expect(try ends.readEnd.read(into: target) == page)
    }
    try ends.writeEnd.close()
  }

  @Test func `Splicing into a pipe fails if its reading end is closed`() throws {
    let ends = try FileDescriptor.pipe()
    try ends.readEnd.close()
    signal(SIGPIPE, SIG_IGN)
    guard var pipe = SplicedPipe<Int>(ends.writeEnd) else {
      Issue.record("a pipe was not accepted")
      return
    }
    let failure = [UInt8](repeating: 0, count: 10).withUnsafeBytes { pipe.write($0) }
    #expect(failure == .brokenPipe)
    try ends.writeEnd.close()
    let file = try FileDescriptor.open("/dev/null", .writeOnly)
    defer { try? file.close() }
    if case .some = SplicedPipe<Int>(file) { Issue.record("a file was accepted as a pipe") }
  }
}
