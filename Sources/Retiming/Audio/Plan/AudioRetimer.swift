// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The result of rendering audio.
public struct AudioRetimingReport: Hashable, Sendable {
  /// The algorithm for speeds other than 1.
  public let algorithm: AudioTimePitchAlgorithm
  /// The number of samples written per channel.
  public let samples: Int64
  /// The largest number of samples that the renderer failed to deliver for one piece.
  ///
  /// Silence replaces missing samples. The value is zero unless the renderer has a defect.
  public let lengthErrorSamples: Int64
  /// The ranges that play at another speed than requested, in composition order.
  ///
  /// The list is empty unless the algorithm is `low-quality` and the policy
  /// ``UnsupportedSpeedPolicy/snapped``.
  public let snapped: [SnappedSpeed]
}

/// A renderer of audio at the speeds of a composition, with exactly the composition's length.
///
/// A retimer has no state. Each rendering is one pass in blocks; memory use does not depend on the
/// length.
///
/// Content at speed 1 is copied bit-exactly. Retimed content is cut at the sample nearest to its
/// exact boundary. The renderer of retimed content also reads the source before and after this
/// content, so that the edges are inaudible. While the source is continuous, one renderer continues
/// across speed changes. `varispeed` uses a new renderer for each speed and each ramp.
///
/// Neighbors join without a crossfade if the source is continuous and the algorithm is `varispeed`,
/// or if one of them plays at speed 1 and the algorithm is `time-domain` or `low-quality`. At all
/// other joins a crossfade of 5 ms lies inside the retimed piece. `mute` and gaps start and end
/// without a fade.
public struct AudioRetimer: Hashable, Sendable {
  /// The supported speeds.
  ///
  /// `mute` supports any speed, and `low-quality` only ``lowQualitySpeeds``.
  public static let speeds = Speed(1, over: 32)...Speed(32)

  /// The supported sampling rates in hertz.
  public static let sampleRates: ClosedRange<Int> = 8000...192_000

  /// The supported numbers of channels.
  public static let channelCounts: ClosedRange<Int> = 1...64

  /// The algorithm for speeds other than 1.
  public let algorithm: AudioTimePitchAlgorithm
  /// The sampling rate of source and output in hertz.
  public private(set) var sampleRate: Int
  /// The number of channels of source and output.
  public let channelCount: Int
  /// The policy for speeds that `low-quality` does not support; other algorithms ignore it.
  public let otherSpeeds: UnsupportedSpeedPolicy

  /// The largest number of samples per channel in one call of `write`.
  private static let blockLength = 4096

  /// Creates a retimer for an audio format.
  ///
  /// - Throws: `MediaError` with `.unsupportedFormat` for a rate outside ``sampleRates`` or a
  ///   number of channels outside ``channelCounts``.
  public init(
    algorithm: AudioTimePitchAlgorithm, sampleRate: Int, channelCount: Int,
    otherSpeeds: UnsupportedSpeedPolicy = .refused
  ) throws(MediaError) {
    guard Self.sampleRates.contains(sampleRate) else {
      throw MediaError(
        .unsupportedFormat,
        "audio of \(sampleRate) Hz cannot be retimed; the range is \(Self.sampleRates.lowerBound) to "
          + "\(Self.sampleRates.upperBound) Hz")
    }
    guard Self.channelCounts.contains(channelCount) else {
      throw MediaError(
        .unsupportedFormat,
        "audio of \(channelCount) channels cannot be retimed; the range is 1 to "
          + "\(Self.channelCounts.upperBound)")
    }
    (self.algorithm, self.sampleRate, self.channelCount) = (algorithm, sampleRate, channelCount)
    self.otherSpeeds = otherSpeeds
  }

  /// Creates a retimer that only plays audio at speed 1, at any sampling rate.
  ///
  /// - Throws: `MediaError` with `.unsupportedFormat` for a number of channels outside
  ///   ``channelCounts``.
  package init(copyingAt sampleRate: Int, channelCount: Int) throws(MediaError) {
    self = try AudioRetimer(
      algorithm: .mute, sampleRate: Self.sampleRates.lowerBound, channelCount: channelCount)
    self.sampleRate = sampleRate
  }

  /// Returns the number of samples that a rendering would write: the duration, rounded to a sample.
  ///
  /// - Parameters:
  ///   - segments: The segments to render.
  ///   - duration: The end of the output; nil for the end of the last segment.
  /// - Returns: The number of samples per channel; zero or more.
  /// - Throws: `MediaError` for invalid segments, as rendering would.
  public func sampleCount(
    segments: [AudioSegment], duration: MediaTime? = nil
  ) throws(MediaError) -> Int64 {
    try plan(segments, duration).sampleCount
  }

