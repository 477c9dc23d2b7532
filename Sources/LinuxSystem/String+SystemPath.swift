// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// File names as strings, byte for byte.
///
/// Linux allows any bytes in a name but zero and the slash; a `String` holds Unicode alone. A byte
/// that is no part of UTF-8 stands in the string as the private character U+10FF00 plus the byte.
/// Such characters in a name are escaped in the same way, byte by byte, so that ``systemBytes``
/// always gives back what came in.
extension String {
  /// The escaped bytes: no byte below 0x80 is ever invalid.
  private static let escapes: ClosedRange<UInt32> = 0x10_FF80...0x10_FFFF
  private static let escapeBase: UInt32 = 0x10_FF00

  /// Reads a name or an argument as the system gives it.
  package init(systemBytes bytes: some Collection<UInt8>) {
    if let text = String(validating: bytes, as: UTF8.self), !text.mayHoldEscapes {
      self = text
      return
    }
    var text = UnicodeScalarView()
    var parser = Unicode.UTF8.ForwardParser()
    var input = bytes.makeIterator()
    var rest = bytes[...]
    while true {
      var count = 0
      switch parser.parseScalar(from: &input) {
      case .emptyInput:
        self = String(text)
        return
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        if Self.escapes.contains(scalar.value) {
          count = encoded.count
        } else {
          text.append(scalar)
          rest = rest.dropFirst(encoded.count)
        }
      case .error(let length): count = length
      }
      for byte in rest.prefix(count) {
        text.append(Unicode.Scalar(Self.escapeBase + UInt32(byte)) ?? "\u{FFFD}")
      }
      rest = rest.dropFirst(count)
    }
  }

  /// Reads a name that ends with a zero, as C gives it.
  package init(systemPath name: UnsafePointer<CChar>) {
    self.init(systemBytes: UnsafeRawBufferPointer(start: name, count: strlen(name)))
  }

  /// The bytes of the name as the system has them.
  package var systemBytes: [UInt8] {
    guard mayHoldEscapes else { return Array(utf8) }
    return unicodeScalars.flatMap { scalar in
      Self.escapes.contains(scalar.value)
        ? [UInt8(scalar.value - Self.escapeBase)] : Array(UTF8.encode(scalar) ?? .init())
    }
  }

  /// The bytes of the name with a zero behind them, for calls of C.
  package var systemPath: [CChar] { systemBytes.map { CChar(bitPattern: $0) } + [0] }

  /// The text with U+FFFD for each byte that is no part of UTF-8, for JSON and tags.
  package var repaired: String {
    guard mayHoldEscapes else { return self }
    var text = UnicodeScalarView()
    for scalar in unicodeScalars {
      text.append(Self.escapes.contains(scalar.value) ? "\u{FFFD}" : scalar)
    }
    return String(text)
  }

  /// Whether a character of the last private plane is in the text; few names have one.
  private var mayHoldEscapes: Bool { utf8.contains(0xF4) }

  /// The last part of the path, without a slash; all of it where there is none.
  package var lastPathComponent: String { FilePath(self).lastComponent?.string ?? self }

  /// The path's folder with its slash, and its name.
  package var folderAndName: (folder: String, name: String) {
    // By bytes: a mark that combines with the slash makes one character of both.
    guard let slash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return ("", self) }
    let start = utf8.index(after: slash)
    return (String(self[..<start]), String(self[start...]))
  }

  /// The extension of the path's name in small letters; nil where there is none.
  package var fileExtension: String? {
    let name = folderAndName.name
    return name.lastIndex(of: ".").map { name[name.index(after: $0)...].lowercased() }
  }
}
