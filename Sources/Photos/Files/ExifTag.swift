// SPDX-License-Identifier: Apache-2.0

/// A field of Exif metadata whose value is given as text.
struct ExifTag {
  enum Directory { case image, exif }
  private enum Kind { case ascii, short, long, rational, signedRational }

  let name: String
  let number: UInt16
  let directory: Directory
  private let kind: Kind

  /// All supported fields, by their names in the Exif standard.
  static let all: [ExifTag] = [
    ExifTag("ImageDescription", 0x010E, .image, .ascii),
    ExifTag("Make", 0x010F, .image, .ascii),
    ExifTag("Model", 0x0110, .image, .ascii),
    ExifTag("Orientation", 0x0112, .image, .short),
    ExifTag("Software", 0x0131, .image, .ascii),
    ExifTag("DateTime", 0x0132, .image, .ascii),
    ExifTag("Artist", 0x013B, .image, .ascii),
    ExifTag("Copyright", 0x8298, .image, .ascii),
    ExifTag("ExposureTime", 0x829A, .exif, .rational),
    ExifTag("FNumber", 0x829D, .exif, .rational),
    ExifTag("ExposureProgram", 0x8822, .exif, .short),
    ExifTag("ISOSpeedRatings", 0x8827, .exif, .short),
    ExifTag("DateTimeOriginal", 0x9003, .exif, .ascii),
    ExifTag("DateTimeDigitized", 0x9004, .exif, .ascii),
    ExifTag("OffsetTime", 0x9010, .exif, .ascii),
    ExifTag("OffsetTimeOriginal", 0x9011, .exif, .ascii),
    ExifTag("OffsetTimeDigitized", 0x9012, .exif, .ascii),
    ExifTag("ExposureBiasValue", 0x9204, .exif, .signedRational),
    ExifTag("SubjectDistance", 0x9206, .exif, .rational),
    ExifTag("MeteringMode", 0x9207, .exif, .short),
    ExifTag("LightSource", 0x9208, .exif, .short),
    ExifTag("Flash", 0x9209, .exif, .short),
    ExifTag("FocalLength", 0x920A, .exif, .rational),
    ExifTag("SubSecTime", 0x9290, .exif, .ascii),
    ExifTag("SubSecTimeOriginal", 0x9291, .exif, .ascii),
    ExifTag("SubSecTimeDigitized", 0x9292, .exif, .ascii),
    ExifTag("ColorSpace", 0xA001, .exif, .short),
    ExifTag("PixelXDimension", 0xA002, .exif, .long),
    ExifTag("PixelYDimension", 0xA003, .exif, .long),
    ExifTag("ExposureMode", 0xA402, .exif, .short),
    ExifTag("WhiteBalance", 0xA403, .exif, .short),
    ExifTag("FocalLengthIn35mmFilm", 0xA405, .exif, .short),
    ExifTag("SceneCaptureType", 0xA406, .exif, .short),
    ExifTag("ImageUniqueID", 0xA420, .exif, .ascii),
    ExifTag("CameraOwnerName", 0xA430, .exif, .ascii),
    ExifTag("BodySerialNumber", 0xA431, .exif, .ascii),
    ExifTag("LensMake", 0xA433, .exif, .ascii),
    ExifTag("LensModel", 0xA434, .exif, .ascii),
    ExifTag("LensSerialNumber", 0xA435, .exif, .ascii),
  ]

  private init(_ name: String, _ number: UInt16, _ directory: Directory, _ kind: Kind) {
    (self.name, self.number, self.directory, self.kind) = (name, number, directory, kind)
  }

  /// Converts text to a value of this field.
  ///
  /// Returns nil if the field cannot store that value.
  func value(_ text: String) -> TIFFValue? {
    switch kind {
    case .ascii: text.isEmpty || text.utf8.contains(0) ? nil : .ascii(text)
    case .short: UInt16(text).map { .short($0) }
    case .long: UInt32(text).map { .long($0) }
    case .rational:
      Self.fraction(text).flatMap { fraction in
        guard let above = UInt32(exactly: fraction.above),
          let below = UInt32(exactly: fraction.below)
        else { return nil }
        return .rationals([above, below])
      }
    case .signedRational:
      Self.fraction(text).flatMap { fraction in
        guard let above = Int32(exactly: fraction.above), let below = Int32(exactly: fraction.below)
        else { return nil }
        return .signedRational(above, below)
      }
    }
  }

  /// Parses a fraction or decimal number such as `1/500`, `2.8` or `25` to a numerator and a
  /// denominator.
  private static func fraction(_ text: String) -> (above: Int64, below: Int64)? {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    if parts.count == 2, let above = Int64(parts[0]), let below = Int64(parts[1]), below > 0 {
      return (above, below)
    }
    let digits = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 1, digits.count <= 2, let first = digits.first else { return nil }
    let decimals = digits.count == 2 ? digits[1] : ""
    guard decimals.count <= 6, decimals.allSatisfy({ $0.isASCII && $0.isNumber }),
      let above = Int64(first + decimals)
    else { return nil }
    return (above, decimals.reduce(1) { power, _ in power * 10 })
  }
}
