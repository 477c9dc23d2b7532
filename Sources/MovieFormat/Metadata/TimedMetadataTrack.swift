// SPDX-License-Identifier: Apache-2.0

/// Builds the timed metadata track of a movie: its description and its samples.
///
/// The track has the sample format `mebx` (QuickTime File Format, "Timed Metadata Media"; ISO/IEC
/// 14496-12, 12.9).
/// Each sample lasts until the next one. If the first value is later than the start of the movie, a
/// sample without values precedes it. Readers that ignore edit lists then find the right times,
/// too.
package struct TimedMetadataTrack {
  /// A key and the type of its values.
  ///
  /// A number represents both in the samples.
  private struct Key: Hashable {
    let name: String
    let type: UInt32
  }

  private struct Sample {
    let ticks: Int64
    var bytes: [UInt8]
  }

  /// The number of ticks per second, which is one million because frame times are in microseconds.
  private static let timescale: Int32 = 1_000_000
  /// The greatest duration of a sample in ticks, because `stts` stores it in 32 bits.
  private static let longestDuration: Int64 = 1 << 30

  private var keys: [Key] = []
  private var samples: [Sample] = []
  /// The end of the metadata track's media in ticks.
  private let end: Int64
  /// The time in the movie at which the media begins, in ticks.
  ///
  /// Nil for the start of the movie.
  private var delay: Int64?

  /// Creates the tracks for metadata values.
  ///
  /// The still-image time of a Live Photo is in a separate track, because readers search for a
  /// track with a single sample at that time.
  package static func tracks(of values: [TimedValue], end: Int64) -> [TimedMetadataTrack] {
    let still = values.first {
      $0.key == TimedValue.stillImageTime && (0..<max(1, end)).contains($0.ticks)
    }
    let others = TimedMetadataTrack(values.filter { $0.key != TimedValue.stillImageTime }, end: end)
    return [others, still.map { TimedMetadataTrack(stillImageAt: $0.ticks) }].compactMap(\.self)
  }

  /// Creates the track with the still-image time of a Live Photo.
  private init(stillImageAt ticks: Int64) {
    // Readers of the still-image key require an 8-bit number, but ignore the number's value.
    keys = [Key(name: TimedValue.stillImageTime, type: 65)]
    var item = BoxBytes()
    item.box(1) { $0.append(bytes: [0xFF]) }
    samples = [Sample(ticks: 0, bytes: item.bytes)]
    // Phones give the still-image sample a duration of 1/600 s.
    end = Int64(Self.timescale) / 600
    delay = ticks
  }

  /// Creates the track for metadata values.
  ///
  /// Returns nil if no value is before the end of the movie.
  package init?(_ values: [TimedValue], end: Int64) {
    self.end = end
    let sorted = values.enumerated()
      .filter { (0..<max(0, end)).contains($0.element.ticks) }
      .sorted { ($0.element.ticks, $0.offset) < ($1.element.ticks, $1.offset) }
    var numbers: [Key: UInt32] = [:]
    for (_, value) in sorted {
      let key = Key(name: value.key, type: value.value.typeIndicator)
      let number = numbers[key] ?? UInt32(clamping: keys.count + 1)
      if numbers[key] == nil {
        keys.append(key)
        numbers[key] = number
      }
      var item = BoxBytes()
      item.box(number) { $0.append(bytes: value.value.bytes) }
      if samples.last?.ticks == value.ticks {
        samples[samples.count - 1].bytes += item.bytes
      } else {
        addEmpty(before: value.ticks)
        samples.append(Sample(ticks: value.ticks, bytes: item.bytes))
      }
    }
    guard !samples.isEmpty else { return nil }
    addEmpty(before: end)
  }

  /// Adds samples without values: before the first value, and where a sample would last too long.
  private mutating func addEmpty(before ticks: Int64) {
    var empty = BoxBytes()
    // The key number 0 means no key. Such an item is needed because readers do not expect a sample
    // of zero bytes.
    empty.box(0) { _ in }
    if samples.isEmpty, ticks > 0 { samples.append(Sample(ticks: 0, bytes: empty.bytes)) }
    while let last = samples.last, ticks &- last.ticks > Self.longestDuration {
      samples.append(Sample(ticks: last.ticks + Self.longestDuration, bytes: empty.bytes))
    }
  }

  /// The `mdat` box that contains all samples of the track.
  package var media: [UInt8] {
    var box = BoxBytes()
    box.box(BoxType.media) { for sample in samples { $0.append(bytes: sample.bytes) } }
    return box.bytes
  }

  /// The description of the track, whose values describe the first track.
  func description(in container: MovieContainer) -> MovieTrack {
    var header = BoxBytes()
    if container == .mov {
      header.box(BoxType.baseHeader) { box in
        box.fullBox(0x676D_696E, version: 0, flags: 0) { box in  // gmin
          // The graphics mode and color with which the media would be drawn if it were visible.
          for value in [0x40, 0x8000, 0x8000, 0x8000, 0, 0] as [UInt16] { box.append(value) }
        }
      }
    } else {
      header.fullBox(0x6E6D_6864, version: 0, flags: 0) { _ in }  // nmhd
    }
    var entry = BoxBytes()
    entry.box(BoxType.boxedMetadata) { box in
      box.append(UInt64(1))  // reserved bytes, and the first data reference
      box.box(BoxType.metadataKeys) { box in
        for (index, key) in keys.enumerated() {
          box.box(UInt32(clamping: index + 1)) { box in
            box.box(BoxType.keyDeclaration) { box in
              box.append(BoxType.metadataKeyNamespace)
              box.append(bytes: Array(key.name.utf8))
            }
            box.box(BoxType.keyDataType) { box in
              box.append(UInt32(0))  // the namespace of the well-known types
              box.append(key.type)
            }
          }
        }
      }
    }
    var track = MovieTrack(
      handler: BoxType.metadataHandler, name: "", timescale: Self.timescale, language: 0x55C4,
      mediaHeader: header.bytes, descriptions: [SampleDescription(entry.bytes)])
    track.references = [MovieTrack.Reference(type: 0x6364_7363, tracks: [0])]  // cdsc
    return track
  }

  /// The samples of the track; `start` is the offset of ``media`` in the file.
  func table(mediaStart start: Int64) -> SampleTable {
    var table = SampleTable()
    var position = start + 8
    let ends = samples.dropFirst().map(\.ticks) + [end]
    for (sample, end) in zip(samples, ends) {
      let entry = SampleTable.Sample(
        position: position, byteCount: Int32(clamping: sample.bytes.count),
        ticks: sample.ticks &+ (delay ?? 0), duration: Int32(clamping: max(1, end &- sample.ticks)),
        isKeyFrame: true)
      table.append(entry)
      position = entry.end
    }
    return table
  }
}
