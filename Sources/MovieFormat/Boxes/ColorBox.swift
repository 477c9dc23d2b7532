// SPDX-License-Identifier: Apache-2.0

/// Makes the `colr` box of a full-range track, because libavformat does not store the range in
/// MOV.
///
/// libavformat writes QuickTime's `nclc` form of the box, which has no range flag. The `nclx` form
/// has such a flag (ISO/IEC 14496-12, 12.1.5). Phones write this form into MOV files, and FFmpeg
/// reads it there.
package enum ColorBox {
  package static let type: UInt32 = 0x636F_6C72  // colr
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

  /// The bytes of an `nclx` color box, in which the range flag is set to full range.
  package static func bytes(_ codePoints: CodePoints) -> [UInt8] {
    var made = BoxBytes()
    made.box(type) { box in
      box.append(onScreen)
      box.append(codePoints.primaries)
      box.append(codePoints.transfer)
      box.append(codePoints.matrix)
      box.append(UInt8(0x80))
    }
    return made.bytes
  }
}
