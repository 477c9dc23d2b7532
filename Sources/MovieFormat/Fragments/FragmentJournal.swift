// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLinuxSystem

/// The box in each fragment that says, record by record and before there is a `moof`, which samples
/// lie in it and which frames arrived.
///
/// Room for it is written with the fragment, so that a record takes no more of the disk. A record is
/// written after its sample, those of some frames together: what has one is in the file when the
/// program is killed, and can be found again by ``RecordedFragments``. The head tells where the
/// fragment begins, so that a copy of it elsewhere is none, and how much of the file was on the disk
/// for sure when it was written.
struct FragmentJournal {
  /// Where the box begins.
  let start: Int64
  let capacity: Int
  private(set) var count = 0
  /// Records that are not written yet; they are counted.
  private var waiting: [UInt8] = []

  static let identity: [UInt8] = [
    0x3C, 0x70, 0xA1, 0x9E, 0x52, 0xF8, 0x4B, 0x0C, 0x9D, 0x1E, 0x6F, 0x76, 0x65, 0x72, 0x63, 0x72,
  ]
  private static let version: UInt16 = 2
  /// Bytes before the first record.
  static let headBytes = 8 + 16 + 32

  static func byteCount(capacity: Int) -> Int { headBytes + capacity * TakeRecord.byteCount }

  /// Adds the box with room for records.
  ///
  /// - Parameters:
  ///   - capacity: The records.
  ///   - number: The fragment's place in the file, from 1.
  ///   - fragmentStart: Where the fragment begins.
  ///   - syncedBytes: Bytes of the file that are on the disk for sure.
  ///   - box: Where the box is added.
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

  /// What the head of a box says; nil where it is none of ours for that fragment.
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

  /// Takes the record of a frame, to be written to its place with the others that are held.
  mutating func hold(_ frame: FrameObservation) {
    frame.writeRecord(to: &waiting)
    count += 1
  }

  /// Takes the record of a sample, likewise.
  mutating func hold(_ sample: StoredSample) {
    sample.writeRecord(to: &waiting)
    count += 1
  }

  /// Writes the records that were held.
  ///
  /// - Throws: `SystemError` for "write to".
  mutating func flush(to file: borrowing RandomAccessFile) throws(SystemError) {
    guard !waiting.isEmpty else { return }
    let first = count - waiting.count / TakeRecord.byteCount
    defer { waiting.removeAll(keepingCapacity: true) }
    try file.write(
      waiting, at: start + Int64(Self.headBytes + first * TakeRecord.byteCount))
  }
}
