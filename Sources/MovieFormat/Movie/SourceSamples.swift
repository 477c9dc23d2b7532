// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The samples of a track of a MOV or MP4 file, from the tables in its `trak` box.
package struct SourceSamples: Sendable {
  /// A sample, or a block of samples of uncompressed audio.
  package struct Sample: Sendable {
    /// The byte offset in the file.
    package let position: Int64
    package let byteCount: Int
    /// The decoding time in ticks of the track, from 0 for the first sample.
    package let ticks: Int64
    /// The duration in ticks.
    package let duration: Int64
    /// The index of the sample's description, from 0.
    package let description: Int
    /// The number of samples in a block of uncompressed audio; otherwise 1.
    package let count: Int
  }

  /// The samples in decoding order.
  package private(set) var samples: [Sample]
  /// The time in seconds by which the edit list shifts the samples.
  package private(set) var shift = Rational.zero
  /// The end of the track in the movie in seconds, according to the edit list; nil if it states none.
  package private(set) var end: Rational?
  /// Whether the edit list only delays and trims the media, so that ``shift`` and ``end`` describe it.
  package private(set) var hasPlainEdits = true

  /// Whether the table of times (`stts`) lists all samples; otherwise, ``samples`` are the first ones.
  package private(set) var isComplete = true

  /// Whether no sample depends on another one, so that there is no table of sync samples (`stss`).
  package private(set) var isIntraOnly = true

  /// The greatest accepted number of samples.
  ///
  /// The limit is needed because a damaged table may state any number.
  private static let largestCount = 1 << 22

  /// Reads the tables of a `trak` box.
  ///
  /// Nil for a track with damaged tables, without samples in them, or with more bytes in its samples than
  /// the file has. The chunks of the samples then overlap, and reading a small file would take as long as
  /// reading a large one.
  ///
  /// - Parameters:
  ///   - track: The `trak` box.
  ///   - movieTimescale: The number of ticks per second in the edit list.
  ///   - fileBytes: The size of the file in bytes.
  ///   - blockSampleBytes: The number of bytes of a sample of uncompressed audio, whose chunks are read as
  ///     blocks; nil for other tracks.
  ///   - bytes: The bytes that contain the box.
  init?(
    _ track: Box, movieTimescale: UInt64, fileBytes: Int64, blockSampleBytes: Int? = nil,
    in bytes: [UInt8]
  ) {
    guard let media = track.first(BoxType.trackMedia, in: bytes),
      let timescale = media.first(BoxType.mediaHeader, in: bytes)?.timescale(in: bytes),
      timescale > 0,
      let table = track.sampleTable(in: bytes),
      let chunks = Self.chunks(table, fileBytes: fileBytes, blockSampleBytes, in: bytes),
      let samples = Self.timed(chunks, table, in: bytes)
    else { return nil }
    self.samples = samples
    isComplete = samples.count == chunks.count
    isIntraOnly = table.first(BoxType.syncSamples, in: bytes) == nil
    readEdits(track, movieTimescale: movieTimescale, timescale: timescale, in: bytes)
  }

  /// Drops the first sample that ends beyond the end of a truncated file, and all later ones.
  package mutating func keepFirst(within fileBytes: Int64) {
    samples = Array(
      samples.prefix { $0.position >= 0 && $0.position <= fileBytes - Int64($0.byteCount) })
  }

  /// Reads the edit list: an entry without media delays the track, and the next entry states where the media
  /// begins.
  private mutating func readEdits(
    _ track: Box, movieTimescale: UInt64, timescale: UInt64, in bytes: [UInt8]
  ) {
    guard let edits = track.edits(in: bytes), movieTimescale > 0 else { return }
    for (number, edit) in edits.entries.prefix(2).enumerated() {
      let duration = Rational(Int128(edit.duration), over: Int128(movieTimescale))
      guard edit.mediaTime < 0 else {
        hasPlainEdits =
          edits.isWhole && number + 1 == edits.entries.count && edit.rate == 0x1_0000
        // The duration 0 means that the rest of the media is shown.
        if edit.duration > 0 { end = shift + duration }
        shift = shift - Rational(Int128(edit.mediaTime), over: Int128(timescale))
        return
      }
      shift = shift + duration
    }
    hasPlainEdits = false
  }

  /// Gives the samples their times; those that the table (`stts`) does not list are left out.
  private static func timed(
    _ untimed: [Sample], _ table: Box, in bytes: [UInt8]
  ) -> [Sample]? {
    guard let box = table.first(BoxType.timeToSample, in: bytes),
      let runs = box.number(4, in: bytes)
    else { return nil }
    var (samples, now): ([Sample], Int64) = ([], 0)
    samples.reserveCapacity(untimed.count)
    /// The number of samples of a block whose times are known.
    var known = 0
    for run in 0..<Int(clamping: runs) where samples.count < untimed.count {
      guard var length = box.number(8 + 8 * run, in: bytes),
        let delta = box.number(12 + 8 * run, in: bytes)
      else { return nil }
      while length > 0, samples.count < untimed.count {
        let sample = untimed[samples.count]
        let taken = min(length, UInt64(sample.count - known))
        known += Int(taken)
        length -= taken
        // All samples of a block of uncompressed audio have one duration.
        guard sample.count == 1 || delta == 1 else { return nil }
        guard known == sample.count else { break }
        let duration = Int64(delta) * Int64(sample.count)
        samples.append(
          Sample(
            position: sample.position, byteCount: sample.byteCount, ticks: now, duration: duration,
            description: sample.description, count: sample.count))
        now += duration
        known = 0
      }
    }
    return samples
  }

  /// The samples without their times, or the chunks of uncompressed audio.
  private static func chunks(
    _ table: Box, fileBytes: Int64, _ blockSampleBytes: Int?, in bytes: [UInt8]
  ) -> [Sample]? {
    let isLong = table.first(BoxType.chunkOffsets64, in: bytes) != nil
    guard let sizes = table.first(BoxType.sampleSizes, in: bytes),
      let common = sizes.number(4, in: bytes), let count = sizes.number(8, in: bytes),
      let chunks = table.first(BoxType.sampleToChunk, in: bytes),
      let runs = chunks.number(4, in: bytes),
      let offsets = table.first(
        isLong ? BoxType.chunkOffsets64 : BoxType.chunkOffsets, in: bytes),
      let chunkCount = offsets.number(4, in: bytes),
      // Old files state 1 for each sample of uncompressed audio.
      blockSampleBytes == nil || [1, UInt64(blockSampleBytes ?? 0)].contains(common)
    else { return nil }
    let sampleBytes = blockSampleBytes.map(UInt64.init) ?? common
    guard Int128(sampleBytes) * Int128(count) <= Int128(fileBytes) else { return nil }
    var found: [Sample] = []
    var run = 0
    var (bytesLeft, samplesLeft) = (fileBytes, count)
    func add(_ position: Int64, _ size: UInt64, count: Int, description: Int) -> Bool {
      guard found.count < largestCount, Int64(size) <= bytesLeft else { return false }
      bytesLeft -= Int64(size)
      found.append(
        Sample(
          position: position, byteCount: Int(size), ticks: 0, duration: 0,
          description: description, count: count))
      return true
    }
    for chunk in 0..<Int(clamping: chunkCount) where samplesLeft > 0 {
      // Each entry of the table applies to all chunks before the first chunk of the next entry.
      // Chunks are numbered from 1.
      while run + 1 < Int(clamping: runs),
        let first = chunks.number(8 + 12 * (run + 1), in: bytes), first <= UInt64(chunk) + 1
      {
        run += 1
      }
      guard let stated = chunks.number(12 + 12 * run, in: bytes),
        let number = chunks.number(16 + 12 * run, in: bytes), number > 0,
        let high = offsets.number(8 + chunk * (isLong ? 8 : 4), in: bytes)
      else { return nil }
      let (length, description) = (min(stated, samplesLeft), Int(number) - 1)
      var position = Int64(high)
      if isLong {
        guard let low = offsets.number(12 + chunk * 8, in: bytes) else { return nil }
        position = Int64(bitPattern: high << 32 | low)
      }
      if let blockSampleBytes {
        guard
          length == 0
            || add(
              position, length * UInt64(blockSampleBytes), count: Int(length),
              description: description)
        else { return nil }
      } else {
        for index in 0..<length {
          let number = 12 + 4 * Int(count - samplesLeft + index)
          guard let size = common > 0 ? common : sizes.number(number, in: bytes),
            add(position, size, count: 1, description: description)
          else { return nil }
          position &+= Int64(size)
        }
      }
      samplesLeft -= length
    }
    return found
  }
}
