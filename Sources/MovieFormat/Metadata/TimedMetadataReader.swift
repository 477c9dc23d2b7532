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

  /// The greatest accepted size of a sample in bytes.
  ///
  /// The limit is needed because a damaged table may state any number.
  private static let largestSample = 1 << 20
  /// The size of a sample that contains one empty box, in bytes.
  ///
  /// A smaller sample contains no value.
  private static let smallestSample = 8

  /// The values of all metadata tracks, in order of time.
  ///
  /// Empty if the file has no metadata track, is fragmented, or has damaged tables.
  package static func read(from path: String) -> [Value] {
    guard let file = try? MovieBoxes(opening: path, forWriting: false),
      let (box, bytes) = file.movie(in: file.boxes())
    else { return [] }
    let timescale = box.first(BoxType.movieHeader, in: bytes)?.timescale(in: bytes) ?? 0
    var values: [Value] = []
    for track in box.all(BoxType.track, in: bytes) {
      guard
        let table = MetadataSampleTable(
          track, movieTimescale: timescale, fileBytes: file.byteCount, in: bytes)
      else { continue }
      for sample in table.samples
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
      let table = track.sampleTable(in: bytes),
      let entry = table.first(BoxType.sampleDescriptions, in: bytes)?.metadataEntry(in: bytes),
      let stored = SourceSamples(
        track, movieTimescale: movieTimescale, fileBytes: fileBytes, in: bytes)
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
    samples = stored.samples.map { sample in
      Sample(
        seconds: Rational(Int128(sample.ticks), over: Int128(timescale)) + stored.shift,
        position: sample.position, byteCount: sample.byteCount)
    }
  }
}

extension Box {
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
