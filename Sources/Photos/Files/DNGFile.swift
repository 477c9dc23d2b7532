// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankMediaCore

/// The arrangement of colors on a Bayer sensor.
struct BayerPattern: Equatable {
  /// The colors of the 2x2 pixels that repeat over the sensor: 0 is red, 1 green, 2 blue.
  let colors: [UInt8]
  let bitsPerSample: Int

  /// Creates the pattern of a pixel format.
  ///
  /// Returns nil unless the format is a Bayer format with 8 or 16 bits.
  init?(_ format: PixelFormat) {
    // These are libav's names for the formats, such as `bayer_rggb8` and `bayer_grbg16le`.
    let parts = format.rawValue.split(separator: "_")
    guard parts.count == 2, parts[0] == "bayer" else { return nil }
    colors = parts[1].prefix(4).compactMap { ["r": 0, "g": 1, "b": 2][$0] }
    switch parts[1].dropFirst(4) {
    case "8": bitsPerSample = 8
    case "16le": bitsPerSample = 16
    default: return nil
    }
    guard colors.count == 4 else { return nil }
  }
}

/// Creates files in Adobe's Digital Negative format 1.4 with the pixels of a Bayer sensor.
enum DNGFile {
  /// A small RGB image with 8 bits per channel, which image viewers show.
  struct Preview {
    let width: Int
    let height: Int
    let pixels: [UInt8]
  }

  /// The matrix from CIE XYZ to sRGB, in ten-thousandths.
  ///
  /// The color response of the sensor is unknown, but raw converters reject a file without a
  /// matrix.
  private static let colorMatrix: [Int32] = [
    32_406, -15_372, -4_986, -9_689, 18_758, 415, 557, -2_040, 10_570,
  ]

  /// Creates a DNG file.
  ///
  /// - Parameters:
  ///   - raw: The pixels of the frame.
  ///   - format: The format of the frame.
  ///   - pattern: The arrangement of the sensor's colors.
  ///   - preview: The small image for viewers.
  ///   - metadata: The metadata.
  /// - Returns: The bytes of the file.
  static func bytes(
    _ raw: UnsafeRawBufferPointer, _ format: FormatDescription, _ pattern: BayerPattern,
    _ preview: Preview, _ metadata: ExifMetadata
  ) -> [UInt8] {
    let pixels = samples(raw, format, pattern)
    var image = metadata.imageDirectory
    let exif = metadata.exifDirectory
    let gps = metadata.gpsDirectory
    image.describe(
      width: preview.width, height: preview.height, bits: [8, 8, 8], photometric: 2,
      byteCount: preview.pixels.count)
    image.fields[0x00FE] = .long(1)  // a reduced image
    image.fields[0x0112] = image.fields[0x0112] ?? .short(1)
    image.fields[0xC612] = .bytes([1, 4, 0, 0])
    image.fields[0xC613] = .bytes([1, 1, 0, 0])
    image.fields[0xC614] = .ascii(metadata.values["Model"] ?? "Bayer camera")
    image.fields[0xC621] = .signedRationals(colorMatrix.flatMap { [$0, 10_000] })
    image.fields[0xC628] = .rationals([1, 1, 1, 1, 1, 1])
    image.fields[0xC65A] = .short(21)  // the illuminant D65
    var sensor = TIFFDirectory()
    sensor.describe(
      width: format.width, height: format.height, bits: [UInt16(pattern.bitsPerSample)],
      photometric: 32_803, byteCount: pixels.count)
    sensor.fields[0x00FE] = .long(0)
    sensor.fields[0x828D] = .shorts([2, 2])
    sensor.fields[0x828E] = .bytes(pattern.colors)
    sensor.fields[0xC616] = .bytes([0, 1, 2])
    sensor.fields[0xC617] = .short(1)
    sensor.fields[0xC61D] = .long(pattern.bitsPerSample == 8 ? 0xFF : 0xFFFF)
    // The size of the directories does not depend on the offsets that they contain, so zeros are
    // stored until the offsets are known.
    image.fields[0x014A] = .long(0)
    image.fields[ExifMetadata.exifPointer] = .long(0)
    if gps != nil { image.fields[ExifMetadata.gpsPointer] = .long(0) }
    let exifOffset = ExifMetadata.headerSize + image.byteCount
    let gpsOffset = exifOffset + exif.byteCount
    let sensorOffset = gpsOffset + (gps?.byteCount ?? 0)
    let previewOffset = sensorOffset + sensor.byteCount
    // An image strip must begin at an even offset.
    let padding = preview.pixels.count % 2
    image.fields[0x014A] = .long(UInt32(sensorOffset))
    image.fields[ExifMetadata.exifPointer] = .long(UInt32(exifOffset))
    if gps != nil { image.fields[ExifMetadata.gpsPointer] = .long(UInt32(gpsOffset)) }
    image.fields[0x0111] = .long(UInt32(previewOffset))
    sensor.fields[0x0111] = .long(UInt32(previewOffset + preview.pixels.count + padding))
    var result = ExifMetadata.header
    result += image.bytes(at: ExifMetadata.headerSize, next: 0)
    result += exif.bytes(at: exifOffset, next: 0)
    if let gps { result += gps.bytes(at: gpsOffset, next: 0) }
    result += sensor.bytes(at: sensorOffset, next: 0)
    return result + preview.pixels + [UInt8](repeating: 0, count: padding) + pixels
  }

  /// The samples without row padding, in the byte order of the file.
  private static func samples(
    _ raw: UnsafeRawBufferPointer, _ format: FormatDescription, _ pattern: BayerPattern
  ) -> [UInt8] {
    let rowBytes = format.width * pattern.bitsPerSample / 8
    let stride = max(rowBytes, format.bytesPerRow)
    return [UInt8](unsafeUninitializedCapacity: rowBytes * format.height) { target, count in
      // Frames that are too short were rejected earlier, so this condition only prevents a read out
      // of bounds.
      for row in 0..<format.height where (row * stride) + rowBytes <= raw.count {
        let (from, to) = (row * stride, row * rowBytes)
        for byte in 0..<rowBytes {
          target[to + byte] = raw[from + (pattern.bitsPerSample == 16 ? byte ^ 1 : byte)]
        }
        count = to + rowBytes
      }
    }
  }
}

extension TIFFDirectory {
  /// Adds the fields that describe an uncompressed image in a single strip.
  ///
  /// The offset of the strip is set later.
  fileprivate mutating func describe(
    width: Int, height: Int, bits: [UInt16], photometric: UInt16, byteCount: Int
  ) {
    fields[0x0100] = .long(UInt32(width))
    fields[0x0101] = .long(UInt32(height))
    fields[0x0102] = .shorts(bits)
    fields[0x0103] = .short(1)  // uncompressed
    fields[0x0106] = .short(photometric)
    fields[0x0111] = .long(0)
    fields[0x0115] = .short(UInt16(bits.count))
    fields[0x0116] = .long(UInt32(height))
    fields[0x0117] = .long(UInt32(byteCount))
    fields[0x011C] = .short(1)
  }
}
