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
  // A project is text of some kilobytes; a movie given by mistake is not read whole.
  String(decoding: try readBytes(path, from: { _ in 0 }, 64 << 20), as: UTF8.self)
}

/// Reads so many bytes of a file, or what there is, from a place that may depend on its size.
private func readBytes(
  _ path: String, from place: (_ size: Int) -> Int, _ limit: Int
) throws -> [UInt8] {
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
  var status = stat()
  // A pipe has no size and no places; it is read as it comes.
  if fstat(descriptor, &status) == 0 {
    let start = place(Int(status.st_size))
    if start > 0 { lseek(descriptor, start, SEEK_SET) }
  }
  var bytes: [UInt8] = []
  var block = [UInt8](repeating: 0, count: min(limit, 1 << 16))
  while bytes.count < limit {
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
  return bytes
}

/// The names in a folder; none where it cannot be read.
func namesInFolder(_ path: String) -> [String] {
  guard let folder = opendir(path) else { return [] }
  defer { closedir(folder) }
  var names: [String] = []
  while let entry = readdir(folder) {
    let capacity = MemoryLayout.size(ofValue: entry.pointee.d_name)
    names.append(
      withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: capacity) { String(cString: $0) }
      })
  }
  return names
}

/// Whether a file begins as MP4 and MOV do.
func isMovie(_ path: String) throws -> Bool {
  var status = stat()
  // What comes through a pipe can be read once.
  guard stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG else { return false }
  return try readBytes(path, from: { _ in 0 }, 12).dropFirst(4).prefix(4).elementsEqual("ftyp".utf8)
}

/// The last bytes of a file, all of a shorter one.
func readTail(_ path: String, _ count: Int) throws -> [UInt8] {
  try readBytes(path, from: { max(0, $0 - count) }, count)
}

/// A path from the root, without looking whether anything is there.
func absolutePath(_ path: String) -> String {
  guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
  defer { free(folder) }
  return String(cString: folder) + "/" + path
}