  /// Returns the number of samples that a rendering of one source would write.
  ///
  /// See ``sampleCount(segments:duration:)``.
  public func sampleCount(
    mappings: [PlaybackMapping], duration: MediaTime? = nil
  ) throws(MediaError) -> Int64 {
    try sampleCount(segments: mappings.map { AudioSegment($0) }, duration: duration)
  }

  /// Returns the number of samples that a rendering of one source without ramps would write.
  ///
  /// See ``sampleCount(segments:duration:)``.
  public func sampleCount(
    mappings: [TimeMapping], duration: MediaTime? = nil
  ) throws(MediaError) -> Int64 {
    try sampleCount(mappings: mappings.map { PlaybackMapping($0) }, duration: duration)
  }

  /// Renders audio from start to end on the caller's thread.
  ///
  /// - Parameters:
  ///   - segments: The segments in ascending order of their targets, which start at zero or later
  ///     and must not overlap. Reversed mappings are refused. Gaps and frozen frames are silent.
  ///     Ramps are followed continuously, or in steps with `low-quality`.
  ///   - duration: The end of the output, padded with silence; nil for the end of the last segment.
  ///   - parallelism: The largest number of pieces rendered at once, each on its own thread. The
  ///     result does not depend on it. Rendered audio that waits to be written takes up to 32 MiB
  ///     per piece, plus 32 MiB.
  ///   - isCancelled: Returns true to stop the rendering and false to continue; called before each
  ///     block.
  ///   - read: Returns source samples, one plane per channel. The requested range may extend beyond
  ///     the source (`start` may be negative), where the samples must be silence. Positions ascend
  ///     within a piece, but may jump at the start of a piece. Parallel pieces are read in turns,
  ///     always on the caller's thread.
  ///   - write: Receives the next output samples, one plane per channel. Values may exceed ±1.
  /// - Returns: A report of the rendering.
  /// - Throws: `MediaError` with `.invalidMappings`, `.speedOutOfRange` or `.notExact` before
  ///   anything is read; `.invalidSamples`, `.engine` or `.cancelled` later; errors of `read` and
  ///   `write`.
  public func render(
    segments: [AudioSegment], duration: MediaTime? = nil, parallelism: Int = 1,
    isCancelled: () -> Bool = { false },
    read: (_ source: AudioSegment.Source, _ start: Int64, _ count: Int) throws -> [[Float]],
    write: (_ samples: [[Float]]) throws -> Void
  ) throws -> AudioRetimingReport {
    let plan = try plan(segments, duration)
    func checkedRead(
      _ source: AudioSegment.Source, _ start: Int64, _ count: Int
    ) throws -> Planes {
      let samples = try read(source, start, count)
      guard samples.count == channelCount, samples.allSatisfy({ $0.count == count }) else {
        throw MediaError(
          .invalidSamples,
          "\(count) samples of \(channelCount) channels were requested at \(start); "
            + "\(samples.sampleCount) of \(samples.count) were returned")
      }
      return samples
    }
    // The last samples of the previous piece, kept for the crossfade into the current one.
    var held = Planes.silence(0, channelCount: channelCount)
    var written: Int64 = 0
    var lengthError: Int64 = 0
    var workers = PieceWorkers(plan.pieces, retimer: self, limit: parallelism)
    defer { workers.stop() }
    for (index, piece) in plan.pieces.enumerated() {
      let worker = workers.start(index)
      var renderer: any SegmentRenderer = SilentRenderer(channelCount: channelCount)
      if worker == nil { renderer = try self.renderer(for: piece) }
      var queue = SampleQueue(channelCount: channelCount, dropping: 0)
      var missing: Int64 = 0
      var made: Int64 = 0
      func next(upTo end: Int64) throws -> Planes {
        if isCancelled() { throw MediaError(.cancelled, "audio rendering was cancelled") }
        let count = Int(min(end - made, Int64(Self.blockLength)))
        var samples =
          if let worker {
            try workers.next(
              count, from: worker, into: &queue, isCancelled: isCancelled, checkedRead)
          } else { try renderer.next(count) { try checkedRead(piece.source, $0, $1) } }
        let lack = count - samples.sampleCount
        missing += Int64(lack)
        samples.append(samples: .silence(lack, channelCount: channelCount))
        made += Int64(count)
        return samples
      }

      let fadeLength = Int64(held.sampleCount)
      if fadeLength > 0 {
        var incoming = Planes.silence(0, channelCount: channelCount)
        while made < fadeLength { incoming.append(samples: try next(upTo: fadeLength)) }
        try write(held.faded(into: incoming))
        written += fadeLength
      }
      let end = piece.length - piece.overlap
      while made < end {
        let samples = try next(upTo: end)
        written += Int64(samples.sampleCount)
        try write(samples)
      }
      held = Planes.silence(0, channelCount: channelCount)
      while made < piece.length { held.append(samples: try next(upTo: piece.length)) }
      lengthError = max(lengthError, missing)
    }
    return AudioRetimingReport(
      algorithm: algorithm, samples: written, lengthErrorSamples: lengthError,
      snapped: plan.snapped)
  }

