// SPDX-License-Identifier: Apache-2.0

/// An image of four different quarters, and their order after rotations.
package enum CornerImage {
  /// The quarters from the top left to the bottom right, after a rotation and then a mirroring.
  ///
  /// The table was derived by hand, independently of the code.
  package static let table: [(angle: Int, isMirrored: Bool, corners: String)] = [
    (0, false, "ABCD"), (90, false, "CADB"), (180, false, "DCBA"), (270, false, "BDAC"),
    (0, true, "BADC"), (90, true, "ACBD"), (180, true, "CDAB"), (270, true, "DBCA"),
  ]

  /// The gray level of a quarter.
  package static func gray(of corner: Character) -> UInt8 {
    switch corner {
    case "A": 40
    case "B": 90
    case "C": 150
    default: 210
    }
  }

  /// The rows of an image with A and B above C and D.
  package static func gray(width: Int, height: Int) -> [UInt8] {
    (0..<height).flatMap { y in
      (0..<width).map { x in
        gray(of: y < height / 2 ? (x < width / 2 ? "A" : "B") : x < width / 2 ? "C" : "D")
      }
    }
  }

  /// The corners of an image of 8-bit gray, with a question mark for an unknown gray.
  package static func corners(_ image: [UInt8], width: Int, height: Int) -> String {
    let positions = [(1, 1), (3, 1), (1, 3), (3, 3)]
    return String(
      positions.map { position -> Character in
        let found = Int(image[position.1 * height / 4 * width + position.0 * width / 4])
        return "ABCD".first { abs(Int(gray(of: $0)) - found) < 12 } ?? "?"
      })
  }
}
