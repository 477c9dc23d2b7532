// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import Testing

@testable import OvercrankV4L2

struct AbandonTests {
  @Test func `Mapped memory of an unplugged device stays readable`()
    throws
  {
    // The device is replaced by a file.
    var path = Array("/tmp/device.XXXXXX".utf8CString)
    let file = mkstemp(&path)
    #expect(file >= 0 && ftruncate(file, 8_192) == 0)
    defer {
      close(file)
      unlink(path)
    }
    let name = String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    let start = mmap(nil, 8_192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    let memory = UnsafeMutableRawBufferPointer(start: start, count: 8_192)
    defer { munmap(memory.baseAddress, memory.count) }
    try #require(start != MAP_FAILED)
    memory[5_000] = 7
    #expect(Self.mappings(of: name) == 1)
    KernelVideoCalls().abandon(file, [memory])
    #expect(Self.mappings(of: name) == 0)
    memory[8_191] = 9
    #expect(memory[5_000] == 0 && memory[8_191] == 9)
    var state = stat()
    #expect(fstat(file, &state) == 0)
    #expect(state.st_mode & S_IFMT == S_IFCHR)
    #expect(fcntl(file, F_GETFD) & FD_CLOEXEC != 0)
  }

  /// How many times a file is mapped into this process.
  private static func mappings(of name: String) -> Int {
    SystemFiles.lines(of: "/proc/self/maps", upTo: 100_000).count { $0.contains(name) }
  }
}
