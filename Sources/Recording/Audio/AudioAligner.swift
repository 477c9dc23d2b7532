// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore

/// Aligns blocks of captured audio to the time of a take, and corrects clock drift.
///
/// The aligner joins the blocks to one continuous input and inserts silence for missing samples. A
/// resampler converts this input to the take's samples, and compensates the rate difference between
/// the sound card's clock and the capture clock. If the audio is nevertheless early or late, the
/// resampler's rate is changed until the error is gone. The change is so small that the pitch does
/// not change audibly. Errors therefore do not accumulate over the take.
struct AudioAligner: ~Copyable {
  /// The time constant, in seconds, with which a position error of the audio is corrected.
  ///
  /// The error shrinks to 1/e in this time.
  private static let correctionTime = 4.0
  /// The greatest change of the resampler's rate that corrects a position error, in parts per
  /// million.
  ///
  /// 500 ppm is about a hundredth of a semitone.
  private static let fastestCorrection = 500.0
  /// The greatest position error in seconds that clock drift can explain.
  ///
  /// A larger error counts as a clock jump.
  private static let largestError = 0.05

  /// The longest silence, in seconds, that is inserted before a block.
  ///
  /// A block that would need more silence has an invalid time and is ignored.
  private static let longestSilence: Int64 = 600
  /// The number of samples that the resampler outputs before time zero.
  ///
  /// They are discarded, so that the resampler's start-up does not affect the take.
  private static let leadIn: Int64 = 256

  private var resampler: Resampler
  private let rate: Double
  private let channelCount: Int
  private let originNanoseconds: Int64
  private var drift: DriftMeter
  /// The current deviation of the resampler's rate from the nominal rate, in parts per million.
  ///
  /// The deviation is the clock drift minus the correction of the position error.
  private var pace = 0.0
  /// The number of samples fed to the resampler, including silence.
  private var inputCount: Int64 = 0
  /// The number of output samples so far.
  ///
  /// Negative during the lead-in.
  private(set) var outputCount = -leadIn
  private var hasHeard = false
  /// The reason for a discontinuity before the next block, or nil if that block continues the
  /// previous one.
  ///
  /// After a discontinuity, the block's position follows from its timestamp alone.
  private var interruption: RecordedAudioGap.Cause?
  private(set) var gaps: [RecordedAudioGap] = []
  /// The index of the first output sample after the last gap.
  private var lastGapEnd = Int64.min / 2
  /// The time from the take's first frame to the first audio, in nanoseconds.
  private(set) var startOffset: Int64?
  /// The greatest position error of any audio block, in seconds.
  private(set) var worstError = 0.0

  /// Creates an aligner for audio of a nominal sample rate.
  ///
  /// `origin` is the capture-clock time of the take's first frame, in nanoseconds.
  ///
  /// - Throws: `CallFailure` for an unsupported format, or if memory is unavailable.
  init(rate: Int, channelCount: Int, originNanoseconds origin: Int64) throws(CallFailure) {
    let resampler = try Resampler(
      steeredAt: Int32(clamping: rate), channelCount: channelCount)
    self.rate = Double(rate)
    self.channelCount = channelCount
    originNanoseconds = origin
    drift = DriftMeter(rate: Double(rate))
    self.resampler = resampler
  }

  /// The sound card's rate error relative to the capture clock, in parts per million.
  ///
  /// Nil while unknown.
  var driftPPM: Double? { drift.partsPerMillion }

  /// Converts a time, in seconds after the take's first frame, to a position in the resampler's
  /// input, in samples.
  private func inputPosition(at time: Double) -> Double {
    let speed = 1 + (driftPPM ?? 0) / 1_000_000
    return resampler.nextPosition + (time * rate - Double(outputCount)) * speed
  }

  /// The index of the output sample that the next input sample will become.
  private var outputPosition: Int64 {
    let ahead = (Double(inputCount) - resampler.nextPosition) / (1 + pace / 1_000_000)
    return outputCount + Int64(saturating: ahead.rounded())
  }

  /// Aligns a block and returns the output samples available so far.
  ///
  /// - Throws: `CallFailure` if the resampler fails.
  mutating func align(_ piece: AudioTap.Piece) throws(CallFailure) -> [[Float]] {
    var time = Double(piece.nanoseconds &- originNanoseconds) / 1_000_000_000
    let expected = inputPosition(at: time)
    var cause = piece.interruption.map(RecordedAudioGap.Cause.init) ?? interruption
    if cause == nil, hasHeard, abs(expected - Double(inputCount)) > Self.largestError * rate {
      cause = .clockJump
    }
    guard cause != nil || !hasHeard else { return try follow(piece.channels, at: time) }
    let silence = Int64(saturating: expected.rounded()) &- inputCount
    guard silence > -Int64(piece.sampleCount), silence < Self.longestSilence * Int64(rate) else {
      // The whole block is unusable: it lies before the take or inside silence that was already
      // inserted, or its time is invalid.
      interruption = cause
      return emptyOutput
    }
    drift.interrupt()
    let skipped = max(0, -Int(silence))
    time += Double(skipped) / rate
    let start = outputPosition
    var output = try convertSilence(max(0, silence))
    if !hasHeard {
      hasHeard = true
      (gaps, lastGapEnd) = ([], Int64.min / 2)
      startOffset = max(0, nanoseconds(ofSample: outputPosition))
    } else if let cause {
      note(from: start, to: outputPosition, cause)
    }
    interruption = nil
    append(
      try follow(piece.channels.map { Array($0.dropFirst(skipped)) }, at: time), to: &output)
    return output
  }

