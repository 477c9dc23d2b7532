// SPDX-License-Identifier: Apache-2.0

/// The description of a track: everything in its `trak` box that does not depend on its samples.
package struct MovieTrack: Sendable {
  package enum Kind: Sendable { case video, audio, other }

  /// The handler type of the track's media, such as `vide`.
  package var handler: UInt32
  /// The name of the handler in UTF-8.
  package var handlerName: [UInt8]
  /// The number of ticks per second for the track's times.
  package var timescale: Int32
  /// The sample descriptions.
  package var descriptions: [SampleDescription]
  /// The flags of the track header: 1 for an enabled track, 2 for one that is part of the movie.
  package var flags: UInt32 = 3
  /// The tracks of a group are alternatives; 0 for none.
  package var alternateGroup: UInt16 = 0
  /// The code of the language, as the container stores it.
  package var language: UInt16
  /// The nine numbers of the display matrix.
  package var matrix: [Int32] = MovieTrack.unitMatrix
  /// The size for display, as fixed-point numbers with 16 fractional bits.
  package var (width, height): (UInt32, UInt32) = (0, 0)
  /// The volume of audio, 0x100 for the full one.
  package var volume: UInt16 = 0
  /// The references to other tracks, which are named by their index.
  package var references: [Reference] = []
  /// The time in ticks at which the edit list ends the track; nil to end with its last sample.
  ///
  /// Players decode later samples, but do not show them.
  package var endTicks: Int64?
  /// The media header box: `vmhd`, `smhd`, `gmhd` or `nmhd`.
  package var mediaHeader: [UInt8]
  /// The boxes after the `mdia` box, such as `tapt` and `udta`.
  package var extras: [UInt8] = []
  /// Whether the sample descriptions were made for this file, so that they state the number of the track and
  /// its bit rate.
  package var isMade = false

  /// A reference of a track to others (`tref`).
  package struct Reference: Sendable {
    package let type: UInt32
    package let tracks: [Int]

    package init(type: UInt32, tracks: [Int]) { (self.type, self.tracks) = (type, tracks) }

    /// The type of a reference to the titles and the images of chapters.
    package static let chapters: UInt32 = 0x6368_6170  // chap
  }

  package static let unitMatrix: [Int32] = [1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30]

  static let (video, audio): (UInt32, UInt32) = (0x7669_6465, 0x736F_756E)  // vide, soun

  package var kind: Kind {
    switch handler {
    case Self.video: .video
    case Self.audio: .audio
    default: .other
    }
  }

  package init(
    handler: UInt32, name: String, timescale: Int32, language: UInt16, mediaHeader: [UInt8],
    descriptions: [SampleDescription]
  ) {
    (self.handler, handlerName, self.timescale) = (handler, Array(name.utf8), timescale)
    (self.language, self.mediaHeader, self.descriptions) = (language, mediaHeader, descriptions)
  }

  /// Reads the description of a track from a `trak` box.
  ///
  /// Nil if a box is missing or malformed.
  package init?(_ box: Box, in bytes: [UInt8]) {
    guard let header = box.first(BoxType.trackHeader, in: bytes),
      let media = box.first(BoxType.trackMedia, in: bytes),
      let mediaHeader = media.first(BoxType.mediaHeader, in: bytes),
      let handler = media.first(BoxType.handler, in: bytes),
      let information = media.first(BoxType.mediaInformation, in: bytes),
      let table = box.sampleTable(in: bytes)?.first(BoxType.sampleDescriptions, in: bytes),
      let flags = header.number(0, in: bytes), let mediaFlags = mediaHeader.number(0, in: bytes),
      let component = handler.number(4, in: bytes), let type = handler.number(8, in: bytes)
    else { return nil }
    func isLong(_ flags: UInt64) -> Bool { flags >> 24 == 1 }
    // The times, the ID and the duration precede these fields.
    let fields = isLong(flags) ? 36 : 24
    guard let ticks = mediaHeader.number(isLong(mediaFlags) ? 20 : 12, in: bytes),
      let timescale = Int32(exactly: ticks), timescale > 0,
      let code = mediaHeader.number(isLong(mediaFlags) ? 32 : 20, in: bytes),
      let group = header.number(fields + 8, in: bytes),
      let volume = header.number(fields + 12, in: bytes),
      let width = header.number(fields + 52, in: bytes),
      let height = header.number(fields + 56, in: bytes)
    else { return nil }
    matrix = (0..<9).compactMap {
      header.number(fields + 16 + 4 * $0, in: bytes).map { Int32(truncatingIfNeeded: $0) }
    }
    self.flags = UInt32(flags & 0xFF_FFFF)
    (self.timescale, language) = (timescale, UInt16(code >> 16))
    (alternateGroup, self.volume) = (UInt16(group & 0xFFFF), UInt16(volume >> 16))
    (self.width, self.height) = (UInt32(width), UInt32(height))
    self.handler = UInt32(type)
    let name = bytes[min(Int(handler.start) + 32, Int(handler.end))..<Int(handler.end)]
    // QuickTime states the length of the name, and has a component type. MP4 ends the name with a zero.
    handlerName =
      component != 0
      ? Array(name.dropFirst().prefix(Int(name.first ?? 0)))
      : Array(name.prefix { $0 != 0 })
    let inside = Box.list(
      in: bytes, from: Int(information.start + information.headBytes), to: Int(information.end))
    let others = [BoxType.handler, BoxType.dataInformation, BoxType.sampleTable]
    self.mediaHeader = inside.filter { !others.contains($0.type) }
      .flatMap { bytes[Int($0.start)..<Int($0.end)] }
    descriptions = SampleDescription.list(in: table, of: bytes)
    extras = Box.list(in: bytes, from: Int(media.end), to: Int(box.end))
      .flatMap { bytes[Int($0.start)..<Int($0.end)] }
  }

  /// The tracks of a `moov` box; empty if one is malformed.
  package static func list(in movie: [UInt8]) -> [MovieTrack] {
    let boxes = Box.list(in: movie, from: 8, to: movie.count).filter { $0.type == BoxType.track }
    let tracks = boxes.compactMap { MovieTrack($0, in: movie) }
    return tracks.count == boxes.count ? tracks : []
  }

  /// The decoding time of the first sample in ticks, according to the edit list of a `trak` box.
  ///
  /// Times in the tables begin with zero; the edit list shifts them. Zero without an edit list.
  package static func firstTicks(
    of box: Box, in bytes: [UInt8], timescale: Int32, movieTimescale: Int32
  ) -> Int64 {
    var delay: Int64 = 0
    for edit in box.edits(in: bytes)?.entries.prefix(2) ?? [] {
      guard edit.mediaTime < 0 else { return delay &- edit.mediaTime }
      delay = MovieIndex.rescale(edit.duration, from: movieTimescale, to: timescale, .toNearest)
    }
    return delay
  }
}

