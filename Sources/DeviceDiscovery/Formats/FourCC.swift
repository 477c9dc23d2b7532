// SPDX-License-Identifier: Apache-2.0

/// A V4L2 pixel format code of four characters, such as `YUYV`.
public struct FourCC: RawRepresentable, Hashable, Sendable {
  /// The characters, the first in the lowest byte.
  ///
  /// Bit 31 marks a big-endian format.
  public let rawValue: UInt32

  private static let bigEndian: UInt32 = 1 << 31
  private static let bigEndianMark = "-be"

  /// Creates a code from its V4L2 number.
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Parses a code as ``description`` writes it: `YUYV`, `Y16`, `Y16-BE`, `0x00000001`.
  ///
  /// Codes are case-sensitive. Returns nil for invalid text.
  public init?(_ text: String) {
    if text.utf8.count == 10, text.hasPrefix("0x"),
      let number = UInt32(text.dropFirst(2), radix: 16)
    {
      self.init(rawValue: number)
      return
    }
    var characters = Array(text.utf8)
    var number: UInt32 = 0
    if text.lowercased().hasSuffix(Self.bigEndianMark) {
      characters.removeLast(Self.bigEndianMark.utf8.count)
      number = Self.bigEndian
    }
    guard (1...4).contains(characters.count), characters.allSatisfy(Self.isPlain) else {
      return nil
    }
    characters += Array(repeating: UInt8(ascii: " "), count: 4 - characters.count)
    for (index, character) in characters.enumerated() {
      number |= UInt32(character) << (8 * UInt32(index))
    }
    guard number & ~Self.bigEndian != 0x2020_2020 else { return nil }
    self.init(rawValue: number)
  }

  /// Whether a text is the name of this code, ignoring case.
  ///
  /// Few codes differ only in case, such as `pGAA` and `pgAA`, two packed Bayer formats.
  public func isNamed(_ text: String) -> Bool { description.lowercased() == text.lowercased() }

  /// Whether a character may occur in a mode such as `640x480@60/yuyv`.
  private static func isPlain(_ character: UInt8) -> Bool {
    (0x20...0x7e).contains(character) && character != UInt8(ascii: "/")
      && character != UInt8(ascii: "@")
  }
}

extension FourCC: CustomStringConvertible {
  /// The characters as `v4l2-ctl` prints them, without trailing spaces.
  ///
  /// Big-endian formats end in `-BE`. A code is written as a hexadecimal number if it consists of
  /// digits only, or if it has characters that are not allowed in a mode's text form.
  public var description: String {
    let characters = (0..<4).map {
      UInt8(truncatingIfNeeded: (rawValue & ~Self.bigEndian) >> (8 * $0))
    }
    let count = (characters.lastIndex { $0 != UInt8(ascii: " ") } ?? -1) + 1
    let isNumber = characters.prefix(count).allSatisfy { (0x30...0x39).contains($0) }
    let text = String(decoding: characters.prefix(count), as: UTF8.self)
    guard count > 0, !isNumber, characters.allSatisfy(Self.isPlain),
      !text.lowercased().hasSuffix(Self.bigEndianMark)
    else {
      let digits = String(rawValue, radix: 16)
      return "0x" + String(repeating: "0", count: 8 - digits.count) + digits
    }
    return rawValue & Self.bigEndian == 0 ? text : text + Self.bigEndianMark.uppercased()
  }
}

extension FourCC {
  /// Motion JPEG.
  public static let mjpg = FourCC(rawValue: 0x4750_4A4D)
  /// Packed 4:2:2 in the order Y, Cb, Y, Cr.
  public static let yuyv = FourCC(rawValue: 0x5659_5559)
  /// 8-bit gray.
  public static let gray = FourCC(rawValue: 0x5945_5247)
  /// Planar 4:2:0 with three planes: Y, Cb, Cr.
  public static let yu12 = FourCC(rawValue: 0x3231_5559)
  /// H.264 as an Annex B byte stream with start codes.
  public static let h264 = FourCC(rawValue: 0x3436_3248)
}
