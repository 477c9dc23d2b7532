// SPDX-License-Identifier: Apache-2.0

/// Writes the `colr` box of a full-range track, because libavformat does not store the range in
/// MOV.
///
/// libavformat writes QuickTime's `nclc` form of the box, which has no range flag. The `nclx` form
/// has one (ISO/IEC 14496-12, 12.1.5). Phones write it into MOV files, and FFmpeg reads it there.
package enum ColorBox {
  private static let color: UInt32 = 0x636F_6C72  // colr
  private static let onScreen: UInt32 = 0x6E63_6C78  // nclx
  private static let media: [UInt32] = [
    BoxType.trackMedia, BoxType.mediaInformation, BoxType.sampleTable, BoxType.sampleDescriptions,
  ]

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
  ///   - codePoints: The color description; the range flag is set to full range.
  /// - Returns: True if the box was written, false if the track has no sample description.
  package static func write(
    into bytes: inout [UInt8], track number: Int, _ codePoints: CodePoints
  ) -> Bool {
    guard let track = Box.track(number, in: bytes) else { return false }
    let movie = Box(type: BoxType.movie, start: 0, byteCount: Int64(bytes.count))
    var (around, table) = ([movie, track], track)
    for type in media {
      guard let inner = table.first(type, in: bytes) else { return false }
      around.append(inner)
      table = inner
    }
    // A sample description starts with 8 bytes of version, flags and entry count. Each visual
    // sample entry starts with 78 fixed bytes after its header.
    guard
      let entry = Box.list(in: bytes, from: Int(table.start) + 16, to: Int(table.end)).first,
      entry.byteCount >= 86
    else { return false }
    around.append(entry)
    let old = Box.list(in: bytes, from: Int(entry.start) + 86, to: Int(entry.end))
      .first { $0.type == color }
    var made = BoxBytes()
    made.box(color) { box in
      box.append(onScreen)
      box.append(codePoints.primaries)
      box.append(codePoints.transfer)
      box.append(codePoints.matrix)
      box.append(UInt8(0x80))
    }
    let position = old.map { Int($0.start)..<Int($0.end) } ?? Int(entry.end)..<Int(entry.end)
    bytes.replaceSubrange(position, with: made.bytes)
    for box in around {
      let size = UInt32(Int(box.byteCount) + made.bytes.count - position.count).bigEndian
      withUnsafeBytes(of: size) {
        bytes.replaceSubrange(Int(box.start)..<Int(box.start) + 4, with: $0)
      }
    }
    return true
  }
}
