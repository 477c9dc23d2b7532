// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Moves the `moov` box before the media data, so that playback can start during a download.
///
/// The size of the index is known only at the end, so no space can be left for it at the start. The
/// file is therefore copied. Until the copy replaces the original, twice the disk space is needed.
package enum FastStart {
  /// The number of bytes of the file that are copied at a time.
  private static let blockBytes = 4 << 20
  /// The types of the boxes around the chunk offset boxes, from the outside in.
  private static let containers = [
    BoxType.track, BoxType.trackMedia, BoxType.mediaInformation, BoxType.sampleTable,
  ]

  /// Replaces a file with a copy in which the index comes first.
  ///
  /// A file in which the index already comes first is not changed.
  ///
  /// - Throws: `CallFailure` if the copy cannot be written; the file is then unchanged.
  package static func apply(to file: inout MovieFile) throws(CallFailure) {
    let path = file.writtenPath
    let source = MovieBoxes(file.file)
    let boxes = source.boxes()
    guard let index = boxes.first(where: { $0.type == BoxType.movie }),
      let media = boxes.first(where: { $0.type == BoxType.media }),
      let size = Int(exactly: index.byteCount), size < 1 << 30
    else { throw CallFailure("find the index of", path, EINVAL) }
    guard index.start > media.start else { return }
    var head = source.file.read(size, at: index.start)
    guard head.count == size,
      shift(&head, from: Int(index.headBytes), to: size, by: index.byteCount)
    else { throw CallFailure("move the index of", path, ERANGE) }
    let target: MovieFile.Copy
    do throws(CallFailure) { target = try file.beginCopy() } catch {
      throw CallFailure("create a copy of", path, error.number)
    }
    let copy = RandomAccessFile(target.file)
    do throws(CallFailure) {
      try copy.write(head, at: media.start)
      try transfer(0..<media.start, of: source.file, to: copy, at: 0)
      try transfer(
        media.start..<index.start, of: source.file, to: copy, at: media.start + index.byteCount)
      try transfer(index.end..<source.byteCount, of: source.file, to: copy, at: index.end)
      try copy.sync()
    } catch {
      MovieFile.discard(target)
      throw error
    }
    do throws(CallFailure) { try file.replace(by: target) } catch {
      throw CallFailure("replace", path, error.number)
    }
    copy.syncName()
  }

  private static func transfer(
    _ range: Range<Int64>, of source: borrowing RandomAccessFile,
    to target: borrowing RandomAccessFile,
    at start: Int64
  ) throws(CallFailure) {
    var position = range.lowerBound
    while position < range.upperBound {
      let bytes = source.read(
        Int(min(Int64(blockBytes), range.upperBound - position)), at: position)
      guard !bytes.isEmpty else { throw CallFailure("read", source.path, EIO) }
      try target.write(bytes, at: start + position - range.lowerBound)
      position += Int64(bytes.count)
    }
  }

  /// Adds a distance to all chunk offsets that are nested inside these ``containers``.
  ///
  /// Returns true if all were changed, and false if a 32-bit offset overflows or a box is
  /// malformed.
  private static func shift(
    _ head: inout [UInt8], from start: Int, to end: Int, by distance: Int64, depth: Int = 0
  ) -> Bool {
    for box in Box.list(in: head, from: start, to: end) {
      let contents = Int(box.start + box.headBytes)
      if depth < containers.count {
        guard box.type == containers[depth] else { continue }
        guard shift(&head, from: contents, to: Int(box.end), by: distance, depth: depth + 1)
        else { return false }
      } else if box.type == BoxType.chunkOffsets || box.type == BoxType.chunkOffsets64 {
        let width = box.type == BoxType.chunkOffsets ? 4 : 8
        guard contents + 8 <= Int(box.end) else { return false }
        let count = Int(Box.number(head[contents + 4..<contents + 8]))
        guard count <= (Int(box.end) - contents - 8) / width else { return false }
        for number in 0..<count {
          let position = contents + 8 + number * width
          let (moved, overflow) = Box.number(head[position..<position + width])
            .addingReportingOverflow(UInt64(distance))
          guard !overflow, width == 8 || moved <= UInt64(UInt32.max) else { return false }
          for byte in 0..<width {
            head[position + byte] = UInt8(
              truncatingIfNeeded: moved >> (8 * UInt64(width - 1 - byte)))
          }
        }
      }
    }
    return true
  }
}
