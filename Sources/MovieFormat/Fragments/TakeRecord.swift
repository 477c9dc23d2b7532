// SPDX-License-Identifier: Apache-2.0

package import OvercrankFrameAccounting

/// What the books of a take say of a sample that is in the file.
package struct SampleRecord: Hashable, Sendable {
  /// The track's place in the head.
  package var track: UInt8
  package var byteCount: UInt32
  /// When it is decoded and shown, in ticks of its track from the track's first.
  package var ticks: Int64
  /// How long it lasts where none follows, in ticks.
  package var duration: UInt32
  package var isKeyFrame: Bool
  /// ``SampleCheck`` of its bytes.
  package var check: UInt64

  package init(
    track: UInt8, byteCount: UInt32, ticks: Int64, duration: UInt32, isKeyFrame: Bool,
    check: UInt64
  ) {
    self.track = track
    self.byteCount = byteCount
    self.ticks = ticks
    self.duration = duration
    self.isKeyFrame = isKeyFrame
    self.check = check
  }
}

/// A record of either kind in its 56 bytes, the first four of which are the check of the others.
///
/// Those of frames are all that the ledger is made from, as the driver gave it, so that it can be
/// made again from the file alone.
package enum TakeRecord: Hashable, Sendable {
  case frame(FrameObservation)
  case sample(SampleRecord)

  /// Bytes of a record.
  package static let byteCount = 56

  private enum Kind: UInt8 { case frame = 1, sample }

  /// Adds the record's bytes.
  package func write(to bytes: inout [UInt8]) {
    let start = bytes.count
    bytes += repeatElement(0, count: Self.byteCount)
    bytes.withUnsafeMutableBytes { all in
      let record = UnsafeMutableRawBufferPointer(rebasing: all[start...])
      func store(_ number: some FixedWidthInteger & BitwiseCopyable, _ offset: Int) {
        record.storeBytes(of: number.bigEndian, toByteOffset: offset, as: type(of: number))
      }
      switch self {
      case .frame(let frame):
        var flags: UInt16 = frame.isClockJump ? 1 : 0
        if frame.stamp.overrunsBefore != nil { flags |= 2 }
        store(Kind.frame.rawValue, 4)
        store(frame.outcome.rawValue, 5)
        store(flags, 6)
        store(frame.stamp.sequence, 8)
        store(frame.stamp.overrunsBefore ?? 0, 12)
        store(frame.microseconds, 16)
        store(frame.stamp.microseconds, 24)
        store(frame.arrival, 32)
        store(frame.oldestReturn, 40)
        store(UInt32(clamping: frame.unnoted), 48)
      case .sample(let sample):
        store(Kind.sample.rawValue, 4)
        store(sample.track, 5)
        store(UInt16(sample.isKeyFrame ? 1 : 0), 6)
        store(sample.byteCount, 8)
        store(sample.duration, 12)
        store(sample.ticks, 16)
        store(sample.check, 24)
      }
      store(CRC32.checksum(of: UnsafeRawBufferPointer(rebasing: record[4...])), 0)
    }
  }

  /// The record that some bytes are; nil where they are none, or not whole.
  package init?(_ record: UnsafeRawBufferPointer) {
    guard record.count >= Self.byteCount else { return nil }
    func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Number {
      Number(bigEndian: record.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
    let body = UnsafeRawBufferPointer(rebasing: record[4..<Self.byteCount])
    guard load(0) == CRC32.checksum(of: body), let kind = Kind(rawValue: load(4)) else {
      return nil
    }
    let flags: UInt16 = load(6)
    switch kind {
    case .frame:
      guard let outcome = FrameOutcome(rawValue: load(5)) else { return nil }
      var stamp = FrameStamp(sequence: load(8), microseconds: load(24))
      stamp.overrunsBefore = flags & 2 != 0 ? load(12) : nil
      var frame = FrameObservation(stamp: stamp, microseconds: load(16), arrival: load(32))
      frame.outcome = outcome
      frame.isClockJump = flags & 1 != 0
      frame.oldestReturn = load(40)
      frame.unnoted = Int64(load(48) as UInt32)
      self = .frame(frame)
    case .sample:
      self = .sample(
        SampleRecord(
          track: load(5), byteCount: load(8), ticks: load(16), duration: load(12),
          isKeyFrame: flags & 1 != 0, check: load(24)))
    }
  }

  /// The records that follow each other in some bytes, up to what is none.
  package static func list(_ bytes: [UInt8]) -> [TakeRecord] {
    bytes.withUnsafeBytes { all in
      var records: [TakeRecord] = []
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
