// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// File names as strings, without loss of bytes.
///
/// A Linux file name may contain any byte except zero and slash, but a `String` contains only
/// Unicode. A byte that is not valid UTF-8 becomes the private-use character U+10FF00 plus the
/// byte. If a name itself contains such a character, its bytes are escaped too, so ``systemBytes``
/// always restores the original bytes.
extension String {
  /// The characters that stand for the bytes 0x80 to 0xFF.
  ///
  /// A byte below 0x80 is always valid UTF-8.
  private static let escapes: ClosedRange<UInt32> = 0x10_FF80...0x10_FFFF
  private static let escapeBase: UInt32 = 0x10_FF00

  /// Makes a string from the bytes of a file name or program argument.
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

  /// Makes a string from a null-terminated C file name.
  package init(systemPath name: UnsafePointer<CChar>) {
    self.init(systemBytes: UnsafeRawBufferPointer(start: name, count: strlen(name)))
  }

  /// The original bytes of the file name.
  package var systemBytes: [UInt8] {
    guard mayHoldEscapes else { return Array(utf8) }
    return unicodeScalars.flatMap { scalar in
      Self.escapes.contains(scalar.value)
        ? [UInt8(scalar.value - Self.escapeBase)] : Array(UTF8.encode(scalar) ?? .init())
    }
  }

  /// The original bytes with a terminating null, for C calls.
  package var systemPath: [CChar] { systemBytes.map { CChar(bitPattern: $0) } + [0] }

  /// The text with U+FFFD for each byte that is not valid UTF-8, for JSON and metadata.
  package var repaired: String {
    guard mayHoldEscapes else { return self }
    var text = UnicodeScalarView()
    for scalar in unicodeScalars {
      text.append(Self.escapes.contains(scalar.value) ? "\u{FFFD}" : scalar)
    }
    return String(text)
  }

  /// The original bytes in one line without characters that control a terminal.
  ///
  /// Titles, marks and file names come from outside the program, so every line that a user sees is
  /// printed through this property. Control characters, line breaks and marks that reverse the
  /// direction of text become escapes such as `\u{1B}`, and a single byte that some terminals take
  /// for a control character becomes `\x9B`. All other bytes are kept, because a file name need not
  /// be valid UTF-8.
  package var terminalBytes: [UInt8] {
    if utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return Array(utf8) }
    var shown: [UInt8] = []
    var parser = Unicode.UTF8.ForwardParser()
    let bytes = systemBytes
    var input = bytes.makeIterator()
    var offset = 0
    while true {
      switch parser.parseScalar(from: &input) {
      case .emptyInput: return shown
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        shown +=
          scalar.controlsTerminal ? Array(scalar.escaped(asASCII: true).utf8) : Array(encoded)
        offset += encoded.count
      case .error(let length):
        for byte in bytes[offset..<offset + length] {
          let isControl = (0x80...0x9F).contains(byte)
          shown += isControl ? Array("\\x\(String(byte, radix: 16, uppercase: true))".utf8) : [byte]
        }
        offset += length
      }
    }
  }

  /// Whether the text contains a character that ``terminalBytes`` escapes.
  package var controlsTerminal: Bool { terminalBytes != systemBytes }

  /// Whether the text may contain an escape, because its UTF-8 contains the byte 0xF4.
  ///
  /// This byte is rare in file names, so most names need no further test.
  private var mayHoldEscapes: Bool { utf8.contains(0xF4) }

  /// The last component of the path, or the whole text if the path has none.
  package var lastPathComponent: String { FilePath(self).lastComponent?.string ?? self }

  /// The path's directory, or `.` if the path has none.
  package var parentDirectory: String {
    let parent = FilePath(self).removingLastComponent()
    return parent.isEmpty ? "." : parent.string
  }

  /// The path of another name in the same directory.
  package func replacingLastPathComponent(with name: String) -> String {
    FilePath(self).removingLastComponent().appending(name).string
  }

  /// The path without the file extension.
  ///
  /// The rest of the path is not normalized.
  package var withoutExtension: String {
    let start = lastIndex(of: "/").map(index(after:)) ?? startIndex
    guard let dot = self[start...].lastIndex(of: "."), dot > start else { return self }
    return String(self[..<dot])
  }

  /// The last component of the path without its file extension.
  package var fileStem: String { FilePath(self).stem ?? self }

  /// The extension of the file name in lower case.
  ///
  /// Nil if the file name has no extension.
  package var fileExtension: String? { FilePath(self).extension?.lowercased() }
}

extension Unicode.Scalar {
  /// Whether a terminal may obey the character, or show the text after it at another position.
  fileprivate var controlsTerminal: Bool {
    switch value {
    case 0x061C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
    default:
      [.control, .lineSeparator, .paragraphSeparator].contains(properties.generalCategory)
    }
  }
}
