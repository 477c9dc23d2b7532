// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// What `info` says of a file.
struct InfoDocument: Encodable {
  struct Video: Encodable {
    let codec: String
    let width: Int
    let height: Int
    let frameCount: Int
    @Nullable var nominalFps: String?
    @Nullable var nominalFpsValue: Double?
    @Nullable var averageFps: String?
    @Nullable var averageFpsValue: Double?
    let variable: Bool
    let timescale: Int
    @Nullable var captureFps: String?
    @Nullable var captureFpsValue: Double?
    @Nullable var captureFpsSource: String?
    let rotation: Int
  }
  struct Audio: Encodable {
    let codec: String
    let sampleRate: Int
    let channels: Int
    let sampleCount: Int64
  }
  struct Truncation: Encodable {
    let readableFrames: Int
    let statedFrames: Int
    /// The same for people.
    let words: String

    enum CodingKeys: CodingKey { case readableFrames, statedFrames }

    init(_ truncation: Asset.Truncation) {
      words = truncation.words
      readableFrames = truncation.readableFrameCount
      statedFrames = truncation.statedFrameCount
    }
  }
  struct Chapter: Encodable {
    let title: String
    let startNs: Int64
    let endNs: Int64
  }

  let schema = schemaName("info")
  let file: String
  let container: String
  let durationNs: Int64
  @Nullable var video: Video?
  @Nullable var audio: Audio?
  let metadata: [String: String]
  let chapters: [Chapter]
  /// Of a file that is cut off, what can be read.
  @Nullable var truncation: Truncation?

  enum CodingKeys: CodingKey {
    case schema, file, container, durationNs, video, audio, metadata, chapters, truncation
  }

  init(_ asset: Asset) throws {
    file = asset.path
    container = asset.container
    truncation = asset.truncation.map(Truncation.init)
    durationNs = try asset.duration.nanoseconds(.halfAwayFromZero)
    metadata = asset.metadata
    chapters = asset.chapters.map { chapter in
      Chapter(
        title: chapter.title, startNs: nanoseconds(chapter.start), endNs: nanoseconds(chapter.end))
    }
    audio = asset.audioTrack.map {
      Audio(
        codec: $0.codec.rawValue, sampleRate: $0.sampleRate, channels: $0.channelCount,
        sampleCount: $0.sampleCount)
    }
    let capture = asset.captureFrameRate
    video = asset.videoTrack.map { track in
      let average = track.frames.averageFrameRate
      return Video(
        codec: track.codec.rawValue, width: track.width, height: track.height,
        frameCount: track.frameCount, nominalFps: track.nominalFrameRate?.description,
        nominalFpsValue: track.nominalFrameRate?.doubleValue, averageFps: average?.description,
        averageFpsValue: average?.doubleValue, variable: track.frames.isVariable,
        timescale: Int(track.timescale), captureFps: capture?.rate.description,
        captureFpsValue: capture?.rate.doubleValue, captureFpsSource: capture?.source,
        rotation: track.rotation)
    }
  }

  /// The same for people.
  var lines: [String] {
    var lines = ["\(file): \(container), \(decimal(Double(durationNs) / 1e9, 6)) s"]
    if let video {
      let average = video.averageFpsValue.map { decimal($0, 3) } ?? "unknown"
      lines.append(
        "video: \(video.codec) \(video.width)x\(video.height), \(video.frameCount) frames, "
          + "\(average) fps on average\(video.variable ? ", variable" : "")"
          + (video.rotation == 0 ? "" : ", shown turned by \(video.rotation) degrees"))
      lines.append(
        video.captureFps.map { "captured at: \($0) fps, by \(video.captureFpsSource ?? "")" }
          ?? "captured at: unknown, the file does not say")
    }
    if let audio {
      lines.append(
        "audio: \(audio.codec), \(audio.sampleRate) Hz, \(audio.channels) channels, "
          + "\(audio.sampleCount) samples")
    }
    if let truncation { lines.append("cut off: \(truncation.words)") }
    lines += chapters.map { "chapter: \(decimal(Double($0.startNs) / 1e9, 3)) s \($0.title)" }
    return lines
  }
}

/// Whole nanoseconds of a time in seconds, as far as they go.
func nanoseconds(_ seconds: Rational) -> Int64 {
  let exact = try? (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
  return exact.map { Int64(clamping: $0) } ?? 0
}

extension Asset.Truncation {
  /// The same for people.
  var words: String { "\(readableFrameCount) of \(statedFrameCount) frames can be read" }
}
