// SPDX-License-Identifier: Apache-2.0

/// The box that says what the colors of a track mean, where libavformat leaves its range out.
///
/// In MOV it writes QuickTime's `nclc`, which has no place for the range. Phones write `nclx` into
/// MOV too, and FFmpeg reads it there. (ISO/IEC 14496-12, 12.1.5.)
package enum ColorBox {
  private static let color: UInt32 = 0x636F_6C72  // colr
  private static let onScreen: UInt32 = 0x6E63_6C78  // nclx
  private static let media: [UInt32] = [
    BoxType.trackMedia, BoxType.mediaInformation, BoxType.sampleTable, BoxType.sampleDescriptions,
  ]

  /// What colors mean, by the numbers of ITU-T H.273.
  package struct Coding {
    package var primaries: UInt16
    package var transfer: UInt16
    package var matrix: UInt16

    package init(primaries: UInt16, transfer: UInt16, matrix: UInt16) {
      self.primaries = primaries
      self.transfer = transfer
      self.matrix = matrix
    }
  }

  /// Writes the box into the description of a track's samples.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of a `moov` box, which grows.
  ///   - number: The track, as they are counted from 0.
  ///   - coding: What its colors are; they use the full range.
  /// - Returns: Whether there is a description to write it into.
  package static func write(
    into bytes: inout [UInt8], track number: Int, _ coding: Coding
  ) -> Bool {
    guard let track = Box.track(number, in: bytes) else { return false }
    let movie = Box(type: BoxType.movie, start: 0, byteCount: Int64(bytes.count))
    var (around, table) = ([movie, track], track)
    for type in media {
      guard let inner = table.first(type, in: bytes) else { return false }
      around.append(inner)
      table = inner
    }
    // Version and count; then the entry with the 78 bytes of every visual one.
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
      box.append(coding.primaries)
      box.append(coding.transfer)
      box.append(coding.matrix)
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
