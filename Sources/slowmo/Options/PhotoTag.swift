// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import OvercrankLinuxSystem

/// A tag of `photo --tag`: `Artist=Ada` for Exif, `dc:title=Goal` for XMP.
struct PhotoTag {
  let name: String
  let value: String

  init(parsing text: String) throws {
    guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
      throw ValidationError("\(text.repaired) is not a tag such as Artist=Ada or dc:title=Goal")
    }
    name = String(text[..<sign]).repaired
    value = String(text[text.index(after: sign)...]).repaired
  }

  var isXMP: Bool { name.contains(":") }
}
