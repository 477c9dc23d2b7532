// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The index of a movie (`moov`) and the box before it that names the file's type (`ftyp`).
package struct MovieIndex: Sendable {
  /// A chapter; its times are in ticks of the movie.
  package struct Chapter: Sendable {
    package let title: String
    package let (start, end): (Int64, Int64)

    package init(title: String, start: Int64, end: Int64) {
      (self.title, self.start, self.end) = (title, start, end)
    }
  }

  package let container: MovieContainer
  /// The number of ticks per second for durations in the movie header and in edit lists.
  package let timescale: Int32
  /// The tags of the movie by their keys.
  ///
  /// ``captureRateKey`` is stored as a number in a place of its own.
  package var tags: [String: String] = [:]
  /// The chapter list: titles and starts, in microseconds, in ascending order.
  package var chapterList: [(title: String, start: Int64)] = []

  /// Whether players of music should know an MP4 file as theirs (`M4A `).
  package var isAudioFile = false

  package init(_ container: MovieContainer, timescale: Int32) {
    (self.container, self.timescale) = (container, timescale)
  }

  /// The time of creation in seconds since 1904, according to the tags; 0 if unknown.
  var created: Int64 { tags["creation_time"].flatMap(Self.seconds1904) ?? 0 }
}

extension MovieIndex {
  enum Rounding { case up, down, toNearest }

  /// Converts a time from one timescale to another.
  static func rescale(
    _ ticks: Int64, from timescale: Int32, to other: Int32, _ rounding: Rounding
  ) -> Int64 {
    let (whole, rest) = (Int128(ticks) * Int128(other)).quotientAndRemainder(
      dividingBy: Int128(max(1, timescale)))
    let up: Bool =
      switch rounding {
      case .up: rest > 0
      case .down: false
      case .toNearest: rest * 2 >= Int128(timescale)
      }
    let down: Bool =
      switch rounding {
      case .up: false
      case .down: rest < 0
      case .toNearest: rest * 2 <= -Int128(timescale)
      }
    return Int64(clamping: whole + (up ? 1 : 0) - (down ? 1 : 0))
  }

  /// Converts a time such as `2026-11-29T16:45:35Z` to seconds since 1904; nil for another text.
  private static func seconds1904(_ text: String) -> Int64? {
    let parts = text.split { "-T: Z.+".contains($0) }.prefix(6).compactMap { Int($0) }
    guard parts.count == 6, text.hasSuffix("Z"), (1904...9999).contains(parts[0]),
      (1...12).contains(parts[1]), (1...31).contains(parts[2]), (0...23).contains(parts[3]),
      (0...59).contains(parts[4]), (0...60).contains(parts[5])
    else { return nil }
    // The year begins in March, so that the leap day is its last day.
    let year = parts[1] > 2 ? parts[0] : parts[0] - 1
    let month = (parts[1] + 9) % 12
    let leapDays = year / 4 - year / 100 + year / 400
    let day = 365 * year + leapDays + (153 * month + 2) / 5 + parts[2]
    // The number of 1 January 1904 in this count.
    let first = 365 * 1903 + 1903 / 4 - 1903 / 100 + 1903 / 400 + 306 + 1
    return Int64(((day - first) * 24 + parts[3]) * 3_600 + parts[4] * 60 + parts[5])
  }

  /// The bytes of the `ftyp` box.
  ///
  /// - Parameters:
  ///   - tracks: The tracks, of whose codecs some are named.
  ///   - isFragmented: Whether the file has fragments.
  /// - Returns: The bytes.
  package func fileType(for tracks: [MovieTrack], isFragmented: Bool) -> [UInt8] {
    let types = Set(tracks.flatMap(\.descriptions).map(\.type))
    var brands: [String] = []
    if container == .mov {
      brands = ["qt  "]
    } else {
      brands = isFragmented ? ["iso5", "iso6"] : ["isom"]
      if isAudioFile { brands.insert("M4A ", at: 0) }
      if types.contains(0x6176_3031) { brands.append("av01") }
      let dolby: Set<UInt32> = [0x6163_2D33, 0x6563_2D33, 0x6D6C_7061]  // ac-3, ec-3, mlpa
      let dolbyVision: [UInt32] = [0x6476_6343, 0x6476_7643]  // dvcC, dvvC
      let hasDolbyVision = tracks.filter { $0.kind == .video }.flatMap(\.descriptions)
        .contains { entry in dolbyVision.contains { entry.videoBox($0) != nil } }
      if !types.isDisjoint(with: dolby) || hasDolbyVision { brands.append("dby1") }
      if !isFragmented {
        brands.append("iso2")
        if !types.isDisjoint(with: [0x6176_6331, 0x6176_6333]) { brands.append("avc1") }
      }
      brands.append("mp41")
    }
    var box = BoxBytes()
    box.box(BoxType.fileType) { box in
      box.append(bytes: Array(brands[0].utf8))
      box.append(UInt32(0x200))
      for brand in brands { box.append(bytes: Array(brand.utf8)) }
    }
    return box.bytes
  }

