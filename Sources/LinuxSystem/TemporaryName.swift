// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore
import Synchronization

/// Names of temporary files in the directory of their target file.
package enum TemporaryName {
  /// The kinds of temporary file: `part` is being written and locked, `old` was moved aside for a new
  /// file, and `gone` was moved aside to be removed.
  package static let (part, old, gone) = ("part", "old", "gone")

  /// The maximum length of a Linux file name in bytes (NAME_MAX).
  private static let maximumBytes = 255

  /// Returns a hidden name `.PID.KIND.NAME` in the target's directory, with the target's extension.
  ///
  /// If the result would exceed 255 bytes, the start of the target's name is dropped.
  ///
  /// - Parameters:
  ///   - path: The target file.
  ///   - kind: ``part``, ``old`` or ``gone``.
  ///   - attempt: A number that makes the name distinct.
  /// - Returns: A path whose last component has at most 255 bytes.
  package static func beside(_ path: String, _ kind: String, attempt: Int = 0) -> String {
    let process = attempt == 0 ? "\(getpid())" : "\(getpid())-\(attempt)"
    return path.replacingLastPathComponent(with: mark(process, kind, path.lastPathComponent))
  }

  /// Returns a temporary name that is free at present.
  static func free(beside path: String, _ kind: String) -> String {
    for attempt in 0..<attempts {
      let name = beside(path, kind, attempt: attempt)
      if FileIdentity(ofName: name) == nil { return name }
    }
    return beside(path, kind, attempt: attempts)
  }

  /// Creates a file with a temporary name.
  ///
  /// - Returns: The descriptor, open for reading and writing, and the path.
  /// - Throws: `CallFailure` that names the target path.
  package static func create(
    beside path: String, _ kind: String
  ) throws(CallFailure) -> (descriptor: Int32, path: String) {
    for attempt in 0..<attempts {
      let name = beside(path, kind, attempt: attempt)
      let descriptor = open(name.systemPath, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
      if descriptor >= 0 { return (descriptor, name) }
      // EEXIST: an earlier process with the same ID, or a process in another container, left a file
      // with this name. The next temporary name is tried.
      guard errno == EEXIST else { throw CallFailure.creating(path, errno) }
    }
    throw CallFailure.creating(path, EEXIST)
  }

  /// Creates a file with a temporary name, and locks it.
  ///
  /// The lock shows that the file is in use and not abandoned. It ends with the process, even as
  /// seen from another computer that shares the network disk.
  ///
  /// - Parameters:
  ///   - path: The target file.
  ///   - kind: ``part`` or ``old``.
  ///   - name: The path that the open file states in errors. Nil for its temporary path.
  /// - Returns: The open file, and its path.
  /// - Throws: `CallFailure` that names the target path.
  package static func createLocked(
    beside path: String, _ kind: String, named name: String? = nil
  ) throws(CallFailure) -> (file: OpenFile, path: String) {
    for _ in 0..<attempts {
      let made = try create(beside: path, kind)
      let file = OpenFile(adopting: made.descriptor, path: name ?? made.path)
      var status = stat()
      // Another process may have found the file before it was locked, and removed it.
      if FileLock.take(made.descriptor), fstat(made.descriptor, &status) == 0, status.st_nlink > 0 {
        return (file, made.path)
      }
    }
    throw CallFailure.creating(path, EBUSY)
  }

  /// The temporary files of earlier processes in each directory, listed when the directory is first
  /// used.
  ///
  /// A process may write many files into a large directory, so the directory is listed only once.
  private static let earlier = Mutex<[String: [String]]>([:])

  /// Removes the files of the kind ``part`` that killed processes left beside a target, as
  /// ``removeAbandoned(of:)`` does.
  ///
  /// A directory is listed at the first call of the process, so later files are not found.
  package static func removeEarlier(beside path: String) {
    let directory = path.parentDirectory
    let names = earlier.withLock { earlier in
      let names = earlier[directory] ?? parts(in: directory)
      earlier[directory] = names
      return names
    }
    for name in names where process(in: name, part, of: path.lastPathComponent) != nil {
      _ = remove(path.replacingLastPathComponent(with: name))
    }
  }

  private static func parts(in directory: String) -> [String] {
    SystemFiles.entries(in: directory).filter { $0.hasPrefix(".") && $0.contains(".\(part).") }
  }

  /// Removes the files of the kind ``part`` that killed processes left beside their targets.
  ///
  /// A file whose lock is held stays, and so does every file on a file system without locks. The
  /// files of a target that is a symbolic link are beside the file that it points to.
  ///
  /// - Parameter targets: The target files.
  /// - Returns: The targets of the removed files.
  package static func removeAbandoned(of targets: [String]) -> Set<String> {
    var abandoned: Set<String> = []
    let files = targets.map { (target: $0, path: SystemFiles.resolved($0) ?? $0) }
    for (directory, files) in Dictionary(grouping: files, by: \.path.parentDirectory) {
      for name in parts(in: directory) {
        let owner = files.first { process(in: name, part, of: $0.path.lastPathComponent) != nil }
        guard let owner else { continue }
        if remove(owner.path.replacingLastPathComponent(with: name)) {
          abandoned.insert(owner.target)
        }
      }
    }
    return abandoned
  }

  /// Removes a temporary file if no process holds its lock, and returns true if the file was
  /// removed.
  private static func remove(_ path: String) -> Bool {
    // On NFS, an exclusive lock needs a file that is open for writing.
    let descriptor = open(path.systemPath, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_EX | LOCK_NB) == 0 && unlink(path.systemPath) == 0
  }

  /// The number of temporary names to try before giving up.
  private static let attempts = 100

  /// The process ID in a file name, if it is the name of a temporary file of the given kind and
  /// target; otherwise nil.
  package static func process(in found: String, _ kind: String, of name: String) -> String? {
    let process = String(found.dropFirst().prefix { $0.isASCII && ($0.isWholeNumber || $0 == "-") })
    return !process.isEmpty && found == mark(process, kind, name) ? process : nil
  }

  private static func mark(_ process: String, _ kind: String, _ name: String) -> String {
    let mark = ".\(process).\(kind)."
    let space = maximumBytes - mark.utf8.count
    guard name.systemBytes.count > space else { return mark + name }
    var rest = name.unicodeScalars[...]
    while rest.reduce(0, { $0 + String($1).systemBytes.count }) > space {
      rest = rest.dropFirst()
    }
    return mark + String(String.UnicodeScalarView(rest))
  }
}
