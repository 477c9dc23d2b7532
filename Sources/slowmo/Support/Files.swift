// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import Glibc

/// Whether something stands at a path.
func fileExists(_ path: String) -> Bool {
  var status = stat()
  return lstat(path, &status) == 0
}

/// Refuses a name that is taken, unless what has it may be replaced.
func refuseExisting(_ path: String, overwrites: Bool) throws {
  guard !overwrites, fileExists(path) else { return }
  throw CommandError(
    .cannotCreate, code: "output_exists", "\(path) exists already",
    hint: "choose another name, or replace it with --overwrite")
}

/// Writes a small file whole; a file of that name is refused unless it may be replaced.
func writeFile(_ path: String, _ data: Data, overwrites: Bool) throws {
  let flags = O_WRONLY | O_CREAT | O_CLOEXEC | (overwrites ? O_TRUNC : O_EXCL)
  let descriptor = open(path, flags, 0o666)
  guard descriptor >= 0 else {
    let reason = errno
    throw CommandError(
      .cannotCreate, code: reason == EEXIST ? "output_exists" : "cannot_create",
      "could not create \(path): \(String(cString: strerror(reason)))",
      hint: reason == EEXIST
        ? "choose another name, or replace it with --overwrite"
        : "check that its folder exists and may be written to")
  }
  defer { close(descriptor) }
  let bytes = [UInt8](data)
  var place = 0
  while place < bytes.count {
    let count = bytes[place...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count < 0 {
      let reason = errno
      if reason == EINTR { continue }
      throw CommandError(
        .inputOutput, code: reason == ENOSPC ? "disk_full" : "write_failed",
        "could not write \(path): \(String(cString: strerror(reason)))",
        hint: "free some space and try again")
    }
    place += count
  }
}

/// Whether two paths lead to the same place, as far as their folders tell.
func isSamePlace(_ path: String, _ other: String) -> Bool {
  func place(_ path: String) -> String {
    let path = absolutePath(path)
    let slash = path.lastIndex(of: "/") ?? path.startIndex
    guard let folder = realpath(String(path[...slash]), nil) else { return path }
    defer { free(folder) }
    return "\(String(cString: folder))/\(path[path.index(after: slash)...])"
  }
  return place(path) == place(other)
}

/// Reads a small file of text whole.
func readText(_ path: String) throws -> String {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else {
    let reason = errno
    throw CommandError(
      reason == EACCES ? .noPermission : .noInput,
      code: reason == EACCES ? "no_permission" : "file_not_found",
      "could not open \(path): \(String(cString: strerror(reason)))",
      hint: "check the name and its permissions")
  }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var block = [UInt8](repeating: 0, count: 1 << 16)
  // A project is text of some kilobytes; a movie given by mistake is not read whole.
  while bytes.count < 64 << 20 {
    let count = block.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
    if count == 0 { break }
    if count < 0 {
      let reason = errno
      if reason == EINTR { continue }
      throw CommandError(
        .inputOutput, code: "read_failed",
        "could not read \(path): \(String(cString: strerror(reason)))", hint: "check the disk")
    }
    bytes += block[..<count]
  }
  return String(decoding: bytes, as: UTF8.self)
}

/// A path from the root, without looking whether anything is there.
func absolutePath(_ path: String) -> String {
  guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
  defer { free(folder) }
  return String(cString: folder) + "/" + path
}
