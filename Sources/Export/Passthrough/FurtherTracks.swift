// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// The tracks of a passthrough export besides its video and its chosen audio, such as timecodes, telemetry,
/// subtitles, the images of chapters and further audio.
///
/// Their samples are copied, with times of the same map as the video: samples of parts that are cut away are
/// left out, and those at a cut last as long as the part that plays.
struct FurtherTracks {
  /// A sample of the output.
  struct Sample {
    enum Content {
      /// A byte range of a source.
      case stored(source: Int, position: Int64, byteCount: Int)
      case made([UInt8])
    }

    let content: Content
    /// The time in ticks of the track.
    let ticks: Int64
    var duration: Int64
    var description = 0
    /// The number of samples in a block of uncompressed audio; otherwise 1.
    var count = 1
    /// The time of the source at which a copied sample ended, and whether the source played backwards.
    fileprivate var playedTo: (time: Rational, isReversed: Bool)?

    init(
      content: Content, ticks: Int64, duration: Int64, description: Int = 0, count: Int = 1
    ) {
      (self.content, self.ticks, self.duration) = (content, ticks, duration)
      (self.description, self.count) = (description, count)
    }
  }

  /// The greatest number of samples of a track that is copied.
  static let maximumSampleCount = 1 << 22
  /// The size of the largest sample that is copied, in bytes.
  private static let largestSample = 1 << 26

  /// A track of the output.
  struct Track {
    /// The description, without references.
    var track: MovieTrack
    var samples: [Sample] = []
    /// The index of the next sample to write.
    fileprivate var next = 0
    /// The index of the track in the first source.
    fileprivate var number: Int { parts[0].number }
    /// The tracks of the sources whose samples it has.
    fileprivate let parts: [Candidate]
  }

  private(set) var tracks: [Track] = []
  /// The indices of the copied tracks in each source, in the order of the sources.
  private(set) var copied: [Set<Int>]
  /// The indices of the video track and of the chosen audio track in the first source.
  private let (video, audio): (Int?, Int?)
  private let videoReferences: [MovieTrack.Reference]
  private let audioReferences: [MovieTrack.Reference]

  /// The total number of samples.
  var sampleCount: Int { tracks.reduce(0) { $0 + $1.samples.count } }

  /// A track of a source that can be copied.
  fileprivate struct Candidate {
    let number: Int
    let track: MovieTrack
    let samples: SourceSamples
    let file: OpenFile
    let container: MovieContainer

    /// Reads bytes of the source.
    ///
    /// The optimizer of Swift 6.3 crashes if it inlines this.
    @inline(never)
    func bytes(_ count: Int, at position: Int64) throws(CallFailure) -> [UInt8] {
      let bytes = RandomAccessFile(file).read(count, at: position)
      guard bytes.count == count else {
        throw CallFailure("read all packets of", file.path, code: -5)
      }
      return bytes
    }

    /// Whether a track of the output can hold the samples of both.
    func isLike(_ other: Candidate) -> Bool {
      track.handler == other.track.handler
        && track.descriptions.first?.type == other.track.descriptions.first?.type
    }
  }

  /// Plans the tracks.
  ///
  /// - Parameters:
  ///   - track: The video track of the composition.
  ///   - assets: The assets that it plays. A track is copied only if each of them has it.
  ///   - container: The container of the output.
  ///   - timescale: The number of ticks per second of the output's video.
  ///   - chosen: The chosen audio. If it is copied, so is further audio.
  /// - Throws: `MediaError` for times that are out of bounds, `CallFailure` if a source cannot be read.
  init(
    _ track: CompositionTrack, _ assets: [Asset], in container: MovieContainer, timescale: Int32,
    audio chosen: AudioExportPlan?
  ) throws {
    copied = assets.map { _ in [] }
    video = assets.first?.videoTrack?.format.index
    // The audio of another movie has no references to the tracks of this one.
    let hasOwnAudio = chosen?.assets.first?.path == assets.first?.path
    audio = hasOwnAudio ? assets.first?.audioTrack?.format.index : nil
    guard assets.allSatisfy({ !$0.otherTracks.isEmpty }) else {
      (videoReferences, audioReferences) = ([], [])
      return
    }
    let sources = assets.map { $0.container == "mov" ? SourceTracks(of: $0.path) : nil }
    func references(_ number: Int?) -> [MovieTrack.Reference] {
      number.flatMap { sources.first??.track($0) }?.references ?? []
    }
    (videoReferences, audioReferences) = (references(video), references(audio))
    let candidates = zip(assets, sources).map { asset, source in
      source.map { Self.candidates(asset, $0, in: container, chosen?.isCopied ?? false) } ?? []
    }
    for (position, first) in (candidates.first ?? []).enumerated() {
      // The same track of each asset: it has the same number among those like it.
      let ordinal = candidates[0][..<position].count { $0.isLike(first) }
      let parts = candidates.compactMap { list in
        list.lazy.filter { $0.isLike(first) }.dropFirst(ordinal).first
      }
      guard parts.count == assets.count,
        let made = try Self.track(parts, track, assets, in: container, timescale)
      else { continue }
      for (asset, part) in parts.enumerated() {
        copied[asset].insert(part.number)
      }
      // A track without samples in the parts that play is not lost, but not written either.
      if !made.samples.isEmpty { tracks.append(made) }
    }
  }

