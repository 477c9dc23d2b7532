// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `info`.
struct InfoDocument: Encodable, TextDocument {
  struct Video: Encodable {
    let codec: String
    let width: Int
    let height: Int
    let frameCount: Int
    let nominalFps: FrameRate?
    let averageFps: Rational?
    let variable: Bool
    let timescale: Int
    let captureFps: FrameRate?
    let captureFpsSource: String?
    let rotation: Int
    /// Whether players mirror the frames left to right, after the rotation.
    let mirrored: Bool
    /// The number of frames whose stored time contradicts the order of the frames, so that it was
    /// corrected.
    let timesCorrected: Int
    let bitDepth: Int?
    let pixelFormat: String?
    let color: Color
    let bitRate: Int64?
    let dolbyVision: DolbyVision?

    /// The meaning of the pixels' values; nil where the file does not state it.
    struct Color: Encodable {
      let primaries: String?
      let transfer: String?
      let matrix: String?
      let fullRange: Bool
    }
    struct DolbyVision: Encodable {
      let profile: Int
      let level: Int
      let compatibilityId: Int
    }

    /// The depth, dynamic range and Dolby Vision as text; empty for plain 8-bit video.
    var depth: String {
      ((bitDepth ?? 8) > 8 ? ", \(bitDepth ?? 0) bits" : "")
        + (color.transfer == "smpte2084" ? ", PQ" : color.transfer == "arib-std-b67" ? ", HLG" : "")
        + (dolbyVision.map { ", Dolby Vision profile \($0.profile)" } ?? "")
    }

    /// The transformation that players apply, as text; empty for none.
    var geometry: String {
      let parts =
        (rotation == 0 ? [] : ["rotated by \(rotation) degrees"]) + (mirrored ? ["mirrored"] : [])
      return parts.isEmpty ? "" : ", \(parts.joined(separator: " and ")) for display"
    }
  }
  struct Audio: Encodable {
    let codec: String
    let sampleRate: Int
    let channels: Int
    let sampleCount: Int64
  }
  /// A video track, an audio track or a track of another kind.
  struct Track: Encodable {
    /// The number of the track among the tracks of its kind, from 1; `--video-track` takes this
    /// number.
    let index: Int
    let kind: String
    let codec: String
    let language: String?
    let isDefault: Bool
    let enabled: Bool

    enum CodingKeys: String, CodingKey {
      case index, kind, codec, language, enabled
      case isDefault = "default"
    }

    /// Returns the tracks of a file, in the order of the file.
    static func all(of asset: Asset) -> [Track] {
      var counts: [String: Int] = [:]
      return asset.tracks.map { track in
        let kind = track.mediaType?.rawValue ?? "other"
        counts[kind, default: 0] += 1
        return Track(
          index: counts[kind, default: 0], kind: kind, codec: track.codec,
          language: track.language, isDefault: track.isDefault, enabled: track.isEnabled)
      }
    }

    var line: String {
      let language = language.map { ", \($0)" } ?? ""
      let marks = (isDefault ? ", default" : "") + (enabled ? "" : ", disabled")
      return "\(kind) track \(index): \(codec)\(language)\(marks)"
    }
  }
  struct Truncation: Encodable {
    let readableFrames: Int
    let statedFrames: Int?
    /// The truncation as text; not part of the JSON document.
    let summary: String

    enum CodingKeys: CodingKey { case readableFrames, statedFrames }

    init(_ truncation: Asset.Truncation) {
      summary = truncation.summary
      readableFrames = truncation.readableFrameCount
      statedFrames = truncation.statedFrameCount
    }
  }
  struct Chapter: Encodable {
    let title: String
    let startNs: Int64
    let endNs: Int64
  }

  /// The timed metadata tracks.
  struct TimedMetadata: Encodable {
    let count: Int
    let keys: [String]
  }
  /// One value, as printed in a line of `info --timed-metadata`.
  struct TimedValue: Encodable {
    let frameIndex: Int64
    let pts: MediaTime
    let key: String
    let value: MetadataValue

    init(_ item: TimedMetadataItem) {
      (frameIndex, pts, key, value) = (item.frameIndex, item.time, item.key, item.value)
    }
  }

  /// A photo and the movie that belongs to it.
  struct LivePhotoPair: Encodable {
    let photo: String?
    let movie: String?
    let embedded: Bool
    let contentIdentifier: String?
    let photoDisplayTime: MediaTime?

    enum CodingKeys: CodingKey {
      case photo, movie, embedded, contentIdentifier, photoDisplayTime
    }