  /// The bytes of a valid MOV file without tracks.
  ///
  /// A recording starts with these bytes, so that readers can open the file before it has a header.
  package static let emptyMovie: [UInt8] = {
    let index = MovieIndex(.mov, timescale: 1_000_000)
    var box = BoxBytes()
    box.box(BoxType.movie) { index.writeHeader(0, trackCount: 0, into: &$0) }
    return index.fileType(for: [], isFragmented: false) + box.bytes
  }()

  /// The bytes of the `moov` box of a fragmented file.
  package func fragmentedBytes(_ tracks: [(track: MovieTrack, first: FirstSample)]) -> [UInt8] {
    bytes(tracks.map { ($0.track, SampleTable(), $0.first) }, isFragmented: true)
  }

  /// The bytes of the `moov` box of a plain file; tracks without samples are left out.
  package func bytes(_ tracks: [(track: MovieTrack, samples: SampleTable)]) -> [UInt8] {
    bytes(tracks.map { ($0.track, $0.samples, nil) }, isFragmented: false)
  }

  private func bytes(
    _ tracks: [(track: MovieTrack, samples: SampleTable, first: FirstSample?)], isFragmented: Bool
  ) -> [UInt8] {
    var box = BoxBytes()
    box.box(BoxType.movie) { box in
      let duration = tracks.map {
        Self.rescale(
          max(0, $0.track.end(of: $0.samples)), from: $0.track.timescale, to: timescale, .up)
      }.max()
      writeHeader(duration ?? 0, trackCount: tracks.count, into: &box)
      for (index, part) in tracks.enumerated() where isFragmented || !part.samples.samples.isEmpty {
        part.track.write(
          part.samples, first: part.first, number: UInt32(clamping: index + 1), of: self, into: &box
        )
      }
      if isFragmented {
        box.box(BoxType.extends) { box in
          for index in tracks.indices {
            box.fullBox(BoxType.trackExtends, version: 0, flags: 0) { box in
              for number in [UInt32(clamping: index + 1), 1, 0, 0, 0] { box.append(number) }
            }
          }
        }
      }
      writeTags(into: &box)
    }
    return box.bytes
  }

  private func writeHeader(_ duration: Int64, trackCount: Int, into box: inout BoxBytes) {
    let isLong = duration >= Int64(UInt32.max)
    box.fullBox(BoxType.movieHeader, version: isLong ? 1 : 0, flags: 0) { box in
      for _ in 0..<2 { box.append(created, isLong: isLong) }
      box.append(timescale)
      box.append(duration, isLong: isLong)
      box.append(UInt32(0x1_0000))  // the rate
      box.append(UInt16(0x100))  // the volume
      box.append(bytes: Array(repeating: 0, count: 10))
      for value in MovieTrack.unitMatrix { box.append(value) }
      box.append(bytes: Array(repeating: 0, count: 24))
      box.append(UInt32(clamping: trackCount + 1))  // the ID of the next track
    }
  }
}

extension MovieIndex {
  /// The key of the tag that contains the capture frame rate.
  ///
  /// Android stores the sensor's frame rate as a 32-bit float in a QuickTime `meta` box directly in
  /// `moov` (`MPEG4Writer::writeMoovLevelMetaBox`), and its players read the rate only there. With this
  /// tag, all tags are stored there; otherwise they are in an ISO `meta` box inside `udta`.
  package static let captureRateKey = "com.android.capture.fps"

  private static let (textType, floatType): (UInt32, UInt32) = (1, 23)

  /// The tag with the name of the program that wrote the file.
  private static let encoder = (key: "encoder", value: "Overcrank")

  /// The type and the bytes of a tag's value.
  private static func value(_ key: String, _ text: String) -> (type: UInt32, bytes: [UInt8]) {
    guard let rate = rate(key, text) else { return (textType, Array(text.utf8)) }
    return (floatType, withUnsafeBytes(of: rate.bitPattern.bigEndian) { Array($0) })
  }

  /// The capture frame rate of a tag; nil for another tag, or unless it is finite and above zero.
  private static func rate(_ key: String, _ text: String) -> Float? {
    key == captureRateKey ? Float(text).flatMap { $0.isFinite && $0 > 0 ? $0 : nil } : nil
  }

