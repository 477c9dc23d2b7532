// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Reads the timed metadata tracks (`mebx`) of movies from this library and from phones.
package enum TimedMetadataReader {
  /// A metadata value and its time in the movie.
  package struct Value {
    /// The time of the value on the movie's own time axis, in seconds.
    package let seconds: Rational
    package let key: String
    package let value: MetadataValue
  }

  /// The greatest accepted number of samples in a track.
  ///
  /// `largestSample` is the greatest accepted size of a sample in bytes.
  ///
  /// The limits are needed because a damaged table may state any number.
  private static let (largestCount, largestSample) = (1 << 22, 1 << 20)
  /// The size of a sample that contains one empty box, in bytes.
  ///
  /// A smaller sample contains no value.
  private static let smallestSample = 8

  /// The values of all metadata tracks, in order of time.
  ///
  /// Empty if the file has no metadata track, is fragmented, or has damaged tables.
  package static func read(from path: String) -> [Value] {
    guard let file = try? MovieBoxes(opening: path, forWriting: false),
      let movie = file.boxes().first(where: { $0.type == BoxType.movie }),
      let bytes = file.bytes(of: movie)
    else { return [] }
    let box = Box(
      type: movie.type, start: 0, byteCount: Int64(bytes.count), headBytes: movie.headBytes)
    let timescale = box.first(BoxType.movieHeader, in: bytes)?.timescale(in: bytes) ?? 0
    var values: [Value] = []
    for track in box.all(BoxType.track, in: bytes) {
      guard
        let table = MetadataSampleTable(
          track, movieTimescale: timescale, fileBytes: file.byteCount, in: bytes)
      else { continue }
      for sample in table.samples.prefix(largestCount)
      where (smallestSample...largestSample).contains(sample.byteCount) {
        let data = file.file.read(sample.byteCount, at: sample.position)
        guard data.count == sample.byteCount else { break }
        for item in Box.list(in: data, from: 0, to: data.count) {
          guard let key = table.keys[item.type] else { continue }
          let content = data[Int(item.start + item.headBytes)..<Int(item.end)]
          values.append(
            Value(
              seconds: sample.seconds, key: key.name,
              value: MetadataValue(content, ofType: key.type)))
        }
      }
    }
    return values.enumerated()
      .sorted { ($0.element.seconds, $0.offset) < ($1.element.seconds, $1.offset) }
      .map(\.element)
  }
}

/// The keys and the samples of one metadata track.
private struct MetadataSampleTable {
  struct Sample {
    let seconds: Rational
    let position: Int64
    let byteCount: Int
  }

  private(set) var keys: [UInt32: (name: String, type: UInt32)] = [:]
  private(set) var samples: [Sample] = []

  /// Reads a `trak` box.
  ///
  /// Returns nil unless the track is a metadata track with intact tables.
  init?(_ track: Box, movieTimescale: UInt64, fileBytes: Int64, in bytes: [UInt8]) {
    guard let media = track.first(BoxType.trackMedia, in: bytes),
      media.first(BoxType.handler, in: bytes)?.number(8, in: bytes)
        == UInt64(BoxType.metadataHandler),
      let timescale = media.first(BoxType.mediaHeader, in: bytes)?.timescale(in: bytes),
      timescale > 0,
      let table = media.first(BoxType.mediaInformation, in: bytes)?
        .first(BoxType.sampleTable, in: bytes),
      let entry = table.first(BoxType.sampleDescriptions, in: bytes)?.metadataEntry(in: bytes)
    else { return nil }
    for list in Box.list(in: bytes, from: Int(entry.start) + 16, to: Int(entry.end))
    where list.type == BoxType.metadataKeys {
      for key in Box.list(in: bytes, from: Int(list.start + 8), to: Int(list.end)) {
        if let name = key.keyName(in: bytes) {
          let type = key.first(BoxType.keyDataType, in: bytes)
          keys[key.type] = (name, type.flatMap { $0.wellKnownType(in: bytes) } ?? 0)
        }
      }
    }
    let shift = Self.shift(
      of: track, movieTimescale: movieTimescale, timescale: timescale, in: bytes)
    guard let positions = Self.positions(table, fileBytes: fileBytes, in: bytes),
      let times = Self.times(table, count: positions.count, in: bytes)
    else { return nil }
    samples = zip(positions, times).map { location, ticks in
      Sample(
        seconds: Rational(Int128(ticks), over: Int128(timescale)) + shift,
        position: location.position,
        byteCount: location.byteCount)
    }
  }

  /// The time in seconds by which the edit list shifts the samples.
  private static func shift(
    of track: Box, movieTimescale: UInt64, timescale: UInt64, in bytes: [UInt8]
  ) -> Rational {
    guard
      let list = track.first(BoxType.edits, in: bytes)?.first(BoxType.editList, in: bytes),
      let version = list.number(0, in: bytes).map({ $0 >> 24 }),
      let count = list.number(4, in: bytes), movieTimescale > 0
    else { return .zero }
    var shift = Rational.zero
    // If the first entry of the edit list has no media, this entry delays the track. The second
    // entry then states where the media begins.
    for entry in 0..<Int(min(count, 2)) {
      let start = 8 + entry * (version == 1 ? 20 : 12)
      func field(_ number: Int) -> Int64? {
        guard version == 1 else {
          return list.number(start + number * 4, in: bytes)
            .map { Int64(Int32(truncatingIfNeeded: $0)) }
        }
        guard let high = list.number(start + number * 8, in: bytes),
          let low = list.number(start + number * 8 + 4, in: bytes)
        else { return nil }
        return Int64(bitPattern: high << 32 | low)
      }
      guard let duration = field(0), let media = field(1) else { break }
      guard media < 0 else { return shift - Rational(Int128(media), over: Int128(timescale)) }
      shift = shift + Rational(Int128(duration), over: Int128(movieTimescale))
    }
    return shift
  }

