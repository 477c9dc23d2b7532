// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// What the books of a take say of a frame that arrived, as it stands in the file.
///
/// It is all that the ledger is made from, as the driver gave it, so that it can be made again from
/// the file alone.
package struct FrameRecord: Hashable, Sendable {
  /// What became of the frame.
  package enum Outcome: UInt8, Sendable {
    case taken = 1, corrupt, unshowable, refused, evicted
    /// It is the first of those that came while the take was paused.
    case paused
  }

  package var outcome: Outcome
  /// The driver's count of frames.
  package var sequence: UInt32
  /// The driver's time in microseconds, made continuous where its clock wrapped or jumped.
  package var microseconds: Int64
  /// The driver's time as it gave it.
  package var driverMicroseconds: Int64
  /// Whether the driver's clock jumped here.
  package var isClockJump = false
  /// When the frame was taken from the driver, in microseconds of the driver's clock.
  package var arrival: Int64
  /// When the buffer was given back that the driver would have needed, had all others been full.
  package var oldestReturn: Int64
  /// Frames just before this one of which nothing is known but that they arrived.
  package var unnoted: UInt32 = 0
  /// Frames lost just before this one because no buffer was free, where the driver knows.
  package var overrunsBefore: UInt32?

  package init(
    _ outcome: Outcome, sequence: UInt32, microseconds: Int64, driverMicroseconds: Int64,
    arrival: Int64, oldestReturn: Int64
  ) {
    self.outcome = outcome
    self.sequence = sequence
    self.microseconds = microseconds
    self.driverMicroseconds = driverMicroseconds
    self.arrival = arrival
    self.oldestReturn = oldestReturn
  }
}

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
package enum TakeRecord: Hashable, Sendable {
  case frame(FrameRecord)
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
      func store(_ number: some FixedWidthInteger & BitwiseCopyable, _ place: Int) {
        record.storeBytes(of: number.bigEndian, toByteOffset: place, as: type(of: number))
      }
      switch self {
      case .frame(let frame):
        var flags: UInt16 = frame.isClockJump ? 1 : 0
        if frame.overrunsBefore != nil { flags |= 2 }
        store(Kind.frame.rawValue, 4)
        store(frame.outcome.rawValue, 5)
        store(flags, 6)
        store(frame.sequence, 8)
        store(frame.overrunsBefore ?? 0, 12)
        store(frame.microseconds, 16)
        store(frame.driverMicroseconds, 24)
        store(frame.arrival, 32)
        store(frame.oldestReturn, 40)
        store(frame.unnoted, 48)
      case .sample(let sample):
        store(Kind.sample.rawValue, 4)
        store(sample.track, 5)
        store(UInt16(sample.isKeyFrame ? 1 : 0), 6)
        store(sample.byteCount, 8)
        store(sample.duration, 12)
        store(sample.ticks, 16)
        store(sample.check, 24)
      }
      store(checkSum(of: UnsafeRawBufferPointer(rebasing: record[4...])), 0)
    }
  }

  /// The record that some bytes are; nil where they are none, or not whole.
  package init?(_ record: UnsafeRawBufferPointer) {
    guard record.count >= Self.byteCount else { return nil }
    func load<Number: FixedWidthInteger & BitwiseCopyable>(_ place: Int) -> Number {
      Number(bigEndian: record.loadUnaligned(fromByteOffset: place, as: Number.self))
    }
    let body = UnsafeRawBufferPointer(rebasing: record[4..<Self.byteCount])
    guard load(0) == checkSum(of: body), let kind = Kind(rawValue: load(4)) else { return nil }
    let flags: UInt16 = load(6)
    switch kind {
    case .frame:
      guard let outcome = FrameRecord.Outcome(rawValue: load(5)) else { return nil }
      var frame = FrameRecord(
        outcome, sequence: load(8), microseconds: load(16), driverMicroseconds: load(24),
        arrival: load(32), oldestReturn: load(40))
      frame.isClockJump = flags & 1 != 0
      frame.overrunsBefore = flags & 2 != 0 ? load(12) : nil
      frame.unnoted = load(48)
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
      var place = 0
      while place + byteCount <= all.count,
        let record = TakeRecord(UnsafeRawBufferPointer(rebasing: all[place..<place + byteCount]))
      {
        records.append(record)
        place += byteCount
      }
      return records
    }
  }
}

/// The CRC-32 of Ethernet and PNG.
package func checkSum(of bytes: UnsafeRawBufferPointer) -> UInt32 {
  let first = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
  return ~av_crc(crcTable, .max, first, bytes.count)
}

// libav's own, which it makes once.
private nonisolated(unsafe) let crcTable = av_crc_get_table(AV_CRC_32_IEEE_LE)

