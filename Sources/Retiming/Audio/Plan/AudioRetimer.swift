// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// What the sound of an export came to.
public struct AudioRetimingReport: Hashable, Sendable {
  /// The algorithm that made what plays at other speeds than 1.
  public let algorithm: AudioTimePitchAlgorithm
  /// The samples written, each counted once for all channels.
  public let samples: Int64
  /// The most samples that the engine lacked in any one piece before it was padded with silence to
  /// its exact length; zero unless something is wrong with the engine.
  public let lengthErrorSamples: Int64
  /// What plays at another speed than was asked for, in the order of the composition: only with
  /// `low-quality`, and only where the caller let it.
  public let snapped: [SnappedSpeed]
}

/// Plays the sound of a source at the speeds of a composition, into exactly as many samples as the
/// composition is long.
///
/// A value without state: each rendering is
/// one pass from start to end, in blocks, in memory that does not grow with the length.
///
/// What plays at speed 1 is copied bit for bit. What plays at others is made with the source's real
/// sound before and after it, by one engine as long as the source runs on, whatever the speeds (for
/// `varispeed`, one a speed or ramp), and cut at the sample nearest to its boundary. `time-domain` and
/// `low-quality` go on from a neighbour at speed 1 and end in the next; `varispeed` needs nothing where the source runs
/// on. All other joins fade over 5 ms, inside the retimed piece. `mute` and empty time start and end
/// at once.
public struct AudioRetimer: Hashable, Sendable {
  /// The speeds at which sound can play, other than muted.
  public static let speeds = Speed(1, over: 32)...Speed(32)

  /// The sampling rates that can be rendered, in hertz.
  public static let sampleRates: ClosedRange<Int> = 8000...192_000

  /// The numbers of channels that can be rendered.
  public static let channelCounts: ClosedRange<Int> = 1...64

  /// What happens to the pitch.
  public let algorithm: AudioTimePitchAlgorithm
  /// Samples per second of the source and of the output, in hertz.
  public let sampleRate: Int
  /// The number of channels of the source and of the output.
  public let channelCount: Int
  /// What becomes of speeds that `low-quality` does not have; nothing to other algorithms.
  public let otherSpeeds: UnsupportedSpeedPolicy

  /// How many samples are handed over at a time, at most.
  private static let blockLength = 4096

  /// Makes a retimer for a kind of sound.
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
        "sound of \(sampleRate) Hz cannot be retimed; from \(Self.sampleRates.lowerBound) to "
          + "\(Self.sampleRates.upperBound) Hz can")
    }
    guard Self.channelCounts.contains(channelCount) else {
      throw MediaError(
        .unsupportedFormat,
        "sound of \(channelCount) channels cannot be retimed; from 1 to "
          + "\(Self.channelCounts.upperBound) can")
    }
    self.algorithm = algorithm
    self.sampleRate = sampleRate
    self.channelCount = channelCount
    self.otherSpeeds = otherSpeeds
  }

  /// The number of samples that a rendering would write: the duration's nearest whole number.
  ///
  /// - Parameters:
  ///   - segments: As for rendering.
  ///   - duration: As for rendering.
  /// - Returns: Zero or more.
  /// - Throws: `MediaError` for everything about the segments that rendering would refuse.
  public func sampleCount(
    segments: [AudioSegment], duration: MediaTime? = nil
  ) throws(MediaError) -> Int64 {
    try plan(segments, duration).sampleCount
  }

  /// The number of samples that a rendering of one source would write.
  ///
  /// As for segments of several sources.
  public func sampleCount(
    mappings: [PlaybackMapping], duration: MediaTime? = nil
  ) throws(MediaError) -> Int64 {
    try sampleCount(segments: mappings.map { AudioSegment($0) }, duration: duration)
  }

  /// The number of samples that a rendering at some speeds, without ramps, would write.
  ///
  /// As for mappings that may be ramps.
  public func sampleCount(
    mappings: [TimeMapping], duration: MediaTime? = nil
  ) throws(MediaError) -> Int64 {
    try sampleCount(mappings: mappings.map { PlaybackMapping($0) }, duration: duration)
  }

  /// Renders the sound from start to end.
  ///
  /// - Parameters:
  ///   - segments: Which source time plays when, in the order of their targets, which start at
  ///     zero or later and do not overlap. None plays backwards. Where there is none, or an instant
  ///     is held, there is silence. Ramps are followed as they are (by `low-quality` in steps).
  ///   - duration: The end of the output, for silence after the last mapping; nil to end with it.
  ///   - parallelism: How many pieces may be made at a time, each on a thread of its own. The
  ///     samples are the same. Up to 32 MiB for each, and 32 MiB more, may wait to be written.
  ///   - isCancelled: Asked before each block; rendering stops when it is true.
  ///   - read: Gives samples of a source by number, one plane a channel, silence outside its
  ///     ends (`start` may be negative). Numbers ascend within a piece; at each piece they step
  ///     back or forth to where its source starts, and a lead ahead of it. With pieces in
  ///     parallel it is asked for theirs in turns, always on the caller's thread.
  ///   - write: Takes the next samples of the output, one plane a channel. They may exceed ±1.
  /// - Returns: How many samples were written.
  /// - Throws: `MediaError` with `.invalidMappings`, `.speedOutOfRange` or `.notExact` before
  ///   anything is read, `.invalidSamples`, `.engine` or `.cancelled` later; and what `read` and
  ///   `write` throw.
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
          "\(count) samples of \(channelCount) channels from \(start) on were asked for; "
            + "\(samples.sampleCount) of \(samples.count) came")
      }
      return samples
    }
    // The end of one piece, to be faded into the start of the next.
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
        if isCancelled() { throw MediaError(.cancelled, "the sound was cancelled") }
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
  /// As for segments of several sources.
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

  /// Renders sound at some speeds, without ramps, from start to end.
  ///
  /// As for mappings that may be ramps.
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

  func renderer(for piece: AudioPiece) throws(MediaError) -> any SegmentRenderer {
    let position = try piece.position(at: -piece.lead)
    switch (piece.content, algorithm) {
    case (.silence, _), (.retimed, .mute): return SilentRenderer(channelCount: channelCount)
    case (.copy, _): return CopyRenderer(position: try piece.firstCopied() - piece.lead)
    case (.retimed, .varispeed):
      // What starts between the resampler's samples, or is no fraction that it can take, is made
      // where it belongs all the same.
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
