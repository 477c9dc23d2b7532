// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Builds the timed metadata track of a movie: its samples and its `trak` box.
///
/// The track has the sample format `mebx` (QuickTime File Format, "Timed Metadata Media"; ISO/IEC
/// 14496-12, 12.9). libavformat cannot write such a track, so it is added to the finished index.
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

  private struct Edit {
    /// The duration of the edit list entry, in ticks of the movie.
    let duration: Int64
    /// The start of the edit list entry in the media, or -1 for a delay.
    let start: Int64
  }

  /// The number of ticks per second, which is one million because frame times are in microseconds.
  private static let timescale: UInt32 = 1_000_000
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
    let still = values.first { $0.key == TimedValue.stillImageTime }
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

  /// Adds the track to an index.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of boxes that include a `moov` box, which is extended.
  ///   - mediaStart: The offset of ``media`` in the file.
  /// - Returns: Whether the track was added.
  package func add(to bytes: inout [UInt8], mediaStart: Int64) -> Bool {
    guard
      let movie = Box.list(in: bytes, from: 0, to: bytes.count)
        .first(where: { $0.type == BoxType.movie }), movie.headBytes == 8,
      let last = movie.all(BoxType.track, in: bytes).last,
      let header = movie.first(BoxType.movieHeader, in: bytes),
      let version = header.number(0, in: bytes).map({ $0 >> 24 }),
      let timescale = header.number(version == 1 ? 20 : 12, in: bytes), timescale > 0
    else { return false }
    // The ID for the next track is the last field of this box.
    let next = Int(header.end) - 4
    let number = UInt32(Box.number(bytes[next..<next + 4]))
    let isQuickTime = movie.isQuickTime(in: bytes)
    let ratio = Rational(Int128(timescale), over: Int128(Self.timescale))
    func moved(_ ticks: Int64) -> Int64 {
      Int64(
        clamping: (try? (Rational(ticks) * ratio).rounded(.halfAwayFromZero)) ?? Int128(ticks))
    }
    let (start, length) = (delay.map(moved), moved(end))
    var track = BoxBytes()
    write(
      number: number, duration: (start ?? 0) + length, isQuickTime: isQuickTime,
      edits: start.map { [Edit(duration: $0, start: -1), Edit(duration: length, start: 0)] } ?? [],
      at: mediaStart + 8, into: &track)
    var following = BoxBytes()
    following.append(number &+ 1)
    bytes.replaceSubrange(next..<next + 4, with: following.bytes)
    var size = BoxBytes()
    size.append(UInt32(clamping: movie.byteCount + Int64(track.bytes.count)))
    bytes.insert(contentsOf: track.bytes, at: Int(last.end))
    bytes.replaceSubrange(Int(movie.start)..<Int(movie.start) + 4, with: size.bytes)
    return true
  }

  private func write(
    number: UInt32, duration: Int64, isQuickTime: Bool,
    edits: [Edit], at position: Int64, into track: inout BoxBytes
  ) {
    track.box(BoxType.track) { box in
      // The value 3 of the flags means that the track is enabled and is part of the movie.
      box.fullBox(BoxType.trackHeader, version: 1, flags: 3) { box in
        box.append(Int64(0))  // the creation time, unknown
        box.append(Int64(0))
        box.append(number)
        box.append(UInt32(0))
        box.append(duration)
        box.append(bytes: Array(repeating: 0, count: 16))
        // The unit matrix, which leaves the image unchanged.
        for value in [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000] as [UInt32] {
          box.append(value)
        }
        box.append(Int64(0))  // no width and height
      }
      if !edits.isEmpty {
        box.box(BoxType.edits) { box in
          box.fullBox(BoxType.editList, version: 1, flags: 0) { box in
            box.append(UInt32(edits.count))
            for edit in edits {
              box.append(edit.duration)
              box.append(edit.start)
              box.append(UInt32(0x1_0000))  // the rate 1
            }
          }
        }
      }
      // This reference means that the metadata describes the first track.
      box.box(0x7472_6566) { $0.box(0x6364_7363) { $0.append(UInt32(1)) } }  // tref, cdsc
      box.box(BoxType.trackMedia) { box in
        box.fullBox(BoxType.mediaHeader, version: 1, flags: 0) { box in
          box.append(Int64(0))
          box.append(Int64(0))
          box.append(Self.timescale)
          box.append(end)
          box.append(UInt32(0x55C4_0000))  // no language
        }
        Self.write(handler: isQuickTime ? 0x6D68_6C72 : 0, BoxType.metadataHandler, into: &box)
        box.box(BoxType.mediaInformation) { box in
          writeInformation(isQuickTime: isQuickTime, at: position, into: &box)
        }
      }
    }
  }

  /// Appends an `hdlr` box.
  ///
  /// `component` is the QuickTime component type, or 0 in MP4.
  private static func write(handler component: UInt32, _ type: UInt32, into box: inout BoxBytes) {
    box.fullBox(BoxType.handler, version: 0, flags: 0) { box in
      box.append(component)
      box.append(type)
      box.append(bytes: Array(repeating: 0, count: 13))
    }
  }

  private func writeInformation(
    isQuickTime: Bool, at position: Int64, into box: inout BoxBytes
  ) {
    if isQuickTime {
      box.box(0x676D_6864) { box in  // gmhd
        box.fullBox(0x676D_696E, version: 0, flags: 0) { box in  // gmin
          // The graphics mode and color with which the media would be drawn if it were visible.
          for value in [0x40, 0x8000, 0x8000, 0x8000, 0, 0] as [UInt16] { box.append(value) }
        }
      }
      Self.write(handler: 0x6468_6C72, BoxType.location, into: &box)  // dhlr
    } else {
      box.fullBox(0x6E6D_6864, version: 0, flags: 0) { _ in }  // nmhd
    }
    box.box(BoxType.dataInformation) { box in
      box.fullBox(BoxType.dataReferences, version: 0, flags: 0) { box in
        box.append(UInt32(1))
        // The value 1 of the flags means that the media is in this file.
        box.fullBox(BoxType.location, version: 0, flags: 1) { _ in }
      }
    }
    box.box(BoxType.sampleTable) { writeTables(at: position, into: &$0) }
  }

  private func writeTables(at position: Int64, into box: inout BoxBytes) {
    box.fullBox(BoxType.sampleDescriptions, version: 0, flags: 0) { box in
      box.append(UInt32(1))
      box.box(BoxType.boxedMetadata) { box in
        box.append(bytes: [0, 0, 0, 0, 0, 0, 0, 1])  // the first data reference
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
    }
    let ends = samples.dropFirst().map(\.ticks) + [end]
    var runs: [(count: UInt32, duration: UInt32)] = []
    for (sample, end) in zip(samples, ends) {
      let duration = UInt32(clamping: max(1, end - sample.ticks))
      if runs.last?.duration == duration {
        runs[runs.count - 1].count += 1
      } else {
        runs.append((1, duration))
      }
    }
    box.fullBox(BoxType.timeToSample, version: 0, flags: 0) { box in
      box.append(UInt32(runs.count))
      for run in runs {
        box.append(run.count)
        box.append(run.duration)
      }
    }
    box.fullBox(BoxType.sampleToChunk, version: 0, flags: 0) { box in
      box.append(UInt32(1))
      for value in [1, UInt32(samples.count), 1] { box.append(value) }
    }
    box.fullBox(BoxType.sampleSizes, version: 0, flags: 0) { box in
      box.append(UInt32(0))
      box.append(UInt32(samples.count))
      for sample in samples { box.append(UInt32(clamping: sample.bytes.count)) }
    }
    box.fullBox(BoxType.chunkOffsets64, version: 0, flags: 0) { box in
      box.append(UInt32(1))
      box.append(position)
    }
  }
}

extension Box {
  /// Whether the first track of a `moov` box has a QuickTime media handler.
  fileprivate func isQuickTime(in bytes: [UInt8]) -> Bool {
    first(BoxType.track, in: bytes)?.first(BoxType.trackMedia, in: bytes)?
      .first(BoxType.handler, in: bytes)?.number(4, in: bytes) != 0
  }
}
