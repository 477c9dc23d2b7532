// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

/// Writes files under the first free number in a series of names.
enum NumberedFile {
  /// Writes a file as `PREFIX0001.EXTENSION`, or with the next free number.
  ///
  /// - Returns: The name of the file.
  /// - Throws: `MediaError` if the file cannot be written.
  static func write(
    _ bytes: [UInt8], prefix: String, extension: String
  ) throws(MediaError) -> String {
    var number = 1
    while true {
      let digits = String(number)
      let zeros = String(repeating: "0", count: max(0, 4 - digits.count))
      let name = "\(prefix)\(zeros)\(digits).\(`extension`)"
      number += 1
      if SystemFiles.isEntry(name) { continue }
      do throws(CallFailure) {
        try WholeFile.write(bytes, to: name, overwrites: false)
        return name
      } catch {
        guard error.kind == .nameTaken else { throw MediaError(creating: error) }
      }
    }
  }
}