  /// The handlers of tracks whose samples refer to samples of other tracks by their position.
  private static let referring: Set<String> = ["hint", "odsm", "sdsm"]
  private static let encrypted: Set<String> = ["enca", "encv", "enct", "encs", "encm"]
  /// The sample descriptions that are the same in MOV and MP4.
  private static let common: Set<String> = ["tmcd", "gpmd", "mebx", "tx3g"]

  private static func candidates(
    _ asset: Asset, _ source: SourceTracks, in container: MovieContainer, _ copiesAudio: Bool
  ) -> [Candidate] {
    let images = asset.videoTrack.flatMap { source.track($0.format.index) }?.references
      .filter { $0.type == MovieTrack.Reference.chapters }.flatMap(\.tracks)
    return asset.otherTracks.compactMap { format in
      guard let track = source.track(format.index) else { return nil }
      let types = Set(track.descriptions.map { name($0.type) })
      var sampleBytes: Int?
      switch track.kind {
      case .video:
        guard images?.contains(format.index) ?? false, format.kind == .other else { return nil }
      case .audio:
        sampleBytes = track.descriptions.first?.uncompressedSampleBytes
        guard copiesAudio, track.descriptions.count == 1,
          track.descriptions.allSatisfy({ container == .mp4 || $0.fitsPacketTables })
        else { return nil }
      case .other: if referring.contains(name(track.handler)) { return nil }
      }
      guard source.container == container || types.isSubset(of: common),
        types.isDisjoint(with: encrypted),
        var samples = source.samples(format.index, blockSampleBytes: sampleBytes),
        samples.hasPlainEdits
      else { return nil }
      let fileBytes = source.byteCount
      if asset.truncation != nil { samples.keepFirst(within: fileBytes) }
      guard
        samples.samples.allSatisfy({
          $0.byteCount <= largestSample
            && $0.position >= 0 && $0.position <= fileBytes - Int64($0.byteCount)
        }),
        samples.samples.allSatisfy({ track.descriptions.indices.contains($0.description) }),
        track.kind != .video || samples.isIntraOnly
      else { return nil }
      return Candidate(
        number: format.index, track: track, samples: samples, file: source.file,
        container: source.container)
    }
  }

  /// The text of a four-character code.
  private static func name(_ code: UInt32) -> String {
    withUnsafeBytes(of: code.bigEndian) { String(decoding: $0, as: UTF8.self) }
  }

  /// Makes a track from the same track of each asset; nil if its times do not fit.
  private static func track(
    _ parts: [Candidate], _ composition: CompositionTrack, _ assets: [Asset],
    in container: MovieContainer, _ timescale: Int32
  ) throws -> Track? {
    guard let first = parts.first else { return nil }
    var made = Track(track: first.track.stored(in: container, from: first.container), parts: parts)
    if first.track.kind == .audio {
      guard parts.count == 1, let samples = try audio(first, assets[0]) else { return nil }
      made.samples = samples
      return made
    }
    // A sample may last as long as the movie, and the file limits its ticks.
    let scales = [timescale, first.track.timescale, 1_000]
    guard
      let scale = scales.first(where: {
        composition.duration.seconds * Rational(Int64($0)) < Rational(Int64(Int32.max))
      })
    else { return nil }
    made.track.timescale = scale
    var descriptions: [SampleDescription] = []
    let indices = parts.map { part in
      part.track.descriptions.map { description in
        if let index = descriptions.firstIndex(of: description) { return index }
        descriptions.append(description)
        return descriptions.count - 1
      }
    }
    made.track.descriptions = descriptions
    let timed = try zip(parts, assets).map { try TimedSamples($0, $1) }
    for segment in composition.segments {
      guard let mapping = segment.mapping,
        let source = assets.firstIndex(where: { $0.path == segment.source?.path })
      else { continue }
      let range = try MappedRange(mapping, timescale: scale)
      guard
        try timed[source].append(
          to: &made.samples, in: range, source: source, descriptions: indices[source])
      else { return nil }
    }
    if let empty = first.track.emptySample { made.samples = filled(made.samples, with: empty) }
    return made.samples.count <= maximumSampleCount ? made : nil
  }

