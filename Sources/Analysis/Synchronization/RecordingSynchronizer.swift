// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
import OvercrankLibAV
public import OvercrankMediaCore

/// Measures the time offset between recordings of the same event.
///
/// It compares what the recordings contain, and not their clocks. Blocks the calling thread, which
/// may be any.
public struct RecordingSynchronizer: Sendable {
  /// The kind of event to compare; nil for the audio, or a flash that the audio does not contradict.
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
    let names = (reference.path, recording.path)
    switch method {
    case .audio:
      if let slowed { throw Self.notReal(slowed) }
      return try audio(recording, reference, isCancelled).offset(limit: limit, names: names)
    case .flash:
      let light = try light(recording, reference, times, isCancelled)
      return try FlashAlignment.offset(light.0, light.1, limit: limit, names: names)
    case nil:
      let hasAudio =
        recording.audioTrack != nil && reference.audioTrack != nil && slowed == nil
      let hasVideo = recording.videoTrack != nil && reference.videoTrack != nil
      return try Self.defendedOffset(
        audio: hasAudio ? audio(recording, reference, isCancelled) : nil,
        light: { () throws(MediaError) in
          // Without audio, the error of a recording without video says so.
          guard hasVideo || !hasAudio else { return nil }
          return try light(recording, reference, times, isCancelled)
        }, limit: limit, names: names)
    }
  }

  private var limit: Double? { maximumOffset?.doubleValue }

  /// Measures the offset by audio, or by a flash that the audio does not contradict.
  ///
  /// - Parameters:
  ///   - audio: The audio; nil if a recording has none.
  ///   - light: Reads the light; nil if a recording has no video.
  ///   - limit: The greatest offset in seconds; nil for any.
  ///   - names: The two recordings, for messages.
  /// - Returns: The offset.
  /// - Throws: `MediaError` with `.nothingInCommon` or `.ambiguousMatch`, or an error of `light`.
  static func defendedOffset(
    audio: AudioAlignment?,
    light: () throws(MediaError) -> (FlashAlignment.Light, FlashAlignment.Light)?,
    limit: Double?, names: (String, String)
  ) throws(MediaError) -> RecordingOffset {
    guard let audio, case let search = audio.search(limit: limit), search.evidence.isHeard else {
      guard let light = try light() else { throw .nothingInCommon(names, "the audio of") }
      return try flashOffset(light, limit, names)
    }
    switch search.evidence {
    case .one(let peak, let rival):
      return try audio.offset(at: peak, center: search.center, rival: rival, names: names)
    case .none, .contradiction:
      throw MediaError(
        .nothingInCommon, "the audio of \(names.0) and \(names.1) has nothing in common",
        recovery: Recovery(
          "choose recordings of the same event, or compare the light alone",
          .change(.comparedEvent)))
    case .several(let peaks):
      let ambiguous = MediaError.ambiguousAudio(names, peaks.count)
      guard let light = try light() else { throw ambiguous }
      // If both repeat, they agree at several offsets, and chance decides which of them are found.
      let flashes = FlashAlignment.hypotheses(light.0, light.1, limit: limit)
      guard let flash = flashes.first, flashes.count == 1, flash.pairs.count > 1, flash.isCertain
      else { throw ambiguous }
      let tolerance = flash.tolerance + greatestDelay
      let near = peaks.filter {
        abs(Double($0.offset) / Double(AudioAlignment.coarseRate) - flash.offset) <= tolerance
      }
      guard let peak = near.first else { throw ambiguous }
      guard near.count == 1 else { return flash.measured(rival: 0) }
      return try audio.offset(
        at: peak, center: audio.center(at: peak.offset), rival: 0, names: names)
    }
  }

  /// The greatest delay of audio after light in seconds, for a distance of 17 m.
  private static let greatestDelay = 0.05

  /// Measures the offset by a flash alone.
  ///
  /// Light that is only switched on once in each recording may be two events, so at least two changes
  /// must agree.
  private static func flashOffset(
    _ light: (FlashAlignment.Light, FlashAlignment.Light), _ limit: Double?,
    _ names: (String, String)
  ) throws(MediaError) -> RecordingOffset {
    let found = try FlashAlignment.offset(light.0, light.1, limit: limit, names: names)
    guard found.matchCount > 1 else {
      throw MediaError(
        .ambiguousMatch,
        "the light in \(names.0) and \(names.1) changes once, which may be two events",
        recovery: Recovery(
          "use a flash, which goes on and off, or compare the light alone",
          .change(.comparedEvent)))
    }
    return found
  }

  private func audio(
    _ recording: Asset, _ reference: Asset, _ isCancelled: () -> Bool
  ) throws(MediaError) -> AudioAlignment {
    for asset in [reference, recording] where asset.audioTrack == nil {
      throw MediaError(
        .invalidData, "\(asset.path) contains no audio",
        recovery: "compare the video, by a flash that both recordings show")
    }
    let first = try MonoAudio(reference, isCancelled: isCancelled)
    let second = try MonoAudio(recording, isCancelled: isCancelled)
      .converted(to: first.sampleRate)
    return AudioAlignment(try first.signal(), try second.signal(), sampleRate: first.sampleRate)
  }

  private func light(
    _ recording: Asset, _ reference: Asset, _ times: [FrameTimes?], _ isCancelled: () -> Bool
  ) throws(MediaError) -> (FlashAlignment.Light, FlashAlignment.Light) {
    (
      FlashAlignment.light(try Self.brightness(reference, times[1], isCancelled)),
      FlashAlignment.light(try Self.brightness(recording, times[0], isCancelled))
    )
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

/// The audio of an asset as one channel, from the asset's time zero.
struct MonoAudio {
  let samples: [Float]
  let sampleRate: Int

  /// The greatest duration of audio that is read, in seconds.
  static let longest = 1_800.0

  /// Reads the audio, at most the first half hour.
  ///
  /// - Throws: `MediaError` with `.invalidData` for audio that cannot be decoded, `.cancelled`.
  init(_ asset: Asset, isCancelled: () -> Bool) throws(MediaError) {
    var reader = try AudioReader(asset)
    guard let track = asset.audioTrack else {
      throw MediaError(.invalidData, "\(asset.path) contains no audio")
    }
    let rate = track.sampleRate
    let end = min(
      max(0, track.startSample + track.sampleCount), Int64(Self.longest * Double(rate)))
    var samples: [Float] = []
    let share = 1 / Float(max(1, track.channelCount))
    while samples.count < end {
      if isCancelled() { throw .readingCancelled(asset) }
      let count = Int(min(48_000, end - Int64(samples.count)))
      let block = try reader.samples(from: Int64(samples.count), count: count)
      guard var mixed = block.first else { break }
      for channel in block.dropFirst() {
        for index in mixed.indices { mixed[index] += channel[index] }
      }
      // A damaged file may contain NaN or huge samples.
      samples += mixed.map { $0.isFinite && abs($0) < 1e6 ? $0 * share : 0 }
    }
    self.init(samples, sampleRate: rate)
  }

  init(_ samples: [Float], sampleRate: Int) {
    (self.samples, self.sampleRate) = (samples, sampleRate)
  }

  /// Returns the same audio at another rate, with the same length in time.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a rate that libswresample does not support.
  func converted(to rate: Int) throws(MediaError) -> MonoAudio {
    guard rate != sampleRate else { return self }
    let divisor = Self.commonDivisor(rate, sampleRate)
    do throws(CallFailure) {
      var resampler = try Resampler(
        inputRate: Int32(clamping: sampleRate / divisor),
        outputRate: Int32(clamping: rate / divisor), channelCount: 1)
      // Silence at the end flushes the last samples out of the filter.
      let tail = [Float](repeating: 0, count: resampler.filterLength)
      var result: [Float] = []
      for start in stride(from: 0, to: samples.count, by: 1 << 16) {
        let block = Array(samples[start..<min(samples.count, start + 1 << 16)])
        result += try resampler.convert([block]).first ?? []
      }
      result += try resampler.convert([tail]).first ?? []
      let count = Int(Double(samples.count) * Double(rate) / Double(sampleRate))
      return MonoAudio(Array(result.prefix(count)), sampleRate: rate)
    } catch {
      throw MediaError(.notConvertible, "audio of \(sampleRate) Hz cannot be used: \(error)")
    }
  }

  private static func commonDivisor(_ one: Int, _ other: Int) -> Int {
    var (one, other) = (one, other)
    while other > 0 { (one, other) = (other, one % other) }
    return max(1, one)
  }

  /// Returns the signal for ``AudioAlignment``, without frequencies below about 100 Hz.
  ///
  /// It contains a copy at a lower rate, for the coarse search.
  ///
  /// - Throws: `MediaError` as ``converted(to:)`` does.
  func signal() throws(MediaError) -> AudioAlignment.Signal {
    var filtered = samples
    let decay = Float(1 - 2 * 3.141_593 * 100 / Double(sampleRate))
    var (last, output): (Float, Float) = (0, 0)
    for index in filtered.indices {
      output = decay * (output + filtered[index] - last)
      last = filtered[index]
      filtered[index] = output
    }
    let coarse = try MonoAudio(filtered, sampleRate: sampleRate)
      .converted(to: AudioAlignment.coarseRate)
    return AudioAlignment.Signal(samples: filtered, coarse: coarse.samples)
  }
}

extension MediaError.Code {
  /// Two recordings have no event in common that can be found.
  public static let nothingInCommon = Self(rawValue: "nothing_in_common")
  /// A search found several results that fit about equally well.
  public static let ambiguousMatch = Self(rawValue: "ambiguous_match")
}

extension MediaError {
  static func readingCancelled(_ asset: Asset) -> MediaError { .readingCancelled(asset.path) }
}
