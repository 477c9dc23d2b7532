// SPDX-License-Identifier: Apache-2.0

package import OvercrankFrameAccounting

/// A journal record of 56 bytes, which describes a frame or a sample.
///
/// The first four bytes are the CRC-32 of the other 52 bytes.
///
/// A frame record contains all raw driver values, so that the ledger can be rebuilt from the file
/// alone.
package enum TakeRecord: Hashable, Sendable {
  case frame(FrameObservation)
  /// A stored sample.
  ///
  /// The record does not contain the position of the sample, because it follows from the sizes of
  /// the earlier samples.
  case sample(StoredSample)

  /// The size of a journal record in bytes.
  package static let byteCount = 56

  fileprivate enum Kind: UInt8 { case frame = 1, sample }

  /// Appends the bytes of this record to an array.
  package func write(to bytes: inout [UInt8]) {
    switch self {
    case .frame(let frame): frame.writeRecord(to: &bytes)
    case .sample(let sample): sample.writeRecord(to: &bytes)
    }
  }

  /// Decodes a journal record.
  ///
  /// Returns nil for invalid or damaged bytes.
  package init?(_ record: UnsafeRawBufferPointer) {
    guard record.count >= Self.byteCount else { return nil }
    func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Number {
      Number(bigEndian: record.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
    guard Self.isIntact(record), let kind = Kind(rawValue: load(4)) else { return nil }
    let flags: UInt16 = load(6)
    switch kind {
    case .frame:
      guard let outcome = FrameOutcome(rawValue: load(5)) else { return nil }
      var frame = FrameObservation(sequence: load(8), microseconds: load(24))
      frame.overrunsBefore = flags & 2 != 0 ? load(12) : nil
      frame.microseconds = load(16)
      frame.arrival = load(32)
      frame.outcome = outcome
      frame.isClockJump = flags & 1 != 0
      frame.oldestReturn = load(40)
      frame.unnoted = Int64(load(48) as UInt32)
      self = .frame(frame)
    case .sample:
      self = .sample(
        StoredSample(
          track: Int(load(5) as UInt8), byteCount: Int(load(8) as UInt32), ticks: load(16),
          presentationOffset: Int64(load(32) as UInt32), duration: Int64(load(12) as UInt32),
          isKeyFrame: flags & 1 != 0, isDroppable: flags & 2 != 0, check: load(24)))
    }
  }

  /// The times of the taken frames among consecutive records, in microseconds of the capture clock.
  ///
  /// It is what ``list(_:)`` gives, without a value for each record: a long ledger is read for its times
  /// alone whenever a movie is exported.
  ///
  /// - Parameters:
  ///   - bytes: The records.
  ///   - count: The number of frame records that the ledger states.
  /// - Returns: Nil if a record is invalid, or if the number of frame records is another one.
  package static func takenTimes(_ bytes: [UInt8], count: Int) -> [Int64]? {
    bytes.withUnsafeBytes { all in
      var times: [Int64] = []
      times.reserveCapacity(min(count, all.count / byteCount))
      var found = 0
      for offset in stride(from: 0, to: all.count - byteCount + 1, by: byteCount) {
        let record = UnsafeRawBufferPointer(rebasing: all[offset..<offset + byteCount])
        guard isIntact(record), let kind = Kind(rawValue: record[4]) else { break }
        guard kind == .frame else { continue }
        guard let outcome = FrameOutcome(rawValue: record[5]) else { break }
        found += 1
        if outcome == .taken {
          times.append(
            Int64(bigEndian: record.loadUnaligned(fromByteOffset: 16, as: Int64.self)))
        }
      }
      return found == count ? times : nil
    }
  }

  /// Whether the checksum of a record of at least 56 bytes is right.
  private static func isIntact(_ record: UnsafeRawBufferPointer) -> Bool {
    UInt32(bigEndian: record.loadUnaligned(as: UInt32.self))
      == CRC32.checksum(of: UnsafeRawBufferPointer(rebasing: record[4..<byteCount]))
  }

  /// The consecutive records in a byte array, up to the first invalid record.
  package static func list(_ bytes: [UInt8]) -> [TakeRecord] {
    bytes.withUnsafeBytes { all in
      var records: [TakeRecord] = []
      records.reserveCapacity(all.count / byteCount)
      var offset = 0
      while offset + byteCount <= all.count,
        let record = TakeRecord(UnsafeRawBufferPointer(rebasing: all[offset..<offset + byteCount]))
      {
        records.append(record)
        offset += byteCount
      }
      return records
    }
  }
}

/// The bytes of one journal record.
private struct RecordBytes {
  let record: UnsafeMutableRawBufferPointer

  func store(_ number: some FixedWidthInteger & BitwiseCopyable, _ offset: Int) {
    record.storeBytes(of: number.bigEndian, toByteOffset: offset, as: type(of: number))
  }

  /// Appends a record.
  ///
  /// The closure writes the fields into zeros. The CRC-32 is stored after that.
  static func append(to bytes: inout [UInt8], _ fill: (RecordBytes) -> Void) {
    bytes.append(addingCapacity: TakeRecord.byteCount) { added in
      added.withUnsafeMutableBufferPointer { buffer, count in
        buffer.initialize(repeating: 0)
        let made = RecordBytes(record: UnsafeMutableRawBufferPointer(buffer))
        fill(made)
        made.store(CRC32.checksum(of: UnsafeRawBufferPointer(rebasing: made.record[4...])), 0)
        count = TakeRecord.byteCount
      }
    }
  }
}

extension FrameObservation {
  /// Appends the encoded frame record.
  func writeRecord(to bytes: inout [UInt8]) {
    RecordBytes.append(to: &bytes) { record in
      var flags: UInt16 = isClockJump ? 1 : 0
      if overrunsBefore != nil { flags |= 2 }
      record.store(TakeRecord.Kind.frame.rawValue, 4)
      record.store(outcome.rawValue, 5)
      record.store(flags, 6)
      record.store(sequence, 8)
      record.store(overrunsBefore ?? 0, 12)
      record.store(microseconds, 16)
      record.store(driverMicroseconds, 24)
      record.store(arrival, 32)
      record.store(oldestReturn, 40)
      record.store(UInt32(clamping: unnoted), 48)
    }
  }
}

extension StoredSample {
  /// Appends the encoded sample record.
  func writeRecord(to bytes: inout [UInt8]) {
    RecordBytes.append(to: &bytes) { record in
      record.store(TakeRecord.Kind.sample.rawValue, 4)
      record.store(UInt8(clamping: track), 5)
      record.store(UInt16((isKeyFrame ? 1 : 0) | (isDroppable ? 2 : 0)), 6)
      record.store(UInt32(clamping: byteCount), 8)
      record.store(UInt32(clamping: duration), 12)
      record.store(ticks, 16)
      record.store(check, 24)
      record.store(UInt32(clamping: presentationOffset), 32)
    }
  }
}

/// The CRC-32 of Ethernet and PNG (ISO/IEC 3309), computed with tables for eight bytes at a time.
package enum CRC32 {
  /// Table n contains, for each value of a byte, the remainder of that byte followed by n zero
  /// bytes.
  private static let tables: [UInt32] = {
    var tables: [UInt32] = []
    for byte in 0..<UInt32(256) {
      tables.append((0..<8).reduce(byte) { sum, _ in sum >> 1 ^ (sum & 1) * 0xEDB8_8320 })
    }
    for index in 256..<8 * 256 {
      let before = tables[index - 256]
      tables.append(before >> 8 ^ tables[Int(before & 0xFF)])
    }
    return tables
  }()

  /// The checksum of a byte buffer.
  package static func checksum(of bytes: UnsafeRawBufferPointer) -> UInt32 {
    tables.withUnsafeBufferPointer { tables in
      var sum = UInt32.max
      var index = 0
      while index + 8 <= bytes.count {
        let word =
          UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
          ^ UInt64(sum)
        sum = 0
        for byte in 0..<8 { sum ^= tables[(7 - byte) << 8 | Int(word >> (8 * byte) & 0xFF)] }
        index += 8
      }
      for byte in bytes[index...] { sum = sum >> 8 ^ tables[Int((sum ^ UInt32(byte)) & 0xFF)] }
      return ~sum
    }
  }
}
