// SPDX-License-Identifier: Apache-2.0

package import OvercrankFrameAccounting
import OvercrankLinuxSystem

/// The box with the frame ledger in a finished movie: a `uuid` box after the media data.
///
/// Readers skip an unknown `uuid` box (ISO/IEC 14496-12, 11.1). A timed metadata track could
/// contain the same data, but `ffmpeg -c copy`, editors and players do not support such a track.
/// Another advantage of a `uuid` box is that its records can be written before the file has an
/// index.
package enum LedgerBox {
  static let identity: [UInt8] = [
    0x8E, 0x1B, 0x5F, 0xC4, 0x0A, 0x6D, 0x4D, 0x11, 0xB2, 0x57, 0x6F, 0x76, 0x65, 0x72, 0x63, 0x72,
  ]
  private static let version: UInt16 = 1
  private static let headBytes = 24 + 8

  /// Returns the bytes of a ledger box that contains these frame records.
  package static func bytes(_ records: [UInt8]) -> [UInt8] {
    var box = BoxBytes()
    box.box(BoxType.uuid) { box in
      box.append(bytes: identity)
      box.append(version)
      box.append(UInt16(TakeRecord.byteCount))
      box.append(UInt32(clamping: records.count / TakeRecord.byteCount))
      box.append(bytes: records)
    }
    return box.bytes
  }

  /// Reads the records of all frames that arrived, in order.
  ///
  /// Returns nil if the file has no complete ledger box.
  package static func read(from path: String) -> [FrameObservation]? {
    records(in: path).flatMap { count, bytes in
      let frames = TakeRecord.list(bytes).compactMap { record -> FrameObservation? in
        if case .frame(let frame) = record { frame } else { nil }
      }
      return frames.count == count ? frames : nil
    }
  }

  /// Reads the times of all taken frames, in microseconds of the capture clock.
  ///
  /// Returns nil if the file has no complete ledger box.
  package static func takenTimes(from path: String) -> [Int64]? {
    records(in: path).flatMap { TakeRecord.takenTimes($1, count: $0) }
  }

  /// The number of frame records that the box states, and the bytes of the records.
  private static func records(in path: String) -> (count: Int, bytes: [UInt8])? {
    guard let file = try? MovieBoxes(opening: path, forWriting: false) else { return nil }
    for box in file.boxes() where box.type == BoxType.uuid {
      let head = file.file.read(headBytes, at: box.start)
      guard head.count == headBytes, Array(head[8..<24]) == identity,
        Box.number(head[24..<26]) == UInt64(version),
        Box.number(head[26..<28]) == UInt64(TakeRecord.byteCount),
        let size = Int(exactly: box.byteCount), box.byteCount < MovieBoxes.largestInMemory
      else { continue }
      return (
        Int(Box.number(head[28..<32])),
        file.file.read(size - headBytes, at: box.start + Int64(headBytes))
      )
    }
    return nil
  }
}