    init(_ pair: LivePhoto) {
      photo = pair.photoPath
      if case .file(let path) = pair.movie { movie = path } else { movie = nil }
      embedded = movie == nil
      contentIdentifier = pair.contentIdentifier
      photoDisplayTime = pair.photoDisplayTime
    }
  }

  let schema = schemaName("info")
  let file: String
  let container: String
  let duration: MediaTime
  let video: Video?
  let audio: Audio?
  let tracks: [Track]
  let metadata: [String: String]
  let chapters: [Chapter]
  let marks: [MarkDocument]
  /// The readable part of a truncated file; nil for a complete file.
  let truncation: Truncation?
  /// The faults of the file that did not prevent reading it.
  let notes: [String]
  /// The timed metadata; nil if the file has none.
  let timedMetadata: TimedMetadata?

  /// The time map; nil if the file has none.
  let timeMap: TimeMapDocument?
  /// Why the time map of the file is not used; nil if it is, or if there is none.
  let timeMapRefusal: String?

  /// The photo and movie that the file is one of; nil for any other file.
  let livePhoto: LivePhotoPair?

  enum CodingKeys: CodingKey {
    case schema, file, container, duration, video, audio, tracks, metadata, chapters, marks,
      truncation, notes
    case timedMetadata, livePhoto, timeMap
  }

  init(_ asset: Asset, of path: String, _ pair: LivePhoto?) {
    file = path
    livePhoto = pair.map(LivePhotoPair.init)
    container = asset.container
    truncation = asset.truncation.map(Truncation.init)
    notes = asset.notes
    let timed = asset.timedMetadata()
    timedMetadata =
      timed.isEmpty
      ? nil : TimedMetadata(count: timed.count, keys: Set(timed.map(\.key)).sorted())
    duration = asset.duration
    tracks = Track.all(of: asset)
    metadata = asset.metadata
    chapters = asset.chapters.map { chapter in
      Chapter(
        title: chapter.title, startNs: nanoseconds(chapter.start), endNs: nanoseconds(chapter.end))
    }
    marks = asset.marks.map(MarkDocument.init)
    audio = asset.audioTrack.map {
      Audio(
        codec: $0.codec.rawValue, sampleRate: $0.sampleRate, channels: $0.channelCount,
        sampleCount: $0.sampleCount)
    }
    timeMap = asset.timeMap.map(TimeMapDocument.init)
    timeMapRefusal = asset.timeMapRefusal
    let capture = asset.captureFrameRate
    video = asset.videoTrack.map { track in
      Video(
        codec: track.codec.rawValue, width: track.width, height: track.height,
        frameCount: track.frameCount, nominalFps: track.nominalFrameRate,
        averageFps: track.frames.averageFrameRate, variable: track.frames.isVariable,
        timescale: Int(track.timescale), captureFps: capture?.rate,
        captureFpsSource: capture?.source, rotation: track.rotation, mirrored: track.isMirrored,
        timesCorrected: track.frames.correctedTimeCount, bitDepth: track.bitDepth,
        pixelFormat: track.pixelFormat?.rawValue,
        color: Video.Color(
          primaries: track.colorPrimaries, transfer: track.transferFunction,
          matrix: track.yCbCrMatrix, fullRange: track.isFullRange), bitRate: track.bitRate,
        dolbyVision: track.dolbyVision.map {
          Video.DolbyVision(
            profile: $0.profile, level: $0.level, compatibilityId: $0.compatibility)
        })
    }
  }

  /// The description as text lines.
  var lines: [String] {
    var lines = ["\(file): \(container), \(decimal(duration.doubleValue, 6)) s"]
    if let video {
      let average = video.averageFps.map { decimal($0.doubleValue, 3) } ?? "unknown"
      lines.append(
        "video: \(video.codec) \(video.width)x\(video.height), \(video.frameCount) frames, "
          + "\(average) fps on average\(video.variable ? ", variable" : "")"
          + video.depth + video.geometry)
      lines.append(
        video.captureFps.map { "capture rate: \($0) fps, from \(video.captureFpsSource ?? "")" }
          ?? "capture rate: unknown, the file does not state it")
      if video.timesCorrected > 0 { lines.append(correctedTimesLine(video.timesCorrected)) }
    }
    if let audio {
      lines.append(
        "audio: \(audio.codec), \(audio.sampleRate) Hz, \(audio.channels) channels, "
          + "\(audio.sampleCount) samples")
    }
    // The lines above describe one track of each kind, so all tracks are listed if there are more.
    for kind in ["video", "audio"] {
      let same = tracks.filter { $0.kind == kind }
      if same.count > 1 { lines += same.map(\.line) }
    }
    if let timedMetadata {
      lines.append(
        "timed metadata: \(timedMetadata.count) values of "
          + timedMetadata.keys.joined(separator: ", "))
    }
    if let livePhoto {
      let time = livePhoto.photoDisplayTime.map { ", \(decimal($0.doubleValue, 6)) s" } ?? ""
      lines.append(
        "live photo: \(livePhoto.photo ?? "no photo found"), "
          + "\(livePhoto.movie ?? "the movie is in the photo")\(time)")
    }
    if let timeMap { lines.append(timeMap.line) }
    if let timeMapRefusal { lines.append("time map: not used, the file \(timeMapRefusal)") }
    if let truncation { lines.append("truncated: \(truncation.summary)") }
    lines += chapters.map { "chapter: \(decimal(Double($0.startNs) / 1e9, 3)) s \($0.title)" }
    lines += marks.map(\.line)
    return lines
  }
}

