// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankMediaCore

/// The Exif metadata of a photo, which is stored as a TIFF structure.
///
/// Fields whose values are unknown are omitted. If the standard requires such a field, it contains
/// the value that the standard defines for "unknown".
struct ExifMetadata {
  /// The values by the Exif names of the fields.
  let values: [String: String]
  private let location: GeographicLocation?

  init(_ values: [String: String], _ location: GeographicLocation?) {
    var all = values
    // A camera captures, digitizes and writes the image at the same time, so the Exif fields of
    // these three times have the same value.
    for (name, copies) in Self.copies {
      for copy in copies where all[copy] == nil { all[copy] = values[name] }
    }
    if all["Software"] == nil { all["Software"] = "Overcrank" }
    self.values = all
    self.location = location
  }

  private static let copies = [
    "DateTimeOriginal": ["DateTimeDigitized", "DateTime"],
    "SubSecTimeOriginal": ["SubSecTimeDigitized", "SubSecTime"],
    "OffsetTimeOriginal": ["OffsetTimeDigitized", "OffsetTime"],
  ]

  /// Returns the TIFF structure.
  ///
  /// - Parameters:
  ///   - isJPEG: Whether the file is a JPEG file, which requires additional fields.
  ///   - thumbnail: A JPEG image without metadata, or nil.
  ///   - contentIdentifier: The identifier of a Live Photo, or nil.
  /// - Returns: The bytes of the structure, beginning with the TIFF header.
  func bytes(
    isJPEG: Bool, thumbnail: [UInt8]?, contentIdentifier: String? = nil
  ) -> [UInt8] {
    var image = imageDirectory
    var exif = exifDirectory
    if isJPEG {
      image.fields[0x0213] = .short(1)
      exif.fields[0x9101] = .undefined([1, 2, 3, 0])
    }
    if let contentIdentifier {
      exif.fields[0x927C] = .undefined(AppleMakerNote.bytes(contentIdentifier: contentIdentifier))
    }
    let gps = gpsDirectory
    // The size of a directory does not depend on the pointers in it, so zeros are stored until the
    // offsets are known.
    image.fields[Self.exifPointer] = .long(0)
    if gps != nil { image.fields[Self.gpsPointer] = .long(0) }
    let exifOffset = Self.headerSize + image.byteCount
    let gpsOffset = exifOffset + exif.byteCount
    let thumbnailOffset = gpsOffset + (gps?.byteCount ?? 0)
    image.fields[Self.exifPointer] = .long(UInt32(exifOffset))
    if gps != nil { image.fields[Self.gpsPointer] = .long(UInt32(gpsOffset)) }
    var result = Self.header
    result += image.bytes(
      at: Self.headerSize, next: thumbnail == nil ? 0 : thumbnailOffset)
    result += exif.bytes(at: exifOffset, next: 0)
    if let gps { result += gps.bytes(at: gpsOffset, next: 0) }
    if let thumbnail {
      var directory = TIFFDirectory()
      Self.addResolution(to: &directory)
      directory.fields[0x0103] = .short(6)  // JPEG compression
      directory.fields[0x0213] = .short(1)
      directory.fields[0x0201] = .long(0)
      directory.fields[0x0202] = .long(UInt32(thumbnail.count))
      directory.fields[0x0201] = .long(UInt32(thumbnailOffset + directory.byteCount))
      result += directory.bytes(at: thumbnailOffset, next: 0) + thumbnail
    }
    return result
  }

  /// The size of the TIFF header in bytes.
  static let headerSize = 8
  static let (exifPointer, gpsPointer): (UInt16, UInt16) = (0x8769, 0x8825)
  /// The TIFF header of a structure in which the first directory follows the header.
  static let header: [UInt8] = Array("MM".utf8) + [0, 42, 0, 0, 0, UInt8(headerSize)]

  /// The directory with the fields that describe the image.
  var imageDirectory: TIFFDirectory {
    var directory = TIFFDirectory(fields: fields(in: .image))
    Self.addResolution(to: &directory)
    return directory
  }

  /// The directory with the fields of the Exif standard.
  var exifDirectory: TIFFDirectory {
    var directory = TIFFDirectory(fields: fields(in: .exif))
    directory.fields[0x9000] = .undefined(Array("0232".utf8))
    directory.fields[0xA000] = .undefined(Array("0100".utf8))
    // 0xFFFF means an uncalibrated color space, which is stored unless the program states another
    // one.
    directory.fields[0xA001] = directory.fields[0xA001] ?? .short(0xFFFF)
    return directory
  }

  /// The directory with the fields of the location; nil without a location.
  var gpsDirectory: TIFFDirectory? { location.map(Self.directory) }

  /// The fields of one directory whose values are known.
  private func fields(in directory: ExifTag.Directory) -> [UInt16: TIFFValue] {
    var fields: [UInt16: TIFFValue] = [:]
    for tag in ExifTag.all where tag.directory == directory {
      fields[tag.number] = values[tag.name].flatMap(tag.value)
    }
    return fields
  }

  /// Adds a resolution of 72 dpi, which the standard defines for an unknown resolution.
  private static func addResolution(to directory: inout TIFFDirectory) {
    directory.fields[0x011A] = .rationals([72, 1])
    directory.fields[0x011B] = .rationals([72, 1])
    directory.fields[0x0128] = .short(2)
  }

  private static func directory(of location: GeographicLocation) -> TIFFDirectory {
    /// Converts an angle to degrees, minutes, and seconds with four decimals.
    func degrees(_ value: Double) -> TIFFValue {
      // The units are 1/36,000,000 of a degree, so 180 degrees do not fit in 32 bits.
      let units = UInt64((abs(value) * 36_000_000).rounded())
      let (minutes, seconds) = (UInt32(units / 600_000), UInt32(units % 600_000))
      return .rationals([minutes / 60, 1, minutes % 60, 1, seconds, 10_000])
    }
    var fields: [UInt16: TIFFValue] = [
      0: .bytes([2, 3, 0, 0]),
      1: .ascii(location.latitude < 0 ? "S" : "N"),
      2: degrees(location.latitude),
      3: .ascii(location.longitude < 0 ? "W" : "E"),
      4: degrees(location.longitude),
      0x12: .ascii("WGS-84"),
    ]
    if let altitude = location.altitude {
      fields[5] = .bytes([altitude < 0 ? 1 : 0])
      // The altitude in millimeters, or in whole meters if the millimeters do not fit in 32 bits.
      let millimeters = UInt32(exactly: (abs(altitude) * 1_000).rounded())
      let meters = UInt32(exactly: abs(altitude).rounded()) ?? .max
      fields[6] = .rationals(millimeters.map { [$0, 1_000] } ?? [meters, 1])
    }
    return TIFFDirectory(fields: fields)
  }
}

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

/// Apple's MakerNote, with the content identifier of a Live Photo.
enum AppleMakerNote {
  /// The bytes before the directory of fields: a name, a version and the byte order.
  static let prefix: [UInt8] = Array("Apple iOS".utf8) + [0, 0, 1] + Array("MM".utf8)
  static let identifierTag: UInt16 = 0x0011

  /// Returns a MakerNote that contains an identifier.
  ///
  /// The offsets in the note are relative to the start of the note.
  static func bytes(contentIdentifier: String) -> [UInt8] {
    let directory = TIFFDirectory(fields: [identifierTag: .ascii(contentIdentifier)])
    return prefix + directory.bytes(at: prefix.count, next: 0)
  }
}