extension MovieTrack {
  /// Appends the `trak` box.
  ///
  /// - Parameters:
  ///   - samples: The samples; empty in the head of a fragmented file.
  ///   - first: The decoding and presentation times of the first sample in a fragmented file; nil in a
  ///     plain one.
  ///   - number: The ID of the track.
  ///   - movie: The movie.
  ///   - box: The bytes to which the box is appended.
  func write(
    _ samples: SampleTable, first: FirstSample?, number: UInt32, of movie: MovieIndex,
    into box: inout BoxBytes
  ) {
    let edits = EditList(self, samples, first: first, movie: movie)
    box.box(BoxType.track) { box in
      writeHeader(edits.movieDuration, number, movie, into: &box)
      edits.write(into: &box)
      if !references.isEmpty {
        box.box(BoxType.references) { box in
          for reference in references {
            box.box(reference.type) { box in
              for track in reference.tracks { box.append(UInt32(clamping: track + 1)) }
            }
          }
        }
      }
      box.box(BoxType.trackMedia) { box in
        writeMediaHeader(edits.mediaDuration, movie, into: &box)
        Self.write(
          handler: movie.container == .mov ? 0x6D68_6C72 : 0, handler, handlerName,
          isQuickTime: movie.container == .mov, into: &box)
        box.box(BoxType.mediaInformation) { box in
          box.append(bytes: mediaHeader)
          if movie.container == .mov {
            Self.write(
              handler: 0x6468_6C72, BoxType.location, Array("DataHandler".utf8), isQuickTime: true,
              into: &box)
          }
          box.box(BoxType.dataInformation) { box in
            box.fullBox(BoxType.dataReferences, version: 0, flags: 0) { box in
              box.append(UInt32(1))
              // The value 1 of the flags means that the media is in this file.
              box.fullBox(BoxType.location, version: 0, flags: 1) { _ in }
            }
          }
          box.box(BoxType.sampleTable) { writeTables(samples, number, movie, into: &$0) }
        }
      }
      box.append(bytes: extras)
    }
  }

  /// The end of the last sample that is shown, in ticks.
  func end(of samples: SampleTable) -> Int64 { min(samples.end, endTicks ?? samples.end) }