  /// The decode times of the first `count` samples, in ticks.
  private static func times(_ table: Box, count: Int, in bytes: [UInt8]) -> [Int64]? {
    guard let box = table.first(BoxType.timeToSample, in: bytes),
      let runs = box.number(4, in: bytes)
    else { return nil }
    var (times, now): ([Int64], Int64) = ([], 0)
    for run in 0..<Int(clamping: runs) {
      guard let length = box.number(8 + 8 * run, in: bytes),
        let duration = box.number(12 + 8 * run, in: bytes)
      else { return nil }
      for _ in 0..<min(Int(length), count - times.count) {
        times.append(now)
        now += Int64(duration)
      }
      if times.count == count { break }
    }
    return times
  }

  /// The byte offsets and the sizes of the samples in the file.
  ///
  /// Returns nil if the samples together are larger than the file. The chunks of the samples then
  /// overlap, and reading a small file would take as long as reading a large one.
  private static func positions(
    _ table: Box, fileBytes: Int64, in bytes: [UInt8]
  ) -> [(position: Int64, byteCount: Int)]? {
    let isLong = table.first(BoxType.chunkOffsets64, in: bytes) != nil
    guard let sizes = table.first(BoxType.sampleSizes, in: bytes),
      let common = sizes.number(4, in: bytes), let count = sizes.number(8, in: bytes),
      let chunks = table.first(BoxType.sampleToChunk, in: bytes),
      let runs = chunks.number(4, in: bytes),
      let offsets = table.first(
        isLong ? BoxType.chunkOffsets64 : BoxType.chunkOffsets, in: bytes),
      let chunkCount = offsets.number(4, in: bytes)
    else { return nil }
    guard Int128(common) * Int128(count) <= Int128(fileBytes) else { return nil }
    var locations: [(position: Int64, byteCount: Int)] = []
    var run = 0
    var bytesLeft = fileBytes
    for chunk in 0..<Int(clamping: chunkCount) where locations.count < Int(clamping: count) {
      // Each entry of the table applies to all chunks before the first chunk of the next entry.
      // Chunks are numbered from 1.
      while run + 1 < Int(clamping: runs),
        let first = chunks.number(8 + 12 * (run + 1), in: bytes), first <= UInt64(chunk) + 1
      {
        run += 1
      }
      guard let length = chunks.number(12 + 12 * run, in: bytes),
        let high = offsets.number(8 + chunk * (isLong ? 8 : 4), in: bytes)
      else { return nil }
      var position = Int64(high)
      if isLong {
        guard let low = offsets.number(12 + chunk * 8, in: bytes) else { return nil }
        position = Int64(bitPattern: high << 32 | low)
      }
      for _ in 0..<min(length, count - UInt64(locations.count)) {
        guard
          let size = common > 0 ? common : sizes.number(12 + 4 * locations.count, in: bytes),
          locations.count < 1 << 22, Int64(size) <= bytesLeft
        else { return nil }
        bytesLeft -= Int64(size)
        locations.append((position, Int(size)))
        position &+= Int64(size)
      }
    }
    return locations
  }
}

extension Box {
  /// The number of ticks per second that an `mvhd` or `mdhd` box states.
  fileprivate func timescale(in bytes: [UInt8]) -> UInt64? {
    number(0, in: bytes).flatMap { number($0 >> 24 == 1 ? 20 : 12, in: bytes) }
  }

  /// The first entry in an `stsd` box, if its format is `mebx`; otherwise nil.
  fileprivate func metadataEntry(in bytes: [UInt8]) -> Box? {
    Box.list(in: bytes, from: Int(start + headBytes) + 8, to: Int(end)).first
      .flatMap { $0.type == BoxType.boxedMetadata && $0.byteCount >= 16 ? $0 : nil }
  }

  /// The name of a key in the `keys` box of an `mebx` sample description.
  fileprivate func keyName(in bytes: [UInt8]) -> String? {
    // The name of a key is limited in length, because it is repeated for each value.
    guard let name = first(BoxType.keyDeclaration, in: bytes),
      (13...4_096).contains(name.byteCount)
    else { return nil }
    return String(decoding: bytes[(Int(name.start) + 12)..<Int(name.end)], as: UTF8.self)
  }

  /// The well-known type that a `dtyp` box states; nil for a type in another namespace.
  fileprivate func wellKnownType(in bytes: [UInt8]) -> UInt32? {
    number(0, in: bytes) == 0 ? number(4, in: bytes).map { UInt32(truncatingIfNeeded: $0) } : nil
  }
}
