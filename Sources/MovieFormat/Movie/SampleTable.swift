// SPDX-License-Identifier: Apache-2.0

/// The samples of a track, and the boxes of the index that list them (ISO/IEC 14496-12, 8.6 and 8.7).
package struct SampleTable: Sendable {
  /// A stored sample, or a block of samples of uncompressed audio.
  package struct Sample: Sendable {
    /// The byte offset in the file.
    package var position: Int64
    package var byteCount: Int32
    /// The number of samples in a block of uncompressed audio; otherwise 1.
    package var count: Int32 = 1
    /// The decoding time in ticks of the track; it may be negative.
    package var ticks: Int64
    /// The time from decoding to presentation in ticks, zero or above.
    package var presentationOffset: Int32 = 0
    /// The duration in ticks; only those of the last samples count, see ``SampleTable/end``.
    package var duration: Int32
    /// The index of the sample's description, from 0.
    package var description: UInt16 = 0
    package var isKeyFrame: Bool
    /// Whether no other sample depends on this one.
    package var isDroppable = false
    /// Whether the sample starts an open GOP, which QuickTime marks in a table of its own (`stps`).
    package var isPartialSync = false

    package init(
      position: Int64, byteCount: Int32, ticks: Int64, duration: Int32, isKeyFrame: Bool
    ) {
      (self.position, self.byteCount, self.ticks) = (position, byteCount, ticks)
      (self.duration, self.isKeyFrame) = (duration, isKeyFrame)
    }

    package var end: Int64 { position + Int64(byteCount) }
  }

  /// The samples in decoding order.
  package private(set) var samples: [Sample] = []
  /// The range from the earliest presentation time to the latest end of a sample, in ticks.
  package private(set) var shown: Range<Int64>?
  private var keyFrameCount = 0
  private var hasDroppable = false
  private var isReordered = false

  package init() {}

  package mutating func append(_ sample: Sample) {
    let start = sample.ticks &+ Int64(sample.presentationOffset)
    let end = start &+ Int64(sample.duration)
    shown = min(shown?.lowerBound ?? start, start)..<max(shown?.upperBound ?? end, end)
    if sample.isKeyFrame { keyFrameCount += 1 }
    hasDroppable = hasDroppable || sample.isDroppable
    isReordered = isReordered || sample.presentationOffset != 0
    samples.append(sample)
  }

  package mutating func reserveCapacity(_ count: Int) { samples.reserveCapacity(count) }

  /// Whether samples are stored in blocks, as those of uncompressed audio.
  var hasBlocks: Bool { samples.contains { $0.count > 1 } }
  /// The latest end of a sample in ticks.
  var end: Int64 { shown?.upperBound ?? 0 }
  /// The presentation time of the first sample in decoding order.
  var start: Int64 { samples.first.map { $0.ticks &+ Int64($0.presentationOffset) } ?? 0 }

  /// The average bit rate in bits per second.
  func bitRate(timescale: Int32) -> UInt32 {
    guard let first = samples.first, let last = samples.last else { return 0 }
    let length = last.ticks &- first.ticks &+ Int64(last.duration)
    let bits = samples.reduce(Int128(0)) { $0 + Int128($1.byteCount) } * 8
    return length > 0 ? UInt32(clamping: bits * Int128(timescale) / Int128(length)) : 0
  }

  /// How early decoding must start so that a sample is right.
  enum Roll {
    case samples(Int16)
    /// The sample that begins at least this number of ticks earlier.
    case ticks(Int64)
  }

  /// A track's properties on which the tables depend.
  struct Properties {
    var isVideo: Bool
    /// Whether samples are blocks of uncompressed audio, of which each sample lasts one tick.
    var isUncompressedAudio: Bool
    /// How early decoding must start so that a sample is right (`sgpd`); nil if that does not matter.
    var roll: Roll?
    var isQuickTime: Bool
  }

  /// Appends all tables after `stsd`.
  func write(_ track: Properties, into box: inout BoxBytes) {
    writeTimes(track, into: &box)
    if track.isVideo, keyFrameCount > 0, keyFrameCount < samples.count {
      writeNumbers(BoxType.syncSamples, into: &box) { $0.isKeyFrame }
    }
    if track.isVideo, hasDroppable { writeDependencies(into: &box) }
    if track.isQuickTime, samples.contains(where: \.isPartialSync) {
      writeNumbers(BoxType.partialSyncSamples, into: &box) { $0.isPartialSync }
    }
    if track.isVideo, isReordered {
      writeRuns(BoxType.compositionOffsets, into: &box) {
        UInt32(clamping: samples[$0].presentationOffset)
      }
    }
    writeChunks(into: &box)
    if let roll = track.roll { writeRoll(roll, into: &box) }
  }

  private var sampleCount: Int64 { samples.reduce(0) { $0 + Int64($1.count) } }

  /// Appends the `stts` box: each sample lasts until the next one is decoded.
  private func writeTimes(_ track: Properties, into box: inout BoxBytes) {
    guard !track.isUncompressedAudio || samples.isEmpty else {
      return box.fullBox(BoxType.timeToSample, version: 0, flags: 0) { box in
        for number in [1, UInt32(clamping: sampleCount), 1] { box.append(number) }
      }
    }
    writeRuns(BoxType.timeToSample, into: &box) { index in
      let sample = samples[index]
      return index + 1 < samples.count
        ? UInt32(clamping: samples[index + 1].ticks &- sample.ticks)
        : UInt32(clamping: sample.duration)
    }
  }

  /// Appends a box that states a number for each run of samples.
  private func writeRuns(
    _ type: UInt32, into box: inout BoxBytes, _ value: (_ index: Int) -> UInt32
  ) {
    box.fullBox(type, version: 0, flags: 0) {
      Self.append(runsOf: samples.count, to: &$0, value)
    }
  }

  /// Appends the number of runs of equal values, and the length and the value of each.
  private static func append(
    runsOf count: Int, to box: inout BoxBytes, _ value: (_ index: Int) -> UInt32
  ) {
    var runs: [(count: UInt32, value: UInt32)] = []
    for index in 0..<count {
      let value = value(index)
      if runs.last?.value == value {
        runs[runs.count - 1].count += 1
      } else {
        runs.append((1, value))
      }
    }
    box.append(UInt32(clamping: runs.count))
    for run in runs {
      box.append(run.count)
      box.append(run.value)
    }
  }

  /// Appends a box that lists the numbers of some samples, from 1.
  private func writeNumbers(
    _ type: UInt32, into box: inout BoxBytes, _ isListed: (Sample) -> Bool
  ) {
    let numbers = samples.indices.filter { isListed(samples[$0]) }
    box.fullBox(type, version: 0, flags: 0) { box in
      box.append(UInt32(clamping: numbers.count))
      for number in numbers { box.append(UInt32(clamping: number + 1)) }
    }
  }

  /// Appends the `sdtp` box.
  private func writeDependencies(into box: inout BoxBytes) {
    box.fullBox(BoxType.sampleDependencies, version: 0, flags: 0) { box in
      for sample in samples {
        let depends: UInt8 = sample.isKeyFrame ? 2 : 1
        box.append(depends << 4 | (sample.isDroppable ? 2 << 2 : 0))
      }
    }
  }

  /// The greatest size of a chunk in bytes.
  private static let chunkBytes: Int64 = 1 << 20

  /// The index after the last sample of each chunk.
  ///
  /// A chunk is a run of samples with one description that are contiguous in the file.
  private var chunkEnds: [Int] {
    var ends: [Int] = []
    var byteCount: Int64 = 0
    for (index, sample) in samples.enumerated() {
      if index > 0 {
        let previous = samples[index - 1]
        let isContiguous =
          previous.end == sample.position
          && previous.description == sample.description
        if !isContiguous || byteCount + Int64(sample.byteCount) >= Self.chunkBytes {
          ends.append(index)
          byteCount = 0
        }
      }
      byteCount += Int64(sample.byteCount)
    }
    return samples.isEmpty ? [] : ends + [samples.count]
  }

  /// Appends the boxes `stsc`, `stsz`, and `stco` or `co64`.
  private func writeChunks(into box: inout BoxBytes) {
    let ends = chunkEnds
    let starts = [0] + ends.dropLast()
    var runs: [(chunk: UInt32, count: UInt32, description: UInt32)] = []
    for (number, (start, end)) in zip(starts, ends).enumerated() {
      let count = UInt32(clamping: samples[start..<end].reduce(0) { $0 + Int64($1.count) })
      let description = UInt32(samples[start].description) + 1
      if runs.last.map({ $0.count == count && $0.description == description }) ?? false { continue }
      runs.append((UInt32(clamping: number + 1), count, description))
    }
    box.fullBox(BoxType.sampleToChunk, version: 0, flags: 0) { box in
      box.append(UInt32(clamping: runs.count))
      for run in runs {
        for number in [run.chunk, run.count, run.description] { box.append(number) }
      }
    }
    writeSizes(into: &box)
    let isLong = samples.contains { $0.position > Int64(UInt32.max) }
    box.fullBox(isLong ? BoxType.chunkOffsets64 : BoxType.chunkOffsets, version: 0, flags: 0) {
      box in
      box.append(UInt32(clamping: ends.count))
      for start in starts.prefix(ends.count) {
        box.append(samples[start].position, isLong: isLong)
      }
    }
  }

  private func writeSizes(into box: inout BoxBytes) {
    let sizes = samples.lazy.map { $0.byteCount / max(1, $0.count) }
    let common = sizes.first.flatMap { first in sizes.allSatisfy { $0 == first } ? first : nil }
    box.fullBox(BoxType.sampleSizes, version: 0, flags: 0) { box in
      box.append(UInt32(clamping: common.map { max(1, $0) } ?? 0))
      box.append(UInt32(clamping: sampleCount))
      guard common == nil else { return }
      for (sample, size) in zip(samples, sizes) {
        for _ in 0..<sample.count { box.append(UInt32(clamping: size)) }
      }
    }
  }

  /// The number of samples before each one at which decoding must start; 0 if there are too few.
  private func distances(_ roll: Roll) -> [Int16] {
    switch roll {
    case .samples(let count): return Array(repeating: count, count: Int(clamping: sampleCount))
    case .ticks(let length):
      // The samples before `next` begin early enough.
      var next = 0
      return samples.indices.map { index in
        while next < index, samples[index].ticks &- samples[next].ticks >= length { next += 1 }
        return next > 0 ? Int16(clamping: index - next + 1) : 0
      }
    }
  }

  /// Appends the boxes by which samples form groups, before whose samples decoding must start early
  /// (ISO/IEC 14496-12, 10.1).
  private func writeRoll(_ roll: Roll, into box: inout BoxBytes) {
    let type: UInt32 = 0x726F_6C6C  // roll
    var groups: [Int16] = []
    let numbers = distances(roll).map { distance -> UInt32 in
      if distance > 0, !groups.contains(distance) { groups.append(distance) }
      return UInt32(clamping: (groups.firstIndex(of: distance) ?? -1) + 1)
    }
    guard !groups.isEmpty else { return }
    box.fullBox(BoxType.sampleGroupDescription, version: 1, flags: 0) { box in
      box.append(type)
      box.append(UInt32(2))
      box.append(UInt32(clamping: groups.count))
      for distance in groups { box.append(-distance) }
    }
    box.fullBox(BoxType.sampleToGroup, version: 0, flags: 0) { box in
      box.append(type)
      Self.append(runsOf: numbers.count, to: &box) { numbers[$0] }
    }
  }
}
