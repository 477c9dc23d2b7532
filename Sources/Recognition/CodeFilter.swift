// SPDX-License-Identifier: Apache-2.0

/// Removes what cannot be believed from the codes of an image.
enum CodeFilter {
  /// The fewest characters of ITF and Codabar, which have no checksum.
  ///
  /// A slanted line through another code reads as a short one.
  static let fewestCharacters = 6
  /// The fewest rows in which a code is read that slanted lines through other codes give.
  ///
  /// In the generated set, wrong ones were read in 4 and 5 rows.
  static let fewestLines: [MetadataObjectType: Int] = [.interleaved2of5: 5, .upce: 8]
  /// The least height of the rows in which a retail code of more than 400 pixels was read, in its
  /// length.
  ///
  /// A row of a texture may look like one: 3 pixels of 600.
  static let minimumHeight = 0.008

  /// Returns the codes without repetitions, without short codes that have no checksum, and without
  /// ITF and UPC-E that are part of another code.
  static func filtered(_ codes: [DetectedCode]) -> [DetectedCode] {
    var kept: [DetectedCode] = []
    for code in codes
    where !isTooShort(code) && !isTooThin(code)
      && code.lineCount >= fewestLines[code.type, default: 0]
    {
      // The same code is found in several passes. The first has the most exact corners.
      let isKnown = kept.contains { $0.key == code.key && areTogether($0, code) }
      if !isKnown { kept.append(code) }
    }
    return kept.filter { code in
      fewestLines[code.type] == nil || !kept.contains { isPart(code, of: $0) }
    }
  }

  /// Returns the codes of sharpened images.
  ///
  /// They show bars between others, so a code of bars must be seen in two of the images, or among the
  /// others. Two-dimensional codes have enough checks of their own.
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
    func distance(_ a: PixelPoint, _ b: PixelPoint) -> Double {
      ((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)).squareRoot()
    }
    let length = distance(code.corners[0], code.corners[1])
    let height = distance(code.corners[0], code.corners[3])
    return length > 400 && height < minimumHeight * length
  }

  private static func isTooShort(_ code: DetectedCode) -> Bool {
    guard code.type == .interleaved2of5 || code.type == .codabar else { return false }
    // The letters A to D at both ends belong to Codabar's frame.
    return code.bytes.count < fewestCharacters
  }

  /// Whether ITF or UPC-E was read from a slanted line through another code.
  private static func isPart(_ code: DetectedCode, of other: DetectedCode) -> Bool {
    guard other.key != code.key, areTogether(code, other) else { return false }
    if other.type == code.type { return other.bytes.count > code.bytes.count }
    // Every other code of bars has a better checksum, or more characters.
    return other.type.isLinear
  }

  /// Whether two codes overlap, or are closer than the size of the larger one.
  static func areTogether(_ first: DetectedCode, _ second: DetectedCode) -> Bool {
    let (a, b) = (first.center, second.center)
    let distance = ((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)).squareRoot()
    return distance <= max(first.size, second.size) / 2 + 2
  }
}
