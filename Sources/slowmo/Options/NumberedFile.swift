// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

/// Files with the first free number in their name.
enum NumberedFile {
  /// Writes a file as `PREFIX0001.EXTENSION`, or with the next number that is free.
  ///
  /// - Returns: Its name.
  /// - Throws: `MediaError` if it cannot be written.
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
      do throws(FileCreationError) {
        try WholeFile.write(bytes, to: name, overwrites: false)
        return name
      } catch {
        guard error.isNameTaken else { throw MediaError(error) }
      }
    }
  }
}