  private func writeTags(into box: inout BoxBytes) {
    let isAndroid = tags.contains { Self.rate($0.key, $0.value) != nil }
    if isAndroid { box.box(BoxType.metadata) { writeItems(into: &$0) } }
    let chapters = chapterList.isEmpty ? [] : chapterListBox
    let location = locationBox
    guard !isAndroid else {
      if !chapters.isEmpty || !location.isEmpty {
        box.box(BoxType.userData) { box in
          box.append(bytes: location)
          box.append(bytes: chapters)
          box.append(UInt32(0))  // QuickTime ends the user data with a zero.
        }
      }
      return
    }
    box.box(BoxType.userData) { box in
      box.fullBox(BoxType.metadata, version: 0, flags: 0) { writeItems(into: &$0) }
      box.append(bytes: location)
      box.append(bytes: chapters)
    }
  }

  /// Appends the contents of the `meta` box: the handler, the keys and the values.
  private func writeItems(into box: inout BoxBytes) {
    // The tag of another program may be spelled with other cases.
    var items = tags.filter { $0.key.lowercased() != Self.encoder.key }
      .sorted { $0.key < $1.key }
    items.append(Self.encoder)
    box.fullBox(BoxType.handler, version: 0, flags: 0) { box in
      box.append(UInt32(0))
      box.append(BoxType.metadataKeyNamespace)
      box.append(bytes: Array(repeating: 0, count: 13))
    }
    box.fullBox(BoxType.metadataKeys, version: 0, flags: 0) { box in
      box.append(UInt32(clamping: items.count))
      for item in items {
        box.box(BoxType.metadataKeyNamespace) { $0.append(bytes: Array(item.key.utf8)) }
      }
    }
    box.box(BoxType.metadataItems) { box in
      for (index, item) in items.enumerated() {
        box.box(UInt32(clamping: index + 1)) { box in
          box.box(0x6461_7461) { box in  // data
            let value = Self.value(item.key, item.value)
            box.append(value.type)
            box.append(UInt32(0))  // the locale
            box.append(bytes: value.bytes)
          }
        }
      }
    }
  }

  /// The place in the tag `location`, as phones store it (`loci`, 3GPP TS 26.244, 8.10); empty if it is none.
  ///
  /// Most players know the box, and not the tag.
  private var locationBox: [UInt8] {
    guard let text = tags["location"], let place = try? GeographicLocation(parsing: text) else {
      return []
    }
    var box = BoxBytes()
    box.fullBox(BoxType.geographicLocation, version: 0, flags: 0) { box in
      box.append(UInt16(0x55C4))  // The language is undetermined: "und" in three times five bits.
      box.append(UInt8(0))  // The name of the place is empty.
      box.append(UInt8(0))  // It is where the movie was shot.
      for degrees in [place.longitude, place.latitude, place.altitude ?? 0] {
        box.append(UInt32(bitPattern: Int32(clamping: Int64((degrees * 65_536).rounded()))))
      }
      box.append(bytes: Array("earth".utf8) + [0, 0])  // No notes follow the name of the body.
    }
    return box.bytes
  }

  /// The chapter list of Nero (`chpl`), which libavformat and players read.
  private var chapterListBox: [UInt8] {
    var box = BoxBytes()
    box.fullBox(BoxType.chapterList, version: 1, flags: 0) { box in
      let chapters = chapterList.prefix(ChapterList.maximumCount)
      box.append(UInt32(0))
      box.append(UInt8(clamping: chapters.count))
      for chapter in chapters {
        let title = Array(chapter.title.utf8.prefix(255))
        box.append(UInt64(clamping: chapter.start.saturatingMultiplied(by: 10)))
        box.append(UInt8(title.count))
        box.append(bytes: title)
      }
    }
    return box.bytes
  }
}

/// Makes the chapter list of a movie, see ``MovieIndex/chapterList``.
///
/// A chapter lasts until the next one, so an instant is a chapter of one frame with a chapter without a
/// title behind it.
package enum ChapterList {
  /// The greatest number of chapters, which the box counts in a byte.
  static let maximumCount = 255

  /// The chapters that mark instants of a movie.
  ///
  /// - Parameters:
  ///   - instants: The instants in microseconds, in any order. Equal ones are marked once, and those
  ///     outside the movie not at all.
  ///   - title: The title of each.
  ///   - length: The length of a chapter in microseconds, above zero.
  ///   - end: The end of the movie in microseconds.
  /// - Returns: The titles and starts, in order.
  package static func chapters(
    at instants: [Int64], title: String, length: Int64, end: Int64
  ) -> [(title: String, start: Int64)] {
    let marked = Set(instants).filter { $0 >= 0 && $0 < end }.sorted()
    var chapters: [(title: String, start: Int64)] = []
    for (index, instant) in marked.enumerated() {
      if chapters.isEmpty, instant > 0 { chapters.append(("", 0)) }
      chapters.append((title, instant))
      let next = index + 1 < marked.count ? marked[index + 1] : end
      if instant &+ length < next { chapters.append(("", instant &+ length)) }
    }
    return Array(chapters.prefix(maximumCount))
  }
}
