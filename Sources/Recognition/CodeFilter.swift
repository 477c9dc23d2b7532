// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// Removes codes that were probably misread in an image.
enum CodeFilter {
  /// The least length of ITF and Codabar codes, which have no checksum.
  ///
  /// A slanted line through another code may be misread as a short code of these types.
  static let fewestCharacters = 6
  /// The least number of image rows in which a code must be read, by type; no limit for other
  /// types.
  ///
  /// A slanted line through another code may be misread as a code of one of these types.
  ///
  /// In the generated test images, misread codes appeared in 4 and 5 rows.
  static let fewestLines: [MetadataObjectType: Int] = [.interleaved2of5: 5, .upce: 8]
  /// The least ratio of height to length for a retail code of more than 400 pixels in length.
  ///
  /// A row of a texture was misread as a code that was 3 pixels high and 600 long.
  static let minimumHeight = 0.008

  /// Returns the codes without duplicates, without short codes that have no checksum, and without
  /// ITF and UPC-E codes that are part of another code.
  static func filtered(_ codes: [DetectedCode]) -> [DetectedCode] {
    var kept: [DetectedCode] = []
    for code in codes
    where !isTooShort(code) && !isTooThin(code)
      && code.lineCount >= fewestLines[code.type, default: 0]
    {
      // Several passes find the same code. The first pass has the most exact corners.
      let isKnown = kept.contains { $0.key == code.key && areTogether($0, code) }
      if !isKnown { kept.append(code) }
    }
    return kept.filter { code in
      fewestLines[code.type] == nil || !kept.contains { isPart(code, of: $0) }
    }
  }

  /// Returns the codes from sharpened images, without bar codes that no other image confirms.
  ///
  /// Sharpening adds false bars. So a bar code must be found in two sharpened images, or in one of
  /// them and in `others`. Two-dimensional codes have enough error detection without this.
  static func agreed(
    _ images: [[DetectedCode]], besides others: [DetectedCode]
  ) -> [DetectedCode] {
    images.indices.flatMap { index in
      let rest = others + images.indices.filter { $0 != index }.flatMap { images[$0] }
      return images[index].filter { code in
        !code.type.isLinear || rest.contains { $0.key == code.key && areTogether($0, code) }
      }
    }
  }

  private static func isTooThin(_ code: DetectedCode) -> Bool {
    guard [.ean8, .ean13, .upca].contains(code.type), code.corners.count == 4 else { return false }
    func distance(_ a: Point, _ b: Point) -> Double {
      ((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)).squareRoot()
    }
    let length = distance(code.corners[0], code.corners[1])
    let height = distance(code.corners[0], code.corners[3])
    return length > 400 && height < minimumHeight * length
  }

  private static func isTooShort(_ code: DetectedCode) -> Bool {
    guard code.type == .interleaved2of5 || code.type == .codabar else { return false }
    // The number of characters of a Codabar code includes the start and stop characters, A to D.
    return code.bytes.count < fewestCharacters
  }

  /// Whether an ITF or UPC-E code was probably read from a slanted line through another code.
  private static func isPart(_ code: DetectedCode, of other: DetectedCode) -> Bool {
    guard other.key != code.key, areTogether(code, other) else { return false }
    if other.type == code.type { return other.bytes.count > code.bytes.count }
    // A bar code of another type has a better checksum or more characters than this code.
    return other.type.isLinear
  }

  /// Whether two codes overlap, or are closer than the size of the larger one.
  static func areTogether(_ first: DetectedCode, _ second: DetectedCode) -> Bool {
    let (a, b) = (first.center, second.center)
    let distance = ((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)).squareRoot()
    return distance <= max(first.size, second.size) / 2 + 2
  }
}
