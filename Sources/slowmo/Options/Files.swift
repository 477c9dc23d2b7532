// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// Reads and writes small files for the command.
///
/// All failures throw `CommandError` or `MediaError`.
enum Files {
  /// Throws if a path exists and must not be overwritten.
  static func refuseExisting(_ path: String, overwrites: Bool) throws {
    guard !overwrites, path != standardOutput, SystemFiles.isEntry(path) else { return }
    throw CommandError(
      .cannotCreate, code: "output_exists", "\(path) already exists",
      hint: "choose another name, or replace the file with --overwrite")
  }

  /// Writes a small file atomically: the file appears under its name only when it is complete.
  ///
  /// If the file exists, it is replaced only if `overwrites` is true. The name `-` is standard
  /// output. Cancellation is polled while a named pipe has no reader, or is full.
  static func write(
    _ path: String, _ data: Data, overwrites: Bool,
    isCancelled: () -> Bool = { Interrupt.isRequested }
  ) throws {
    guard path != standardOutput else { return try Output.file([UInt8](data)) }
    do throws(CallFailure) {
      try WholeFile.write(
        [UInt8](data), to: path, overwrites: overwrites, isCancelled: isCancelled)
    } catch {
      throw MediaError(creating: error)
    }
  }

  /// Reads a small text file completely.
  static func readText(_ path: String) throws -> String {
    // A movie may be given by mistake. The limit of 64 MiB keeps it from being read completely.
    String(decoding: try readBytes(path, from: { _ in 0 }, 64 << 20), as: UTF8.self)
  }

  /// Reads a small file completely; `-` is standard input.
  static func readInput(_ path: String) throws -> [UInt8] {
    try readBytes(
      path, from: { _ in 0 }, 64 << 20, opened: path == "-" ? dup(STDIN_FILENO) : nil)
  }

  /// Reads up to `limit` bytes of a file, from an offset that a closure computes from the file's
  /// size.
  private static func readBytes(
    _ path: String, from start: (_ size: Int) -> Int, _ limit: Int, opened: Int32? = nil
  ) throws -> [UInt8] {
    // Without O_NONBLOCK, open(2) would block on a pipe until a writer opens it, and a signal could
    // not end the wait.
    let descriptor = opened ?? open(path.systemPath, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      let reason = errno
      throw CommandError(
        reason == EACCES ? .noPermission : .noInput,
        code: reason == EACCES ? "no_permission" : "file_not_found",
        "could not open \(path): \(String(cString: strerror(reason)))",
        hint: "check the file name and its permissions")
    }
    defer { close(descriptor) }
    var status = stat()
    // A pipe has neither a size nor offsets, so it is read from its current position.
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

  /// Waits until a descriptor has data or has reached its end.
  ///
  /// Throws if a signal arrives.
  private static func waitForInput(_ descriptor: Int32, _ path: String) throws {
    var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // The signals are received by a separate thread, so they do not interrupt poll(2). So poll(2)
    // returns every 100 ms to check for them.
    while poll(&waited, 1, 100) <= 0 {
      guard !Interrupt.isRequested else {
        throw CommandError(
          Interrupt.status, code: "cancelled", "interrupted while waiting for \(path)",
          hint: "run the command again; nothing was written")
      }
    }
  }

  /// Returns whether a file begins with the `ftyp` box of MP4 and MOV.
  static func isMovie(_ path: String) throws -> Bool {
    var status = stat()
    // Data can be read from a pipe only once, so a pipe is not examined and does not count as a
    // movie.
    guard stat(path.systemPath, &status) != 0 || status.st_mode & S_IFMT == S_IFREG else {
      return false
    }
    return try readBytes(path, from: { _ in 0 }, 12).dropFirst(4).prefix(4).elementsEqual(
      "ftyp".utf8)
  }

  /// Reads the last bytes of a file, or all bytes of a shorter file.
  static func readTail(_ path: String, _ count: Int) throws -> [UInt8] {
    try readBytes(path, from: { max(0, $0 - count) }, count)
  }

  /// Returns a path made absolute by the current directory.
  ///
  /// The file itself is not accessed.
  static func absolutePath(_ path: String) -> String {
    // An absolute path stays as the user wrote it. `FilePath` is not used, because it would
    // normalize the path.
    guard !path.hasPrefix("/"), let directory = getcwd(nil, 0) else { return path }
    defer { free(directory) }
    return String(systemPath: directory) + "/" + path
  }
}
