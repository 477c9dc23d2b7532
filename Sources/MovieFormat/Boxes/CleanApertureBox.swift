// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// Reads and writes the `clap` box of a track, which states the part of the frames that players
/// show (ISO/IEC 14496-12, 12.1.4).
///
/// libavformat supports this box only since FFmpeg 7.1. The track header still contains the size of
/// the whole frames, to which players scale the part.
package enum CleanApertureBox {
  package static let type: UInt32 = 0x636C_6170  // clap

  /// The size of a part around the center of the frames, in pixels.
  package struct Size: Hashable, Sendable {
    package let width: Rational
    package let height: Rational

    package init(width: Rational, height: Rational) {
      (self.width, self.height) = (width, height)
    }
  }

  /// The bytes of the box.
  ///
  /// The numerators and denominators of the size must fit 32 bits.
  package static func bytes(_ size: Size) -> [UInt8] {
    var made = BoxBytes()
    made.box(type) { box in
      // The last two numbers are the offsets of the part from the center, which are zero.
      for part in [size.width, size.height, .zero, .zero] {
        box.append(UInt32(clamping: part.numerator))
        box.append(UInt32(clamping: part.denominator))
      }
    }
    return made.bytes
  }

  /// Reads the box of a sample description.
  ///
  /// Returns nil if it has no such box.
  package static func read(from description: SampleDescription) -> Size? {
    guard let box = description.videoBox(type), box.count == 40 else { return nil }
    func rational(_ offset: Int) -> Rational {
      Rational(
        Int128(Box.number(box[offset..<offset + 4])),
        over: Int128(Box.number(box[offset + 4..<offset + 8])))
    }
    let size = Size(width: rational(8), height: rational(16))
    return size.width.isValid && size.height.isValid ? size : nil
  }
}
