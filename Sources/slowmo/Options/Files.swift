// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// Files as the command reads and writes them; their failures are its own.
enum Files {
  /// Whether something is at a path.
  static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path.systemPath, &status) == 0
  }

  /// Refuses a name that is taken, unless what has it may be replaced.
  static func refuseExisting(_ path: String, overwrites: Bool) throws {
    guard !overwrites, path != standardOutput, exists(path) else { return }
    throw CommandError(
      .cannotCreate, code: "output_exists", "\(path) exists already",
      hint: "choose another name, or replace it with --overwrite")
  }

  /// Writes a small file, which has its name when it is whole.
  ///
  /// A file of that name is refused unless it may be replaced. The name `-` is standard output.
  static func write(_ path: String, _ data: Data, overwrites: Bool) throws {
    guard path != standardOutput else { return try Output.data([UInt8](data)) }
    do throws(FileCreationError) {
      try WholeFile.write([UInt8](data), to: path, overwrites: overwrites)
    } catch {
      throw MediaError(error)
    }
  }

  /// Reads a small file of text whole.
  static func readText(_ path: String) throws -> String {
    // A project is text of some kilobytes; a movie given by mistake is not read whole.
    String(decoding: try readBytes(path, from: { _ in 0 }, 64 << 20), as: UTF8.self)
  }

  /// Reads a small file whole, or standard input where the path is `-`.
  static func readInput(_ path: String) throws -> [UInt8] {
    try readBytes(
      path, from: { _ in 0 }, 64 << 20, opened: path == "-" ? dup(STDIN_FILENO) : nil)
  }

  /// Reads so many bytes of a file, or what there is, from an offset that may depend on its size.
  private static func readBytes(
    _ path: String, from start: (_ size: Int) -> Int, _ limit: Int, opened: Int32? = nil
  ) throws -> [UInt8] {
    // A pipe without a writer is opened at once, so that a signal ends the wait for one below.
    let descriptor = opened ?? open(path.systemPath, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      let reason = errno
      throw CommandError(
        reason == EACCES ? .noPermission : .noInput,
        code: reason == EACCES ? "no_permission" : "file_not_found",
        "could not open \(path): \(String(cString: strerror(reason)))",
        hint: "check the name and its permissions")
    }
    defer { close(descriptor) }
    var status = stat()
    // A pipe has no size and no offsets; it is read as it comes.
    if fstat(descriptor, &status) == 0 {
      let first = start(Int(status.st_size))
      if first > 0 { lseek(descriptor, first, SEEK_SET) }
    }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: min(limit, 1 << 16))
    while bytes.count < limit {
      try waitForInput(descriptor, path)
      let count = block.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
      if count == 0 { break }
      if count < 0 {
        let reason = errno
        if reason == EINTR || reason == EAGAIN { continue }
        throw CommandError(
          .inputOutput, code: "read_failed",
          "could not read \(path): \(String(cString: strerror(reason)))", hint: "check the disk")
      }
      bytes += block[..<count]
    }
    return bytes
  }

  /// Waits until a file has something to read, or its end; the first signal ends the wait.
  private static func waitForInput(_ descriptor: Int32, _ path: String) throws {
    var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // A signal is taken by a thread of its own: it does not end the poll.
    while poll(&waited, 1, 100) <= 0 {
      guard !Interrupt.isRequested else {
        throw CommandError(
          Interrupt.status, code: "cancelled", "interrupted while waiting for \(path)",
          hint: "nothing was written")
      }
    }
  }

  /// The names in a folder; none where it cannot be read.
  static func names(in path: String) -> [String] {
    guard let folder = opendir(path.systemPath) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      names.append(
        withUnsafeBytes(of: entry.pointee.d_name) { String(systemBytes: $0.prefix { $0 != 0 }) })
    }
    return names
  }

  /// Whether a file begins as MP4 and MOV do.
  static func isMovie(_ path: String) throws -> Bool {
    var status = stat()
    // What comes through a pipe can be read once.
    guard stat(path.systemPath, &status) != 0 || status.st_mode & S_IFMT == S_IFREG else {
      return false
    }
    return try readBytes(path, from: { _ in 0 }, 12).dropFirst(4).prefix(4).elementsEqual(
      "ftyp".utf8)
  }

  /// The last bytes of a file, all of a shorter one.
  static func readTail(_ path: String, _ count: Int) throws -> [UInt8] {
    try readBytes(path, from: { max(0, $0 - count) }, count)
  }

  /// A path from the root, without looking whether anything is there.
  static func absolutePath(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return String(systemPath: folder) + "/" + path
  }
}