/// A mark of a movie, or one that was set during playback.
struct MarkDocument: Encodable {
  let name: String
  /// The time in the movie or the composition.
  let atNs: Int64
  /// The index of the frame on screen at the mark in its source, from 0; nil after the last frame
  /// and in a gap.
  let frameIndex: Int?
  /// The capture time of this frame; nil if unknown.
  let captureNs: Int64?

  init(_ mark: Asset.Mark) {
    (name, atNs, frameIndex) = (mark.name, mark.time.wholeNanoseconds, mark.frameIndex)
    captureNs = mark.captureTime?.wholeNanoseconds
  }

  init(_ mark: PlaybackProject.Mark) {
    (name, atNs) = (mark.name, nanoseconds(mark.time.composition))
    frameIndex = mark.time.source?.frameIndex
    captureNs = mark.time.capture?.wholeNanoseconds
  }

  var line: String {
    let frame = frameIndex.map { ", frame \($0)" } ?? ""
    return "mark: @\(name) at \(decimal(Double(atNs) / 1e9, 6)) s\(frame)"
  }
}

/// Converts seconds to nanoseconds, rounded and clamped to the range of `Int64`.
func nanoseconds(_ seconds: Rational) -> Int64 {
  let exact = try? (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
  return exact.map { Int64(clamping: $0) } ?? 0
}

extension Asset.Truncation {
  /// The number of readable frames as text.
  var summary: String {
    let stated = statedFrameCount.map { " of \($0)" } ?? ""
    return "\(readableFrameCount)\(stated) frames can be read"
  }
}

/// The time map of a movie, as `info` describes it.
struct TimeMapDocument: Encodable {
  /// Consecutive frames of one recording that play at one speed, or along one ramp.
  struct Segment: Encodable {
    let firstIndex: Int
    let lastIndex: Int
    /// The index of the recording; nil for frames of unknown origin.
    let recording: Int?
    /// Seconds of capture time per second of the movie; nil where it varies.
    let timeScale: Rational?
    /// Whether the recording goes on from the segment before without a cut.
    let continued: Bool
  }

  /// A recording from which frames come.
  struct Recording: Encodable {
    /// The identity in hexadecimal digits.
    let id: String
    /// The origin of its capture times: `recording`, `tag` or `file`.
    let timeSource: CaptureClock.Source
    let lossesKnown: Bool
  }

  let segments: [Segment]
  let recordings: [Recording]

  init(_ map: TimeMap) {
    segments = map.segments.map {
      Segment(
        firstIndex: $0.frames.lowerBound, lastIndex: $0.frames.upperBound - 1,
        recording: $0.recording, timeScale: $0.timeScale, continued: $0.isContinued)
    }
    recordings = map.recordings.map { recording in
      let digits = String(recording.identity, radix: 16)
      let source: CaptureClock.Source =
        switch recording.basis {
        case .driver: .recording
        case .statedRate: .tag
        case .fileTimes: .file
        }
      return Recording(
        id: String(repeating: "0", count: 16 - digits.count) + digits, timeSource: source,
        lossesKnown: recording.knowsLosses)
    }
  }

  /// The map as a line of text.
  var line: String {
    let scales = Set(segments.map(\.timeScale))
    let speed =
      scales.count == 1
      ? (scales.first ?? nil).map { scale in
        "1 s of the movie shows \(scale.denominator == 1 ? "\(scale.numerator)" : "\(scale)") s"
      } ?? "at varying speed"
      : "at several speeds"
    let count = recordings.count == 1 ? "1 recording" : "\(recordings.count) recordings"
    return "time map: \(count), \(speed)"
  }
}