  /// Inserts silence up to the output sample `end`, because no audio has arrived for this time.
  ///
  /// `isLast` is true at the end of a file.
  ///
  /// - Throws: `CallFailure` if the resampler fails.
  mutating func fill(
    before end: Int64, _ cause: RecordedAudioGap.Cause, isLast: Bool = false
  ) throws(CallFailure) -> [[Float]] {
    let start = hasHeard ? outputPosition : 0
    if hasHeard { interruption = cause }
    var output = emptyOutput
    // The resampler holds back its last samples, so one conversion may output fewer samples than
    // requested.
    while outputCount < end { append(try convertSilence(end - outputCount), to: &output) }
    // Silence before the first audio is reported as the start offset. It is reported as a gap only
    // if the whole file has no audio.
    if hasHeard || isLast { note(from: start, to: outputPosition, cause) }
    return output
  }

  /// Converts a block that directly follows the previous input, and updates the rate correction.
  private mutating func follow(
    _ channels: [[Float]], at time: Double
  ) throws(CallFailure) -> [[Float]] {
    drift.observe(seconds: time, sampleCount: channels.first?.count ?? 0)
    let error = inputPosition(at: time) - Double(inputCount)
    worstError = max(worstError, abs(error) / rate)
    let correction = error / rate / Self.correctionTime * 1_000_000
    pace =
      (driftPPM ?? 0)
      - max(-Self.fastestCorrection, min(Self.fastestCorrection, correction))
    try resampler.steer(partsPerMillion: pace)
    return try convert(channels)
  }

  private mutating func convert(_ channels: [[Float]]) throws(CallFailure) -> [[Float]] {
    let output = try resampler.convert(channels)
    inputCount += Int64(channels.first?.count ?? 0)
    let early = max(0, -outputCount)
    outputCount += Int64(output.first?.count ?? 0)
    return early > 0 ? output.map { Array($0.dropFirst(Int(early))) } : output
  }

  private mutating func convertSilence(_ count: Int64) throws(CallFailure) -> [[Float]] {
    var output = emptyOutput
    var rest = count
    while rest > 0 {
      let block = Int(min(rest, 1 << 16))
      append(
        try convert(Array(repeating: Array(repeating: 0, count: block), count: channelCount)),
        to: &output)
      rest -= Int64(block)
    }
    return output
  }

  private var emptyOutput: [[Float]] { Array(repeating: [], count: channelCount) }

  private func append(_ more: [[Float]], to output: inout [[Float]]) {
    for channel in 0..<channelCount { output[channel] += more[channel] }
  }

  /// Records a gap: silence from the output sample `start` up to `end`.
  private mutating func note(from start: Int64, to end: Int64, _ cause: RecordedAudioGap.Cause) {
    guard end > start else { return }
    if let last = gaps.last, lastGapEnd >= start - 1 {
      // Adjacent gaps are merged and keep the cause of the first one. The cause `.late` only says
      // that no audio arrived, so a later and more specific cause replaces it.
      gaps[gaps.count - 1].sampleCount = max(
        last.sampleCount, last.sampleCount + end - lastGapEnd)
      if last.cause == .late { gaps[gaps.count - 1].cause = cause }
    } else {
      gaps.append(
        RecordedAudioGap(
          time: MediaTime(nanoseconds: nanoseconds(ofSample: start)), sampleCount: end - start,
          cause: cause))
    }
    lastGapEnd = end
  }

  /// The time of an output sample in nanoseconds after the take's first frame, rounded.
  private func nanoseconds(ofSample sample: Int64) -> Int64 {
    Int64(saturating: (Double(sample) / rate * 1_000_000_000).rounded())
  }
}

/// Measures clock drift by linear regression (least squares) over the audio blocks of a take.
///
/// The exact length of a gap is unknown, so the blocks before and after a gap do not lie on one
/// line. Each series of blocks between two gaps therefore gets its own line. All lines share one
/// slope, which is the drift, but differ in offset.
struct DriftMeter {
  /// The shortest time span in seconds from which a drift is computed.
  ///
  /// Over a shorter span, timestamp jitter exceeds the drift.
  private static let shortestSpan = 4.0
  /// The greatest plausible clock drift in parts per million.
  private static let largestDrift = 5_000.0

  private let rate: Double
  private var (count, meanTime, meanLead) = (0.0, 0.0, 0.0)
  private var (startTime, samples, span) = (0.0, Int64(0), 0.0)
  /// Two sums over all regression lines, from which the slope is computed: the sum of squared
  /// times, and the sum of times multiplied by the sample lead.
  ///
  /// The sample lead is the number of samples received beyond those expected at the nominal rate.
  private var (squares, products) = (0.0, 0.0)
  /// The total time span of the regression lines before the current one, in seconds.
  private var earlierSpan = 0.0

  init(rate: Double) { self.rate = rate }

  /// The sound card's rate error relative to the nominal rate, in parts per million.
  ///
  /// Nil if the span is too short.
  var partsPerMillion: Double? {
    guard earlierSpan + span >= Self.shortestSpan, squares > 0 else { return nil }
    let drift = products / squares / rate * 1_000_000
    return max(-Self.largestDrift, min(Self.largestDrift, drift))
  }

  /// Starts a new regression line after a gap.
  mutating func interrupt() {
    earlierSpan += span
    (count, meanTime, meanLead, samples, span) = (0, 0, 0, 0, 0)
  }

  /// Adds an audio block to the current regression line.
  mutating func observe(seconds: Double, sampleCount: Int) {
    if count == 0 { startTime = seconds }
    span = seconds - startTime
    let lead = Double(samples) - span * rate
    samples += Int64(sampleCount)
    count += 1
    let (time, before) = (span - meanTime, lead - meanLead)
    meanTime += time / count
    meanLead += before / count
    squares += time * (span - meanTime)
    products += time * (lead - meanLead)
  }
}