  /// The samples of an audio track of which the whole is copied.
  private static func audio(_ part: Candidate, _ asset: Asset) throws(MediaError) -> [Sample]? {
    let shift = try MappedRange.tick(part.samples.shift - asset.origin, part.track.timescale)
    let end = try part.samples.end.map { (end) throws(MediaError) in
      try MappedRange.tick(end - asset.origin, part.track.timescale)
    }
    // A damaged edit list may state any time.
    guard shift.magnitude < 1 << 53, (end ?? 0).magnitude < 1 << 53 else { return nil }
    let samples = part.samples.samples.compactMap { stored -> Sample? in
      let ticks = stored.ticks + shift
      let rest = end.map { $0 - ticks } ?? .max
      guard stored.byteCount > 0, rest > 0 else { return nil }
      // In a block of uncompressed audio, each sample lasts one tick.
      let count = stored.count == 1 ? 1 : min(stored.count, Int(clamping: rest))
      return Sample(
        content: .stored(
          source: 0, position: stored.position,
          byteCount: stored.byteCount / max(1, stored.count) * count),
        ticks: ticks, duration: min(stored.duration, rest), count: count)
    }
    let isStorable =
      samples.allSatisfy { (1...Int64(Int32.max)).contains($0.duration) }
      && zip(samples, samples.dropFirst()).allSatisfy {
        $0.ticks < $1.ticks && $1.ticks - $0.ticks < Int64(Int32.max)
      }
    return isStorable ? samples : nil
  }

  /// The samples with empty ones in the gaps between them, in which the one before would go on.
  private static func filled(_ samples: [Sample], with empty: [UInt8]) -> [Sample] {
    var filled: [Sample] = []
    for sample in samples {
      if let last = filled.last, last.ticks + last.duration < sample.ticks {
        let end = last.ticks + last.duration
        filled.append(
          Sample(
            content: .made(empty), ticks: end, duration: sample.ticks - end,
            description: last.description))
      }
      filled.append(sample)
    }
    return filled
  }
}

extension FurtherTracks {
  /// The references of the video track and of the audio track, by the indices of the output.
  func references(hasAudio: Bool) -> (video: [MovieTrack.Reference], audio: [MovieTrack.Reference])
  {
    (mapped(videoReferences, hasAudio), mapped(audioReferences, hasAudio))
  }

  /// The descriptions of the tracks with their references.
  func described(hasAudio: Bool) -> [MovieTrack] {
    tracks.map { track in
      var described = track.track
      described.references = mapped(track.parts[0].track.references, hasAudio)
      return described
    }
  }

  /// References to tracks that the output has, by their indices there.
  private func mapped(
    _ references: [MovieTrack.Reference], _ hasAudio: Bool
  ) -> [MovieTrack.Reference] {
    let first = hasAudio ? 2 : 1
    return references.compactMap { reference in
      let named = reference.tracks.compactMap { number -> Int? in
        if number == video { return 0 }
        if number == audio, hasAudio { return 1 }
        return tracks.firstIndex { $0.number == number }.map { first + $0 }
      }
      return named.isEmpty ? nil : MovieTrack.Reference(type: reference.type, tracks: named)
    }
  }

  /// Removes and returns the next sample that begins before a time of the video.
  ///
  /// - Parameters:
  ///   - ticks: The time; nil for any sample that is left.
  ///   - timescale: The number of its ticks per second.
  /// - Returns: The sample with the index of its track, or nil if there is none.
  /// - Throws: `CallFailure` if the sample cannot be read.
  mutating func next(
    before ticks: Int64?, timescale: Int32
  ) throws(CallFailure) -> (track: Int, bytes: [UInt8], sample: Sample)? {
    for index in tracks.indices where tracks[index].next < tracks[index].samples.count {
      let sample = tracks[index].samples[tracks[index].next]
      if let ticks,
        Int128(sample.ticks) * Int128(timescale)
          >= Int128(ticks) * Int128(tracks[index].track.timescale)
      {
        continue
      }
      tracks[index].next += 1
      return (index, try tracks[index].bytes(of: sample), sample)
    }
    return nil
  }
}

extension FurtherTracks.Track {
  fileprivate func bytes(of sample: FurtherTracks.Sample) throws(CallFailure) -> [UInt8] {
    switch sample.content {
    case .made(let bytes): bytes
    case .stored(let source, let position, let byteCount):
      try parts[source].bytes(byteCount, at: position)
    }
  }
}