  private func writeHeader(
    _ duration: Int64, _ number: UInt32, _ movie: MovieIndex, into box: inout BoxBytes
  ) {
    let isLong = duration >= Int64(Int32.max)
    box.fullBox(BoxType.trackHeader, version: isLong ? 1 : 0, flags: flags) { box in
      for _ in 0..<2 { box.append(movie.created, isLong: isLong) }
      box.append(number)
      box.append(UInt32(0))
      box.append(duration, isLong: isLong)
      box.append(UInt64(0))
      box.append(UInt16(0))  // the layer
      box.append(alternateGroup)
      box.append(volume)
      box.append(UInt16(0))
      for value in matrix { box.append(value) }
      box.append(width)
      box.append(height)
    }
  }

  private func writeMediaHeader(
    _ duration: Int64, _ movie: MovieIndex, into box: inout BoxBytes
  ) {
    let isLong = duration >= Int64(Int32.max)
    box.fullBox(BoxType.mediaHeader, version: isLong ? 1 : 0, flags: 0) { box in
      for _ in 0..<2 { box.append(movie.created, isLong: isLong) }
      box.append(timescale)
      box.append(duration, isLong: isLong)
      box.append(language)
      box.append(UInt16(0))
    }
  }

  private static func write(
    handler component: UInt32, _ type: UInt32, _ name: [UInt8], isQuickTime: Bool,
    into box: inout BoxBytes
  ) {
    box.fullBox(BoxType.handler, version: 0, flags: 0) { box in
      box.append(component)
      box.append(type)
      box.append(bytes: Array(repeating: 0, count: 12))
      let name = name.prefix(255)
      if isQuickTime { box.append(UInt8(name.count)) }
      box.append(bytes: Array(name))
      if !isQuickTime { box.append(UInt8(0)) }
    }
  }

  private func writeTables(
    _ samples: SampleTable, _ number: UInt32, _ movie: MovieIndex, into box: inout BoxBytes
  ) {
    let isVideo = kind == .video
    box.fullBox(BoxType.sampleDescriptions, version: 0, flags: 0) { box in
      box.append(UInt32(clamping: descriptions.count))
      for var description in descriptions {
        if isMade, kind != .other {
          description.state(
            bitRate: samples.bitRate(timescale: timescale), trackNumber: number, isVideo: isVideo,
            addsBox: movie.container == .mp4)
        }
        box.append(bytes: description.bytes)
      }
    }
    samples.write(
      SampleTable.Properties(
        isVideo: isVideo,
        isUncompressedAudio: kind == .audio
          && (descriptions.first?.uncompressedSampleBytes != nil || samples.hasBlocks),
        roll: roll,
        isQuickTime: movie.container == .mov),
      into: &box)
  }

  private var roll: SampleTable.Roll? {
    guard kind == .audio, let description = descriptions.first else { return nil }
    // Encapsulation of Opus in ISO Base Media File Format, 4.3.6.2: at least 80 ms.
    if description.type == 0x4F70_7573 { return .ticks(Int64(timescale) * 80 / 1_000) }  // Opus
    // A block of AAC depends on the one before it.
    let isAAC = description.objectType(isVideo: false)
      .map { [0x40, 0x66, 0x67, 0x68].contains($0) }
    return isAAC ?? false ? .samples(1) : nil
  }
}

/// The times of a track's first sample in ticks, on which the head of a fragmented file depends.
package struct FirstSample: Sendable {
  package let ticks: Int64
  package let presentationTicks: Int64

  package init(ticks: Int64, presentationTicks: Int64? = nil) {
    self.ticks = ticks
    self.presentationTicks = presentationTicks ?? ticks
  }
}

/// The edit list of a track (ISO/IEC 14496-12, 8.6.6), and the durations that depend on it.
///
/// Decoding begins with the first sample at media time zero. The edit list makes the track start with
/// the first frame that is shown at or after time zero, and delays a track that begins later.
private struct EditList {
  private var entries: [(duration: Int64, mediaTime: Int64)] = []
  /// The duration of the track in ticks of the movie, and of the media in ticks of the track.
  private(set) var (movieDuration, mediaDuration): (Int64, Int64) = (0, 0)

