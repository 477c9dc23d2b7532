// SPDX-License-Identifier: Apache-2.0

/// Writes the `colr` box of a full-range track, because libavformat does not store the range in
/// MOV.
///
/// libavformat writes QuickTime's `nclc` form of the box, which has no range flag. The `nclx` form
/// has such a flag (ISO/IEC 14496-12, 12.1.5). Phones write this form into MOV files, and FFmpeg
/// reads it there.
package enum ColorBox {
  private static let color: UInt32 = 0x636F_6C72  // colr
  private static let onScreen: UInt32 = 0x6E63_6C78  // nclx

  /// The color description, in code points of ITU-T H.273.
  package struct CodePoints {
    package var primaries: UInt16
    package var transfer: UInt16
    package var matrix: UInt16

    package init(primaries: UInt16, transfer: UInt16, matrix: UInt16) {
      self.primaries = primaries
      self.transfer = transfer
      self.matrix = matrix
    }
  }

  /// Writes an `nclx` color box into the sample description of a track.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of a `moov` box. The array may grow.
  ///   - number: The index of the track, counted from 0.
  ///   - codePoints: The color description. The range flag in the box is always set to full range.
  /// - Returns: True if the box was written, false if the track has no sample description.
  package static func write(
    into bytes: inout [UInt8], track number: Int, _ codePoints: CodePoints
  ) -> Bool {
    var made = BoxBytes()
    made.box(color) { box in
      box.append(onScreen)
      box.append(codePoints.primaries)
      box.append(codePoints.transfer)
      box.append(codePoints.matrix)
      box.append(UInt8(0x80))
    }
    return SampleEntry.set(made.bytes, color, in: &bytes, track: number)
  }
}