extension MovieTrack {
  /// A sample without content, for formats whose samples count until the next one; nil for other formats.
  fileprivate var emptySample: [UInt8]? {
    func box(_ name: String) -> [UInt8] { [0, 0, 0, 8] + name.utf8 }
    let types = Set(descriptions.map(\.type))
    guard let type = types.first, types.count == 1 else { return nil }
    switch type {
    case 0x7478_3367, 0x7465_7874: return [0, 0]  // tx3g, text
    case 0x7776_7474: return box("vtte")  // wvtt
    case 0x6336_3038: return box("cdat")  // c608
    case 0x6D65_6278: return [0, 0, 0, 8, 0, 0, 0, 0]  // mebx: no key
    case 0x6770_6D64: return Array("DEVC".utf8) + [0, 1, 0, 0]  // gpmd: a device without values
    default: return nil
    }
  }
}

/// The samples of a track with their times in its asset.
private struct TimedSamples {
  struct Sample {
    let start: Rational
    let end: Rational
    let stored: SourceSamples.Sample
  }

  private let samples: [Sample]
  /// The sample descriptions of a timecode track, and the first number of each sample by its position; nil
  /// for another track.
  private let timecode: (formats: [TimecodeFormat], numbers: [Int64: UInt32])?

  init(_ part: FurtherTracks.Candidate, _ asset: Asset) throws(CallFailure) {
    let timescale = Int128(part.track.timescale)
    let (shift, end) = (
      part.samples.shift - asset.origin, part.samples.end.map { $0 - asset.origin }
    )
    samples = part.samples.samples.compactMap { stored in
      let start = Rational(Int128(stored.ticks), over: timescale) + shift
      let stop = Rational(Int128(stored.ticks + stored.duration), over: timescale) + shift
      let last = min(stop, end ?? stop)
      guard start < last, stored.byteCount > 0 else { return nil }
      return Sample(start: start, end: last, stored: stored)
    }
    let formats = part.track.descriptions.compactMap(TimecodeFormat.init)
    guard formats.count == part.track.descriptions.count,
      samples.allSatisfy({ $0.stored.byteCount == 4 })
    else {
      timecode = nil
      return
    }
    var numbers: [Int64: UInt32] = [:]
    for sample in samples {
      let bytes = try part.bytes(4, at: sample.stored.position)
      numbers[sample.stored.position] = UInt32(Box.number(bytes[...]))
    }
    timecode = (formats, numbers)
  }

  /// The samples of which a mapping plays a part, in source order.
  func played(by mapping: PlaybackMapping) -> ArraySlice<Sample> {
    let first = samples.partitioningIndex { $0.end >= mapping.sourceStart }
    return samples[first...].prefix { $0.start <= mapping.sourceEnd }
  }

  /// Appends the samples of which a mapping plays a part.
  ///
  /// A sample that continues where it ended in the mapping before becomes longer.
  ///
  /// - Returns: False if the track gets too many samples.
  func append(
    to output: inout [FurtherTracks.Sample], in range: MappedRange, source: Int,
    descriptions: [Int]
  ) throws -> Bool {
    let mapping = range.mapping
    let played = played(by: mapping)
    for sample in mapping.isReversed ? Array(played.reversed()) : Array(played) {
      guard output.count < FurtherTracks.maximumSampleCount else { return false }
      if let timecode {
        guard
          try timecode.formats[sample.stored.description].append(
            to: &output, number: timecode.numbers[sample.stored.position] ?? 0,
            from: sample.start, to: sample.end, in: range,
            description: descriptions[sample.stored.description])
        else { return false }
        continue
      }
      guard let ticks = try range.ticks(from: sample.start, to: sample.end), !ticks.isEmpty else {
        continue
      }
      let part = (max(sample.start, mapping.sourceStart), min(sample.end, mapping.sourceEnd))
      let (start, end) = mapping.isReversed ? (part.1, part.0) : part
      if let last = output.last, last.ticks + last.duration == ticks.lowerBound,
        let played = last.playedTo, played == (start, mapping.isReversed),
        case .stored(source, sample.stored.position, _) = last.content
      {
        output[output.count - 1].duration += ticks.upperBound - ticks.lowerBound
        output[output.count - 1].playedTo = (end, mapping.isReversed)
        continue
      }
      var copied = FurtherTracks.Sample(
        content: .stored(
          source: source, position: sample.stored.position, byteCount: sample.stored.byteCount),
        ticks: ticks.lowerBound, duration: ticks.upperBound - ticks.lowerBound,
        description: descriptions[sample.stored.description])
      copied.playedTo = (end, mapping.isReversed)
      output.append(copied)
    }
    return true
  }
}