  /// Renders one source from start to end.
  ///
  /// See ``render(segments:duration:parallelism:isCancelled:read:write:)``.
  public func render(
    mappings: [PlaybackMapping], duration: MediaTime? = nil, parallelism: Int = 1,
    isCancelled: () -> Bool = { false },
    read: (_ start: Int64, _ count: Int) throws -> [[Float]],
    write: (_ samples: [[Float]]) throws -> Void
  ) throws -> AudioRetimingReport {
    try render(
      segments: mappings.map { AudioSegment($0) }, duration: duration, parallelism: parallelism,
      isCancelled: isCancelled, read: { try read($1, $2) }, write: write)
  }

  /// Renders one source at constant speeds, without ramps, from start to end.
  ///
  /// See ``render(segments:duration:parallelism:isCancelled:read:write:)``.
  public func render(
    mappings: [TimeMapping], duration: MediaTime? = nil, parallelism: Int = 1,
    isCancelled: () -> Bool = { false },
    read: (_ start: Int64, _ count: Int) throws -> [[Float]],
    write: (_ samples: [[Float]]) throws -> Void
  ) throws -> AudioRetimingReport {
    try render(
      mappings: mappings.map { PlaybackMapping($0) }, duration: duration,
      parallelism: parallelism, isCancelled: isCancelled, read: read, write: write)
  }

  private func plan(
    _ segments: [AudioSegment], _ duration: MediaTime?
  ) throws(MediaError) -> AudioPlan {
    var plan = try AudioPlan(
      segments, duration: duration, sampleRate: sampleRate, algorithm: algorithm,
      otherSpeeds: otherSpeeds)
    try plan.join(algorithm, fade: Int64(sampleRate / 200))
    return plan
  }

  /// The greatest distance of a piece's source samples from sample zero, in samples.
  ///
  /// Renderers add the lengths of filters and blocks to positions, and the limit keeps these sums
  /// within 64 bits. It is 760 000 years of audio at 192 kHz.
  private static let farthestSample = Rational(Int64(1) << 62)

  func renderer(for piece: AudioPiece) throws(MediaError) -> any SegmentRenderer {
    let position = try piece.position(at: -piece.lead)
    for position in [position, try piece.position(at: Int64(piece.samples.count))] {
      guard position <= Self.farthestSample, -position <= Self.farthestSample else {
        throw MediaError(.notExact, "the sample \(position) is too far")
      }
    }
    switch (piece.content, algorithm) {
    case (.silence, _), (.retimed, .mute): return SilentRenderer(channelCount: channelCount)
    case (.copy, _): return CopyRenderer(position: try piece.firstCopied() - piece.lead)
    case (.retimed, .varispeed):
      // libswresample cannot represent all speeds and start positions. `VarispeedRenderer` then
      // returns nil, and `SincRenderer` is used.
      if !piece.hasRamp,
        let renderer = try VarispeedRenderer(
          position: position, speed: piece.speed, channelCount: channelCount)
      {
        return renderer
      }
      return try SincRenderer(piece, channelCount: channelCount)
    case (.retimed, .timeDomain):
      return try WSOLARenderer(
        piece, shape: .timeDomain(sampleRate: sampleRate), sampleRate: sampleRate,
        channelCount: channelCount)
    case (.retimed, .lowQuality):
      return try WSOLARenderer(
        piece, shape: .lowQuality(sampleRate: sampleRate), sampleRate: sampleRate,
        channelCount: channelCount)
    case (.retimed, .spectral):
      return try RubberBandRenderer(piece, sampleRate: sampleRate, channelCount: channelCount)
    }
  }
}
