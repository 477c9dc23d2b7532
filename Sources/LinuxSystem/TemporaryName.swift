// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Names of files that are not finished, or were put aside, beside the file that they belong to.
package enum TemporaryName {
  /// The kind of a file that is being written, and of one that was put aside.
  package static let (part, old) = ("part", "old")

  /// Bytes that a name may have on Linux.
  private static let maximumBytes = 255

  /// A name in the folder of a file: `.PID.KIND.NAME`, hidden, with the file's extension at its end.
  ///
  /// Where the file's name leaves no room for what is added, its beginning is left out.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - kind: What the name is for.
  ///   - attempt: Another number makes another name.
  /// - Returns: The path, whose last part has 255 bytes at most.
  package static func beside(_ path: String, _ kind: String, attempt: Int = 0) -> String {
    let (folder, name) = path.folderAndName
    let process = attempt == 0 ? "\(getpid())" : "\(getpid())-\(attempt)"
    return folder + mark(process, kind, name)
  }

  /// A name that no file has now.
  static func free(beside path: String, _ kind: String) -> String {
    for attempt in 0..<attempts {
      let name = beside(path, kind, attempt: attempt)
      if FileIdentity(ofName: name) == nil { return name }
    }
    return beside(path, kind, attempt: attempts)
  }

  /// Creates a file under such a name.
  ///
  /// - Returns: Its descriptor, for reading and writing, and its name.
  /// - Throws: `FileCreationError` for the path.
  package static func create(
    beside path: String, _ kind: String
  ) throws(FileCreationError) -> (descriptor: Int32, path: String) {
    for attempt in 0..<attempts {
      let name = beside(path, kind, attempt: attempt)
      let descriptor = open(name.systemPath, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
      if descriptor >= 0 { return (descriptor, name) }
      // Left behind by a process of this number, or of one in another container.
      guard errno == EEXIST else { throw FileCreationError(path: path, errorNumber: errno) }
    }
    throw FileCreationError(path: path, errorNumber: EEXIST)
  }

  /// Other names that are tried where one is taken.
  private static let attempts = 100

  /// The number of the process that gave a file's name this mark; nil for any other name.
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
