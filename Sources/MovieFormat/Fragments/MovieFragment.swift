// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The samples of a movie fragment, from which its `moof` box is made (ISO/IEC 14496-12, 8.8).
struct MovieFragment {
  /// The byte offset of the fragment in the file.
  let start: Int64
  /// The presentation time of the fragment's first frame, in ticks of the first track.
  let ticks: Int64
  /// The samples of each track in the fragment, by track index.
  private var samples: [[StoredSample]]
  /// The current size of the `moof` box in bytes.
  private var headByteCount: Int
  /// The size of a sample's entry in the `moof` box, in bytes.
  private let sampleBytes: Int
  private var end: Int64 = -1
  private var lastTrack = -1

  private static let runBytes = 20
  private static let sampleBytes = 12
  private static let reorderedSampleBytes = 16
  /// The least size of the `free` box after the `moof` box, which contains the CRC-32 of the `moof`
  /// box.
  private static let paddingBytes = 12

  /// The size of a `moof` box with `trackCount` tracks but without samples, in bytes.
  private static func emptyBytes(trackCount: Int) -> Int { 8 + 16 + trackCount * (8 + 16 + 20) }

  /// The space to reserve for the `moof` box and the padding after it, in bytes.
  static func maximumHeadBytes(trackCount: Int, sampleCount: Int, isReordered: Bool) -> Int {
    let sample = isReordered ? reorderedSampleBytes : sampleBytes
    return emptyBytes(trackCount: trackCount) + sampleCount * (sample + runBytes) + paddingBytes
  }

  /// Creates a fragment without samples.
  ///
  /// If `isReordered` is true, samples have a presentation offset.
  init(start: Int64, ticks: Int64, trackCount: Int, isReordered: Bool) {
    self.start = start
    self.ticks = ticks
    samples = Array(repeating: [], count: trackCount)
    headByteCount = Self.emptyBytes(trackCount: trackCount)
    sampleBytes = isReordered ? Self.reorderedSampleBytes : Self.sampleBytes
  }

  /// Whether the `moof` box would fit in `byteCount` bytes after one more sample.
  func hasSpace(in byteCount: Int) -> Bool {
    headByteCount + Self.runBytes + sampleBytes + Self.paddingBytes <= byteCount
  }

  /// Adds a sample.
  ///
  /// Samples of a track that are contiguous in the file share one `trun` box.
  mutating func append(_ sample: StoredSample) {
    let track = sample.track
    if track != lastTrack || sample.position != end { headByteCount += Self.runBytes }
    headByteCount += sampleBytes
    lastTrack = track
    end = sample.position + Int64(sample.byteCount)
    samples[track].append(sample)
  }

  /// Sets the end time of a track's last sample.
  mutating func endLast(ofTrack track: Int, atTicks ticks: Int64) {
    guard let last = samples[track].last else { return }
    samples[track][samples[track].count - 1].duration = ticks &- last.ticks
  }

  /// Whether the fragment has no samples.
  ///
  /// A fragment without samples has no `moof` box.
  var isEmpty: Bool { samples.allSatisfy(\.isEmpty) }

  /// Returns the `moof` box and the `free` box after it, which together fill the reserved space.
  ///
  /// The `free` box starts with the CRC-32 of the `moof` box.
  ///
  /// - Parameters:
  ///   - number: The fragment's sequence number, from 1.
  ///   - space: The total size of both boxes in bytes.
  /// - Returns: The bytes of both boxes.
  func head(number: UInt32, space: Int) -> [UInt8] {
    var head = BoxBytes(capacity: space)
    if isEmpty {
      head.free(space)
    } else {
      writeHead(number: number, into: &head)
      let check = head.bytes.withUnsafeBytes { CRC32.checksum(of: $0) }
      head.free(space - head.bytes.count, holding: check)
    }
    return head.bytes
  }

  /// Appends the `moof` box.
  ///
  /// `number` is the fragment's sequence number, from 1.
  private func writeHead(number: UInt32, into head: inout BoxBytes) {
    head.box(BoxType.fragment) { box in
      box.fullBox(BoxType.fragmentHeader, version: 0, flags: 0) { $0.append(number) }
      for (track, samples) in samples.enumerated() {
        guard let first = samples.first else { continue }
        box.box(BoxType.trackFragment) { box in
          // Flag 0x020000 (default-base-is-moof): the data offsets of `trun` boxes are relative to
          // the `moof` box.
          box.fullBox(BoxType.trackFragmentHeader, version: 0, flags: 0x02_0000) {
            $0.append(UInt32(track + 1))
          }
          box.fullBox(BoxType.trackFragmentTime, version: 1, flags: 0) { $0.append(first.ticks) }
          for run in runs(of: samples) { write(samples[run], into: &box) }
        }
      }
    }
  }

  /// The ranges of samples that are contiguous in the file.
  private func runs(of samples: [StoredSample]) -> [Range<Int>] {
    var runs: [Range<Int>] = []
    var first = 0
    for index in samples.indices.dropFirst() {
      let before = samples[index - 1]
      if before.position + Int64(before.byteCount) != samples[index].position {
        runs.append(first..<index)
        first = index
      }
    }
    runs.append(first..<samples.count)
    return runs
  }

  private func write(_ run: ArraySlice<StoredSample>, into box: inout BoxBytes) {
    // The data offset of the `trun` box is followed by the duration, size, flags and, if samples
    // are reordered, composition time offset of each sample.
    let isReordered = run.contains { $0.presentationOffset != 0 }
    let fields: UInt32 = 0x01 | 0x100 | 0x200 | 0x400 | (isReordered ? 0x800 : 0)
    box.fullBox(BoxType.trackRun, version: 0, flags: fields) { box in
      box.append(UInt32(run.count))
      box.append(Int32(clamping: (run.first?.position ?? start) - start))
      for sample in run {
        box.append(UInt32(clamping: sample.duration))
        box.append(UInt32(clamping: sample.byteCount))
        box.append(sample.flags)
        if isReordered { box.append(UInt32(clamping: sample.presentationOffset)) }
      }
    }
  }
}

extension StoredSample {
  /// The sample flags in a `trun` box (ISO/IEC 14496-12, 8.8.3.1).
  fileprivate var flags: UInt32 {
    // A key frame depends on no other sample. Any other sample depends on others and is no sync
    // sample.
    let dependence: UInt32 = isKeyFrame ? 0x0200_0000 : 0x0101_0000
    // The bit 0x0080_0000 means that no other sample depends on this sample.
    return isDroppable ? dependence | 0x0080_0000 : dependence
  }
}

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
  private(set) var start: Int64 = 0
  private(set) var capacity = 0
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

  func hasSpace(for more: Int) -> Bool { count + more <= capacity }

  /// Starts the empty journal of another fragment, with the memory of this one.
  mutating func begin(at start: Int64, capacity: Int) {
    (self.start, self.capacity, count) = (start, capacity, 0)
    waiting.removeAll(keepingCapacity: true)
  }

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
