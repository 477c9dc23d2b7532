// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Reads the serialization format of dlib: a sequence of numbers, each in as few bytes as possible.
///
/// The first byte of an integer is the count of the bytes that follow, from 1 to 8, plus 0x80 for a
/// negative number. These bytes are the magnitude in little-endian order. A real number is stored
/// as two integers: a mantissa and an exponent of 2.
struct DlibArchive {
  /// The reason why a file could not be read.
  enum Problem: Error {
    /// The file ends within a number, or before an expected number.
    case truncated
    /// The file contains something else than expected.
    case foreign
  }

  /// The least exponent that marks an infinite number or NaN.
  private static let minimumSpecialExponent: Int64 = 32_000
  /// The number of feature planes that dlib computes for each cell.
  private static let planeCount = 31

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  /// Reads an integer.
  mutating func integer() throws(Problem) -> Int64 {
    guard let head = rest.popFirst() else { throw .truncated }
    let count = Int(head & 0x0F)
    guard head & 0x70 == 0, (1...8).contains(count) else { throw .foreign }
    guard rest.count >= count else { throw .truncated }
    var magnitude: UInt64 = 0
    for byte in rest.prefix(count).reversed() { magnitude = magnitude << 8 | UInt64(byte) }
    rest = rest.dropFirst(count)
    guard let value = Int64(exactly: magnitude) else { throw .foreign }
    return head & 0x80 == 0 ? value : -value
  }

  /// Reads a count or a size, which is an integer from 0 to `most`.
  mutating func count(upTo most: Int) throws(Problem) -> Int {
    let value = try integer()
    guard (0...Int64(most)).contains(value) else { throw .foreign }
    return Int(value)
  }

  /// Reads a finite real number.
  mutating func real() throws(Problem) -> Double {
    let (mantissa, exponent) = (try integer(), try integer())
    guard exponent.magnitude < Self.minimumSpecialExponent else { throw .foreign }
    let value = scalbn(Double(mantissa), Int32(exponent))
    guard value.isFinite else { throw .foreign }
    return value
  }

  /// Reads an `object_detector<scan_fhog_pyramid<pyramid_down<6>>>`.
  ///
  /// Values are checked only as far as reading them requires.
  mutating func objectDetector() throws(Problem) -> FaceModel.Numbers {
    // The versions of the detector and of its scanner, then the scanner's list of images, which
    // must be empty.
    guard try integer() == 2, try integer() == 1 else { throw .foreign }
    guard try integer() >= 0, try integer() == 0 else { throw .foreign }
    var numbers = FaceModel.Numbers()
    let most = 1 << 16
    numbers.cellSize = try count(upTo: most)
    numbers.padding = try count(upTo: most)
    numbers.windowWidth = try count(upTo: most)
    numbers.windowHeight = try count(upTo: most)
    numbers.levelCount = try count(upTo: .max)
    numbers.layerWidth = try count(upTo: most)
    numbers.layerHeight = try count(upTo: most)
    // Skips a value that only training needs.
    _ = try real()
    let weightCount = try count(upTo: FaceModel.maximumBytes)
    guard weightCount.isMultiple(of: Self.planeCount) else { throw .foreign }
    numbers.overlap = try real()
    numbers.covered = try real()
    numbers.viewCount = try count(upTo: most)
    for _ in 0..<numbers.viewCount {
      // dlib stores the row and column counts of a matrix as negative numbers.
      guard try integer() == -Int64(weightCount + 1), try integer() == -1 else { throw .foreign }
      for _ in 0...weightCount { numbers.weights.append(try real()) }
    }
    return numbers
  }
}
