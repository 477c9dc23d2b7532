// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc

/// Read access to `/dev`, `/proc` and `/sys`.
///
/// A missing entry gives nil, not an error.
package enum SystemFiles {
  /// The type of a file, with symbolic links followed.
  package enum Kind: Sendable {
    /// A regular file.
    case regular
    /// A directory.
    case directory
    /// A character device, such as a camera's node.
    case characterDevice
    /// A pipe, socket or block device.
    case other
  }

  /// The type of the file at a path; nil if stat(2) fails.
  package static func kind(of path: String) -> Kind? {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else { return nil }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return .regular
    case S_IFDIR: return .directory
    case S_IFCHR: return .characterDevice
    default: return .other
    }
  }

  /// Whether a file or device node is at a path, or at the end of a symbolic link.
  package static func exists(_ path: String) -> Bool { access(path.systemPath, F_OK) == 0 }

  /// Whether a directory has an entry at a path, which may be a symbolic link that leads nowhere.
  package static func isEntry(_ path: String) -> Bool { entryStatus(path) != nil }

  /// Whether the last component of a path is a symbolic link.
  package static func isSymbolicLink(_ path: String) -> Bool {
    entryStatus(path).map { $0.st_mode & S_IFMT } == S_IFLNK
  }

  /// Whether a path leads to a named pipe.
  static func isPipe(_ path: String) -> Bool {
    var status = stat()
    return stat(path.systemPath, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
  }

  /// The status of a directory entry.
  ///
  /// A symbolic link is not followed. Nil if the name is free.
  static func entryStatus(_ path: String) -> stat? {
    var status = stat()
    return lstat(path.systemPath, &status) == 0 ? status : nil
  }

  /// Whether only the owner of the file at a path has permissions on it.
  package static func isForOwnerOnly(_ path: String) -> Bool {
    var status = stat()
    return stat(path.systemPath, &status) == 0 && status.st_mode & 0o077 == 0
  }

  /// Whether the file exists but this user may not both read and write it.
  package static func isForbidden(_ path: String) -> Bool {
    access(path.systemPath, F_OK) == 0 && access(path.systemPath, R_OK | W_OK) != 0
  }

  /// The name of the group whose members may read and write the file at a path.
  ///
  /// Nil if the file does not exist, if its group may not do both, or if the group has no name.
  package static func permittedGroup(_ path: String) -> String? {
    var status = stat()
    guard stat(path.systemPath, &status) == 0, status.st_mode & 0o060 == 0o060 else { return nil }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer in
      var entry = group()
      var found: UnsafeMutablePointer<group>?
      guard
        getgrgid_r(status.st_gid, &entry, buffer.baseAddress, buffer.count, &found) == 0,
        let found, let name = found.pointee.gr_name
      else { return nil }
      return String(cString: name)
    }
  }

  /// The names in a directory, unsorted and without `.` and `..`.
  ///
  /// Bytes that are not valid UTF-8 are kept. Empty if the directory cannot be read.
  package static func entries(in path: String) -> [String] {
    guard let directory = opendir(path.systemPath) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(systemBytes: bytes.prefix { $0 != 0 })
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// The target of a symbolic link; nil for other files and unreadable links.
  package static func linkTarget(_ path: String) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
      guard let start = buffer.baseAddress else { return nil }
      let count = readlink(path.systemPath, start, buffer.count)
      guard count >= 0 else { return nil }
      return String(systemBytes: UnsafeRawBufferPointer(buffer).prefix(count))
    }
  }

  /// The path with all symbolic links resolved; nil if it does not exist.
  package static func resolved(_ path: String) -> String? {
    guard let real = realpath(path.systemPath, nil) else { return nil }
    defer { free(real) }
    return String(systemPath: real)
  }

  /// The first line of a small text file such as those in `/sys`; nil if empty or unreadable.
  package static func firstLine(of path: String) -> String? {
    guard let line = lines(of: path, upTo: 1).first, !line.isEmpty else { return nil }
    return line
  }

  /// The first lines of a text file.
  ///
  /// Lines are split after 255 bytes. Empty if the file cannot be read.
  package static func lines(of path: String, upTo limit: Int = 1_000) -> [String] {
    guard let file = fopen(path.systemPath, "re") else { return [] }
    defer { fclose(file) }
    var lines: [String] = []
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let start = buffer.baseAddress else { return }
      while lines.count < limit, fgets(start, 256, file) != nil {
        lines.append(String(text(UnsafeRawBufferPointer(buffer)).prefix { $0 != "\n" }))
      }
    }
    return lines
  }

  /// The first bytes of a small file such as those in `/sys`.
  ///
  /// Empty if the file cannot be read.
  package static func bytes(of path: String, upTo limit: Int = 4_096) -> [UInt8] {
    guard let file = fopen(path.systemPath, "re") else { return [] }
    defer { fclose(file) }
    return [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
      count = fread(buffer.baseAddress, 1, limit, file)
    }
  }

  /// The text up to the first zero byte, or all of it.
  ///
  /// Invalid UTF-8 is replaced.
  package static func text(_ bytes: UnsafeRawBufferPointer) -> String {
    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  }
}
