// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Names of files that are not finished, or were put aside, beside the file that they belong to.
package enum TemporaryName {
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

  /// The number of the process that gave a file's name this mark; nil for any other name.
  package static func process(in found: String, _ kind: String, of name: String) -> String? {
    let process = String(found.dropFirst().prefix { $0.isASCII && ($0.isWholeNumber || $0 == "-") })
    return !process.isEmpty && found == mark(process, kind, name) ? process : nil
  }

  private static func mark(_ process: String, _ kind: String, _ name: String) -> String {
    let mark = ".\(process).\(kind)."
    let room = maximumBytes - mark.utf8.count
    guard name.systemBytes.count > room else { return mark + name }
    var rest = name.unicodeScalars[...]
    while rest.reduce(0, { $0 + String($1).systemBytes.count }) > room {
      rest = rest.dropFirst()
    }
    return mark + String(String.UnicodeScalarView(rest))
  }
}
