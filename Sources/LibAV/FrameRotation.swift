// SPDX-License-Identifier: Apache-2.0

/// A rotation or reflection of a frame.
///
/// A rotation is applied in two steps, each of which is optional: first rows and columns are
/// exchanged, then the order of the columns, of the rows, or of both is reversed.
package struct FrameRotation: Hashable, Sendable {
  /// Whether rows and columns are exchanged, as the first step.
  package var isTransposed = false
  /// Whether the order of the columns is reversed, as the second step.
  package var flipsX = false
  /// Whether the order of the rows is reversed, as the second step.
  package var flipsY = false

  package static let none = FrameRotation()

  /// Creates the rotation that a display matrix describes.
  ///
  /// Returns nil if its angle is not a multiple of 90°.
  package init?(displayMatrix matrix: [Int32]) {
    guard matrix.count == 9 else {
      self.init()
      return
    }
    // The matrix maps a source point (p, q) to (a·p + c·q, b·p + d·q).
    let (a, b, c, d) = (matrix[0], matrix[1], matrix[3], matrix[4])
    if b == 0, c == 0, a != 0, d != 0 {
      self.init(flipsX: a < 0, flipsY: d < 0)
    } else if a == 0, d == 0, b != 0, c != 0 {
      self.init(isTransposed: true, flipsX: c < 0, flipsY: b < 0)
    } else {
      return nil
    }
  }

  package init(isTransposed: Bool = false, flipsX: Bool = false, flipsY: Bool = false) {
    self.isTransposed = isTransposed
    self.flipsX = flipsX
    self.flipsY = flipsY
  }
}

extension FrameRotation {
  /// Creates a clockwise rotation that is followed by a left-to-right mirroring if `isMirrored` is
  /// true.
  ///
  /// Nil for an angle that is not 0, 90, 180 or 270 degrees.
  package init?(clockwiseDegrees angle: Int, isMirrored: Bool) {
    switch angle {
    case 0: self.init()
    case 90: self.init(isTransposed: true, flipsX: true)
    case 180: self.init(flipsX: true, flipsY: true)
    case 270: self.init(isTransposed: true, flipsY: true)
    default: return nil
    }
    if isMirrored { flipsX.toggle() }
  }

  /// Whether the frame is mirrored, in addition to any rotation.
  package var isMirrored: Bool { (isTransposed != flipsX) != flipsY }

  /// The clockwise angle in degrees.
  ///
  /// A mirroring left to right follows the rotation.
  package var clockwiseDegrees: Int {
    switch (isTransposed, flipsY) {
    case (false, false): 0
    case (false, true): 180
    case (true, false): 90
    case (true, true): 270
    }
  }

  /// The rotation that must still be applied to frames that were already flipped by `flips`.
  ///
  /// `flips` must not exchange rows and columns. Applying `flips` and then the result gives the
  /// same image as this rotation alone.
  package func remaining(after flips: FrameRotation) -> FrameRotation {
    let (x, y) = isTransposed ? (flips.flipsY, flips.flipsX) : (flips.flipsX, flips.flipsY)
    return FrameRotation(
      isTransposed: isTransposed, flipsX: flipsX != x, flipsY: flipsY != y)
  }

  /// The nine numbers of the display matrix, with an offset that keeps all coordinates positive.
  ///
  /// The array is empty if there is no rotation. The numbers have 16 fractional bits, and those in
  /// the last column 30 (ISO/IEC 14496-12, 8.3.2). `width` and `height` are those of the stored
  /// frame.
  package func displayMatrix(width: Int, height: Int) -> [Int32] {
    guard self != .none else { return [] }
    let one: Int32 = 1 << 16
    let (x, y) = isTransposed ? (height, width) : (width, height)
    var matrix = Array(repeating: Int32(0), count: 9)
    matrix[isTransposed ? 3 : 0] = flipsX ? -one : one
    matrix[isTransposed ? 1 : 4] = flipsY ? -one : one
    matrix[6] = flipsX ? Int32(clamping: x << 16) : 0
    matrix[7] = flipsY ? Int32(clamping: y << 16) : 0
    matrix[8] = 1 << 30
    return matrix
  }

  /// The rotation as a 3-bit number.
  package var bits: UInt8 { (isTransposed ? 1 : 0) | (flipsX ? 2 : 0) | (flipsY ? 4 : 0) }

  /// Creates a rotation from the number ``bits``.
  package init(bits: UInt8) {
    self.init(isTransposed: bits & 1 != 0, flipsX: bits & 2 != 0, flipsY: bits & 4 != 0)
  }
}
