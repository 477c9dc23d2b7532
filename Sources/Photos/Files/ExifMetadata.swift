// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The Exif metadata of a photo, and its TIFF structure.
///
/// Values that are not known are left out. The standard requires some fields in each file; they have
/// the values that it defines for "unknown".
struct ExifMetadata {
  /// The values by their Exif names.
  let values: [String: String]
  private let location: GeographicLocation?

  init(_ values: [String: String], _ location: GeographicLocation?) {
    var all = values
    // A camera digitizes an image when it is captured, and writes the file for the first time now.
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

  /// The TIFF structure.
  ///
  /// - Parameters:
  ///   - isJPEG: Whether the fields that describe JPEG's components are required.
  ///   - thumbnail: A JPEG image without metadata, or nil.
  ///   - contentIdentifier: The identifier of a Live Photo, or nil.
  /// - Returns: The bytes from the TIFF header on.
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
    // The pointers have their final size, so the offsets can be computed.
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
      directory.fields[0x0103] = .short(6)  // JPEG
      directory.fields[0x0213] = .short(1)
      directory.fields[0x0201] = .long(0)
      directory.fields[0x0202] = .long(UInt32(thumbnail.count))
      directory.fields[0x0201] = .long(UInt32(thumbnailOffset + directory.byteCount))
      result += directory.bytes(at: thumbnailOffset, next: 0) + thumbnail
    }
    return result
  }

  /// The size of the TIFF header.
  static let headerSize = 8
  static let (exifPointer, gpsPointer): (UInt16, UInt16) = (0x8769, 0x8825)
  /// The TIFF header of a structure whose first directory follows it.
  static let header: [UInt8] = Array("MM".utf8) + [0, 42, 0, 0, 0, UInt8(headerSize)]

  /// The fields that describe the image.
  var imageDirectory: TIFFDirectory {
    var directory = TIFFDirectory(fields: fields(in: .image))
    Self.addResolution(to: &directory)
    return directory
  }

  /// The fields of Exif.
  var exifDirectory: TIFFDirectory {
    var directory = TIFFDirectory(fields: fields(in: .exif))
    directory.fields[0x9000] = .undefined(Array("0232".utf8))
    directory.fields[0xA000] = .undefined(Array("0100".utf8))
    // The color space is unknown unless the program states it.
    directory.fields[0xA001] = directory.fields[0xA001] ?? .short(0xFFFF)
    return directory
  }

  /// The fields of the position, or nil without one.
  var gpsDirectory: TIFFDirectory? { location.map(Self.directory) }

  /// The fields of a directory whose values are known.
  private func fields(in directory: ExifTag.Directory) -> [UInt16: TIFFValue] {
    var fields: [UInt16: TIFFValue] = [:]
    for tag in ExifTag.all where tag.directory == directory {
      fields[tag.number] = values[tag.name].flatMap(tag.value)
    }
    return fields
  }

  /// Adds 72 dpi, which the standard defines for an unknown resolution.
  private static func addResolution(to directory: inout TIFFDirectory) {
    directory.fields[0x011A] = .rationals([72, 1])
    directory.fields[0x011B] = .rationals([72, 1])
    directory.fields[0x0128] = .short(2)
  }

  private static func directory(of location: GeographicLocation) -> TIFFDirectory {
    /// Degrees, minutes, and seconds with four decimals.
    func degrees(_ value: Double) -> TIFFValue {
      // 180 degrees are more units than 32 bits count.
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
      // Millimeters, or whole meters where 32 bits do not count the millimeters.
      let millimeters = UInt32(exactly: (abs(altitude) * 1_000).rounded())
      let meters = UInt32(exactly: abs(altitude).rounded()) ?? .max
      fields[6] = .rationals(millimeters.map { [$0, 1_000] } ?? [meters, 1])
    }
    return TIFFDirectory(fields: fields)
  }
}
