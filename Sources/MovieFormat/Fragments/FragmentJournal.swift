// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The journal box of a fragment: records of the stored samples and of the frames that arrived.
///
/// The `moof` box, which describes a fragment's samples, is written only when the fragment is
/// complete. The journal describes them until then. The space for the journal is written at the
/// start of the fragment, so a record needs no further disk space. Each record is written after the
/// sample that it describes, in batches of a few frames. If the process is killed,
/// ``RecordedFragments`` finds every sample that has a record. The header states the fragment's
/// offset, so that a copy of the journal at another offset is not accepted. It also states the
/// number of bytes of the file that were synced to the disk.
struct FragmentJournal {
  /// The byte offset of the journal box in the file.
  let start: Int64
  let capacity: Int
  private(set) var count = 0
  /// Encoded records that are counted in `count`, but not written to the file yet.
  private var waiting: [UInt8] = []

  static let identity: [UInt8] = [
    0x3C, 0x70, 0xA1, 0x9E, 0x52, 0xF8, 0x4B, 0x0C, 0x9D, 0x1E, 0x6F, 0x76, 0x65, 0x72, 0x63, 0x72,
  ]
  private static let version: UInt16 = 2
  /// The number of bytes in the journal box before the first record.
  static let headBytes = 8 + 16 + 32

  static func byteCount(capacity: Int) -> Int { headBytes + capacity * TakeRecord.byteCount }

  /// Appends an empty journal box with space for records.
  ///
  /// - Parameters:
  ///   - capacity: The number of records.
  ///   - number: The fragment's sequence number, from 1.
  ///   - fragmentStart: The offset of the fragment in the file.
  ///   - syncedBytes: The number of file bytes that are certainly on the disk.
  ///   - box: The bytes to which the box is appended.
  static func write(
    capacity: Int, number: UInt32, fragmentStart: Int64, syncedBytes: Int64,
    into box: inout BoxBytes
  ) {
    var head = BoxBytes()
    head.append(version)
    head.append(UInt16(TakeRecord.byteCount))
    head.append(number)
    head.append(UInt32(0))
    head.append(fragmentStart)
    head.append(syncedBytes)
    let check = head.bytes.withUnsafeBytes { CRC32.checksum(of: $0) }
    box.box(BoxType.uuid) { box in
      box.append(bytes: identity)
      box.append(check)
      box.append(bytes: head.bytes)
      box.append(bytes: Array(repeating: 0, count: capacity * TakeRecord.byteCount))
    }
  }

  /// Parses a journal header.
  ///
  /// Returns nil if the header is damaged, or if it belongs to a fragment at another offset.
  static func head(_ bytes: [UInt8], ofFragmentAt start: Int64) -> (number: UInt32, synced: Int64)?
  {
    guard bytes.count >= headBytes, Array(bytes[8..<24]) == identity else { return nil }
    let check = bytes[28..<headBytes].withUnsafeBytes { CRC32.checksum(of: $0) }
    guard Box.number(bytes[24..<28]) == UInt64(check),
      Box.number(bytes[28..<30]) == UInt64(version),
      Box.number(bytes[30..<32]) == UInt64(TakeRecord.byteCount),
      Int64(bitPattern: Box.number(bytes[40..<48])) == start
    else { return nil }
    return (
      UInt32(Box.number(bytes[32..<36])), Int64(bitPattern: Box.number(bytes[48..<56]))
    )
  }

  init(start: Int64, capacity: Int) {
    self.start = start
    self.capacity = capacity
  }

  func hasSpace(for more: Int) -> Bool { count + more <= capacity }

  /// Queues the record of a frame, which ``flush(to:)`` writes.
  mutating func hold(_ frame: FrameObservation) {
    frame.writeRecord(to: &waiting)
    count += 1
  }

  /// Queues the record of a sample, which ``flush(to:)`` writes.
  mutating func hold(_ sample: StoredSample) {
    sample.writeRecord(to: &waiting)
    count += 1
  }

  /// Writes the queued records into the journal box.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  mutating func flush(to file: borrowing RandomAccessFile) throws(CallFailure) {
    guard !waiting.isEmpty else { return }
    let first = count - waiting.count / TakeRecord.byteCount
    defer { waiting.removeAll(keepingCapacity: true) }
    try file.write(
      waiting, at: start + Int64(Self.headBytes + first * TakeRecord.byteCount))
  }
}
