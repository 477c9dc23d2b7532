// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore

/// Measures the time offset between recordings of the same event.
///
/// It compares what the recordings contain, and not their clocks. Blocks the calling thread, which
/// may be any.
public struct RecordingSynchronizer: Sendable {
  /// The kind of event to compare; nil to try audio first, and then a flash.
  public var method: RecordingOffset.Method?
  /// The greatest offset that is searched; nil to search all offsets at which the recordings
  /// overlap.
  public var maximumOffset: MediaTime?

  /// Creates a synchronizer.
  public init(method: RecordingOffset.Method? = nil, maximumOffset: MediaTime? = nil) {
    (self.method, self.maximumOffset) = (method, maximumOffset)
  }

  /// Measures the offset of a recording to a reference.
  ///
  /// At most the first half hour of audio is read. Times are those of the capture, from the first
  /// frame on. Audio is compared only if both recordings play in real time, because a slowed recording
  /// has other audio.
  ///
  /// - Parameters:
  ///   - recording: The recording.
  ///   - reference: The recording in whose time the offset is given.
  ///   - clocks: The capture times of the recording and of the reference; nil for those that the files
  ///     state.
  ///   - isCancelled: Polled between blocks of audio and between frames.
  /// - Returns: The offset with its uncertainty.
  /// - Throws: `MediaError` with `.nothingInCommon`, with `.ambiguousMatch` for an event that
  ///   repeats, with `.invalidData` for a recording without the track that the method needs,
  ///   with `.unknownCaptureTime` for a movie with cuts, and for the audio of one that does not play in
  ///   real time, or `.cancelled`.
  public func offset(
    of recording: Asset, to reference: Asset,
    clocks: (recording: CaptureClock, reference: CaptureClock)? = nil,
    isCancelled: () -> Bool = { false }
  ) throws(MediaError) -> RecordingOffset {
    let times = [
      try Self.times(of: recording, clocks?.recording),
      try Self.times(of: reference, clocks?.reference),
    ]
    let slowed = zip([recording, reference], times).first { $1.map { !$0.isReal } ?? false }?.0
    let hasAudio = recording.audioTrack != nil && reference.audioTrack != nil
    let hasVideo = recording.videoTrack != nil && reference.videoTrack != nil
    switch method {
    case .audio:
      if let slowed { throw Self.notReal(slowed) }
      return try audioOffset(recording, reference, isCancelled)
    case .flash: return try flashOffset(recording, reference, times, isCancelled)
    case nil: break
    }
    guard hasAudio, slowed == nil else {
      return try flashOffset(recording, reference, times, isCancelled)
    }
    do throws(MediaError) { return try audioOffset(recording, reference, isCancelled) } catch {
      guard [.nothingInCommon, .ambiguousMatch].contains(error.code), hasVideo else { throw error }
      do throws(MediaError) {
        return try flashOffset(recording, reference, times, isCancelled)
      } catch let other {
        // Throws the error of the audio comparison instead of that of the flash comparison, because
        // the audio error suggests a remedy.
        throw other.code == .cancelled ? other : error
      }
    }
  }

  private func audioOffset(
    _ recording: Asset, _ reference: Asset, _ isCancelled: () -> Bool
  ) throws(MediaError) -> RecordingOffset {
    for asset in [reference, recording] where asset.audioTrack == nil {
      throw MediaError(
        .invalidData, "\(asset.path) contains no audio",
        recovery: "compare the video, by a flash that both recordings show")
    }
    let first = try MonoAudio(reference, isCancelled: isCancelled)
    let second = try MonoAudio(recording, isCancelled: isCancelled)
      .converted(to: first.sampleRate)
    return try AudioAlignment(first.signal(), second.signal(), sampleRate: first.sampleRate)
      .offset(limit: maximumOffset?.doubleValue, names: (reference.path, recording.path))
  }

  private func flashOffset(
    _ recording: Asset, _ reference: Asset, _ times: [FrameTimes?], _ isCancelled: () -> Bool
  ) throws(MediaError) -> RecordingOffset {
    let first = FlashAlignment.edges(try Self.brightness(reference, times[1], isCancelled))
    let second = FlashAlignment.edges(try Self.brightness(recording, times[0], isCancelled))
    return try FlashAlignment.offset(
      first, second, limit: maximumOffset?.doubleValue, names: (reference.path, recording.path))
  }

  /// The capture times of the frames of a recording, in seconds after the first.
  private struct FrameTimes {
    /// Nil for a frame that repeats the one before.
    let seconds: [Double?]
    /// Whether the movie plays in real time.
    let isReal: Bool
  }

  /// Returns the capture times of a recording; nil for one without video.
  private static func times(
    of asset: Asset, _ clock: CaptureClock?
  ) throws(MediaError) -> FrameTimes? {
    guard let frames = asset.videoTrack?.frames else { return nil }
    let clock = if let clock { clock } else { try asset.captureClock() }
    guard let start = clock.seconds(ofFrame: 0) else { throw notOnePart(asset) }
    var seconds: [Double?] = []
    var last: Rational?
    for index in frames.entries.indices {
      guard clock.part(ofFrame: index) == clock.part(ofFrame: 0),
        let time = clock.seconds(ofFrame: index), last.map({ $0 <= time }) ?? true
      else { throw notOnePart(asset) }
      let isRepeated = clock.map.frames[index].content == .repeated
      seconds.append(isRepeated ? nil : (time - start).doubleValue)
      last = time
    }
    return FrameTimes(seconds: seconds, isReal: clock.timeScale == .one)
  }

  private static func notOnePart(_ asset: Asset) -> MediaError {
    MediaError(
      .unknownCaptureTime, "\(asset.path) has cuts or plays backwards, so that it has no offset",
      recovery: Recovery("compare the recording that it was made from", .change(.captureClock)))
  }

  private static func notReal(_ asset: Asset) -> MediaError {
    MediaError(
      .unknownCaptureTime, "\(asset.path) does not play in real time, and so its audio does not",
      recovery: "compare the frames of a flash, or the recording that it was made from")
  }

  /// The mean brightness of all frames; a frame that cannot be decoded is left out.
  private static func brightness(
    _ asset: Asset, _ times: FrameTimes?, _ isCancelled: () -> Bool
  ) throws(MediaError) -> FlashAlignment.Brightness {
    guard let frames = asset.videoTrack?.frames else {
      throw MediaError(
        .invalidData, "\(asset.path) contains no video",
        recovery: "compare the audio of recordings that have it")
    }
    var reader = try FrameReader(asset)
    var image = PixelBuffer(format: .gray)
    var result = FlashAlignment.Brightness()
    for index in frames.entries.indices {
      if isCancelled() { throw .readingCancelled(asset) }
      guard let time = times?.seconds[index] else { continue }
      do throws(MediaError) { try reader.copyFrame(at: index, into: &image) } catch {
        guard error.code == .invalidData else { throw error }
        continue
      }
      let sum = image.withUnsafeBytes(ofPlane: 0) { $0.reduce(0) { $0 + Int($1) } }
      result.times.append(time)
      result.values.append(Double(sum) / Double(max(1, image.width * image.height)))
    }
    return result
  }
}