/// What tells whether all of a sample reached the disk.
///
/// Disks lose whole sectors of 512 bytes, which then read as zeros, so some words of each sector that
/// the sample lies in are enough; to add up every byte would cost as much as to write them. One word
/// is too little, JPEG's tables have eight zeros in a row; and those of one line of the processor's
/// cache cost as much as a single one.
package struct SampleCheck {
  private static let sectorBytes: Int64 = 512
  private static let words = 4

  private let bytes: UnsafeRawBufferPointer
  /// One for each word of a sector: a sum of all would have each word wait for the one before.
  private var sums: (UInt64, UInt64, UInt64, UInt64)
  /// The words that are added next; the others of a sample are one sector apart.
  private var place = 0
  private var nextPlace: Int

  /// Begins to check a sample whose first byte lies at a place of the file.
  package init(of bytes: UnsafeRawBufferPointer, at position: Int64) {
    self.bytes = bytes
    sums = (UInt64(bytes.count), 1, 2, 3)
    nextPlace = Int(Self.sectorBytes - position % Self.sectorBytes)
  }

  /// The check of a sample whose first byte lies at a place of the file.
  package static func value(of bytes: UnsafeRawBufferPointer, at position: Int64) -> UInt64 {
    var check = SampleCheck(of: bytes, at: position)
    check.add(upTo: bytes.count)
    return check.finish()
  }

  /// Looks at what lies before a place of the sample: best when the processor has just seen it.
  package mutating func add(upTo end: Int) {
    // Behind the place there may be nothing yet, but where the sample ends nothing comes.
    let limit = end < bytes.count ? end - 8 * Self.words : bytes.count - 1
    while place <= limit {
      add(words: place)
      place = nextPlace
      nextPlace += Int(Self.sectorBytes)
    }
  }

  /// The check, when all of the sample was looked at.
  package consuming func finish() -> UInt64 {
    if bytes.count > 0 { add(words: max(0, bytes.count - 8 * Self.words)) }
    return Self.mixed(Self.mixed(Self.mixed(sums.0, sums.1), sums.2), sums.3)
  }

  private mutating func add(words place: Int) {
    sums.0 = Self.mixed(sums.0, word(place))
    sums.1 = Self.mixed(sums.1, word(place + 8))
    sums.2 = Self.mixed(sums.2, word(place + 16))
    sums.3 = Self.mixed(sums.3, word(place + 24))
  }

  /// The word at a place; of what there is of it, where the sample ends before it does.
  private func word(_ place: Int) -> UInt64 {
    if place + 8 <= bytes.count {
      return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
    }
    var word: UInt64 = 0
    for index in min(place, bytes.count)..<bytes.count { word = word << 8 | UInt64(bytes[index]) }
    return word
  }

  /// FNV-1a, a word at a time, so that order counts.
  private static func mixed(_ sum: UInt64, _ word: UInt64) -> UInt64 {
    let product = (sum ^ word) &* 0x0000_0100_0000_01B3
    return product ^ product >> 29
  }
}

/// The ledger of a take in the plain file: a box behind the media that readers skip.
///
/// A track of timed metadata would say the same, but `ffmpeg -c copy`, editors and players would
/// each have to do something about a track that none of them knows; a `uuid` box (ISO/IEC 14496-12,
/// 11.1) is skipped by all of them, and its records can be written one by one before there is any
/// index.
package enum LedgerBox {
  static let identity: [UInt8] = [
    0x8E, 0x1B, 0x5F, 0xC4, 0x0A, 0x6D, 0x4D, 0x11, 0xB2, 0x57, 0x6F, 0x76, 0x65, 0x72, 0x63, 0x72,
  ]
  private static let version: UInt16 = 1
  private static let headBytes = 24 + 8

  /// The box of the records, in order.
  package static func bytes(_ records: [UInt8]) -> [UInt8] {
    var box = BoxBytes()
    box.box(BoxType.own) { box in
      box.append(bytes: identity)
      box.append(version)
      box.append(UInt16(TakeRecord.byteCount))
      box.append(UInt32(clamping: records.count / TakeRecord.byteCount))
      box.append(bytes: records)
    }
    return box.bytes
  }

  /// The records of all frames that arrived, in order; nil where the file has no ledger, or one that
  /// is not whole.
  package static func read(from path: String) -> [FrameRecord]? {
    guard let file = try? MovieBoxes(opening: path, forWriting: false) else { return nil }
    for box in file.boxes() where box.type == BoxType.own {
      let head = file.file.read(headBytes, at: box.start)
      guard head.count == headBytes, Array(head[8..<24]) == identity,
        Box.number(head[24..<26]) == UInt64(version),
        Box.number(head[26..<28]) == UInt64(TakeRecord.byteCount),
        let size = Int(exactly: box.byteCount)
      else { continue }
      let count = Int(Box.number(head[28..<32]))
      let bytes = file.file.read(size - headBytes, at: box.start + Int64(headBytes))
      let frames = TakeRecord.list(bytes).compactMap { record -> FrameRecord? in
        if case .frame(let frame) = record { frame } else { nil }
      }
      return frames.count == count ? frames : nil
    }
    return nil
  }
}