  init(_ track: MovieTrack, _ samples: SampleTable, first: FirstSample?, movie: MovieIndex) {
    let timescale = track.timescale
    func movieTicks(_ ticks: Int64, _ rounding: MovieIndex.Rounding) -> Int64 {
      MovieIndex.rescale(ticks, from: timescale, to: movie.timescale, rounding)
    }
    guard let decoded = first?.ticks ?? samples.samples.first?.ticks else { return }
    let start = first?.presentationTicks ?? samples.start
    let end = track.end(of: samples)
    movieDuration = movieTicks(max(0, end), .up)
    // Streams that are cut from broadcasts or AVCHD start with a key frame, followed by frames that are
    // shown before the key frame. The edit list starts with the one that is shown first.
    if let shown = samples.shown, start > 0, shown.lowerBound < start {
      let begin = max(0, shown.lowerBound)
      mediaDuration = shown.upperBound - begin
      let delay = movieTicks(begin, .toNearest)
      if delay > 0 { entries.append((delay, -1)) }
      entries.append((movieTicks(min(end, shown.upperBound) - begin, .toNearest), begin - decoded))
      return
    }
    mediaDuration = first == nil ? samples.end - start : 0
    let delay = movieTicks(start, .down)
    // The duration 0 in the head of a fragmented file means that all fragments are included.
    let duration = first == nil ? movieTicks(end - start, .up) : 0
    if delay > 0 {
      entries = [(delay, -1), (duration, start - decoded)]
    } else {
      entries = [(first == nil ? duration + delay : 0, -min(decoded, 0))]
    }
  }

  func write(into box: inout BoxBytes) {
    guard !entries.isEmpty else { return }
    let isLong = entries.contains {
      $0.duration >= Int64(Int32.max) || $0.mediaTime >= Int64(Int32.max)
    }
    box.box(BoxType.edits) { box in
      box.fullBox(BoxType.editList, version: isLong ? 1 : 0, flags: 0) { box in
        box.append(UInt32(entries.count))
        for entry in entries {
          box.append(max(0, entry.duration), isLong: isLong)
          box.append(entry.mediaTime, isLong: isLong)
          box.append(UInt32(0x1_0000))
        }
      }
    }
  }
}

extension [MovieTrack.Reference] {
  /// Adds a track to the reference of a type; there is only one of each type.
  mutating func append(_ type: UInt32, _ track: Int) {
    let earlier = first { $0.type == type }?.tracks ?? []
    removeAll { $0.type == type }
    append(MovieTrack.Reference(type: type, tracks: earlier + [track]))
  }
}

extension MovieTrack {
  /// This track of another file for a file with a container, without its references.
  ///
  /// The boxes after the media are left out, except for those with tags. The media header and the language are
  /// replaced if the container changes.
  package func stored(in container: MovieContainer, from source: MovieContainer) -> MovieTrack {
    var track = self
    track.references = []
    track.isMade = false
    track.extras = Box.list(in: extras, from: 0, to: extras.count)
      .filter { [BoxType.userData, BoxType.metadata].contains($0.type) }
      .flatMap { extras[Int($0.start)..<Int($0.end)] }
    guard container != source, kind == .other else { return track }
    // Codes below this one are those of QuickTime's own table.
    if container == .mp4, language < 0x400 || language == 0x7FFF {
      track.language = Self.undetermined
    }
    var header = BoxBytes()
    if container == .mp4 {
      header.fullBox(BoxType.emptyHeader, version: 0, flags: 0) { _ in }
    } else {
      header.box(BoxType.baseHeader) { box in
        Self.writeBaseInformation(into: &box)
        if handler == BoxType.timecode { Self.writeTimecodeInformation(into: &box) }
      }
    }
    track.mediaHeader = header.bytes
    return track
  }

  /// The code of an undetermined language, `und`.
  private static let undetermined: UInt16 = 0x55C4

  /// Appends the box that QuickTime requires in a media header without one of its own kind (`gmin`).
  static func writeBaseInformation(into box: inout BoxBytes) {
    box.fullBox(0x676D_696E, version: 0, flags: 0) { box in
      for value in [0x40, 0x8000, 0x8000, 0x8000, 0, 0] as [UInt16] { box.append(value) }
    }
  }

  /// Appends the box with the font in which QuickTime shows a timecode (`tcmi`).
  private static func writeTimecodeInformation(into box: inout BoxBytes) {
    box.box(BoxType.timecode) { box in
      box.fullBox(0x7463_6D69, version: 0, flags: 0) { box in
        // The font, its style and its size, a reserved field, and the colors of text and background.
        for value in [0, 0, 12, 0, 0, 0, 0, 0xFFFF, 0xFFFF, 0xFFFF] as [UInt16] {
          box.append(value)
        }
        box.append(UInt8(0))  // the length of the font's name
      }
    }
  }
}
