// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore

/// Puts blocks of sound where they belong on the time of a take, whatever the card's clock does.
///
/// The blocks become one unbroken input, with silence for what is missing, which a resampler turns
/// into the take's samples. A crystal is never quite right: what the card's samples are faster or
/// slower than the capture clock, the resampler takes out, and where they are found a little off
/// their place it leads them back, so slowly that nobody hears it. So the place of a sample is
/// known at every moment, and no error adds up however long the take is.
struct AudioAligner: ~Copyable {
  /// In how many seconds an error shrinks to a third.
  private static let correctionTime = 4.0
  /// The most that the pace differs from the card's for the sake of an error, in millionths: a
  /// hundredth of a semitone.
  private static let fastestCorrection = 500.0
  /// What is farther off than this, in seconds, was not brought there by any crystal.
  private static let largestError = 0.05

  /// In seconds; sound that is farther ahead is not of this take.
  private static let longestSilence: Int64 = 600
  /// How many samples before the take's zero the resampler begins, so that it has no beginning
  /// there.
  private static let leadIn: Int64 = 256

  private var resampler: Resampler
  private let rate: Double
  private let channelCount: Int
  private let originNanoseconds: Int64
  private var drift: DriftMeter
  /// What the resampler is steered by, in millionths.
  private var pace = 0.0
  /// Samples that went into the resampler, silence included.
  private var inputCount: Int64 = 0
  /// Samples of the take so far.
  private(set) var outputCount = -leadIn
  private var hasHeard = false
  /// Whether the next block is to be placed by its time alone, and why; nil where it follows.
  private var interruption: RecordedAudioGap.Cause?
  private(set) var gaps: [RecordedAudioGap] = []
  /// The sample of the take behind the last of them.
  private var lastGapEnd = Int64.min / 2
  /// How much later than the take's zero the sound begins, in nanoseconds.
  private(set) var startOffset: Int64?
  /// The farthest that a block was found from its place, in seconds.
  private(set) var worstError = 0.0

  /// Prepares for sound of so many samples a second by the card's label, for a take whose zero is
  /// at `origin` of the capture clock.
  ///
  /// - Throws: `ResamplerError` for what it does not take, or without memory.
  init(rate: Int, channelCount: Int, originNanoseconds origin: Int64) throws(ResamplerError) {
    let resampler = try Resampler(
      steeredAt: Int32(clamping: rate), channelCount: channelCount)
    self.rate = Double(rate)
    self.channelCount = channelCount
    originNanoseconds = origin
    drift = DriftMeter(rate: Double(rate))
    self.resampler = resampler
  }

  /// How much faster than the capture clock the card is, in millionths; nil while that is unknown.
  var driftPPM: Double? { drift.partsPerMillion }

  /// Where in the input a sample of this time after zero, in seconds, belongs.
  private func inputPosition(at time: Double) -> Double {
    let speed = 1 + (driftPPM ?? 0) / 1_000_000
    return resampler.nextPosition + (time * rate - Double(outputCount)) * speed
  }

  /// Which of the take's samples the next input sample becomes.
  private var outputPosition: Int64 {
    let ahead = (Double(inputCount) - resampler.nextPosition) / (1 + pace / 1_000_000)
    return outputCount + Int64(saturating: ahead.rounded())
  }

  /// Takes a block, and gives the samples of the take that can be told now.
  ///
  /// - Throws: `ResamplerError` when FFmpeg refuses.
  mutating func place(_ piece: AudioTap.Piece) throws(ResamplerError) -> [[Float]] {
    var time = Double(piece.nanoseconds &- originNanoseconds) / 1_000_000_000
    let expected = inputPosition(at: time)
    var cause = piece.interruption.map(RecordedAudioGap.Cause.init) ?? interruption
    if cause == nil, hasHeard, abs(expected - Double(inputCount)) > Self.largestError * rate {
      cause = .clockJump
    }
    guard cause != nil || !hasHeard else { return try follow(piece.channels, at: time) }
    let silence = Int64(saturating: expected.rounded()) &- inputCount
    guard silence > -Int64(piece.sampleCount), silence < Self.longestSilence * Int64(rate) else {
      // All of it lies before the take, or where silence already stands, or is no time at all.
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
      startOffset = max(0, nanoseconds(ofSample: outputPosition))
    } else if let cause {
      note(from: start, to: outputPosition, cause)
    }
    interruption = nil
    append(
      try follow(piece.channels.map { Array($0.dropFirst(skipped)) }, at: time), to: &output)
    return output
  }

  /// Puts silence up to a sample of the take, where no sound has come; `isLast` where the take ends
  /// there.
  ///
  /// - Throws: `ResamplerError` when FFmpeg refuses.
  mutating func fill(
    before end: Int64, _ cause: RecordedAudioGap.Cause, isLast: Bool = false
  ) throws(ResamplerError) -> [[Float]] {
    let start = hasHeard ? outputPosition : 0
    if hasHeard { interruption = cause }
    var output = emptyOutput
    // The resampler holds some back, and is not quite of the same pace.
    while outputCount < end { append(try convertSilence(end - outputCount), to: &output) }
    // Until something is heard, the sound has not begun.
    if hasHeard || isLast { note(from: start, to: isLast ? end : outputPosition, cause) }
    return output
  }

  /// Ends the take at one of its samples: silence behind that is none of its gaps, and sound that
  /// begins behind it was not heard.
  mutating func end(at end: Int64) {
    if let begin = startOffset, begin >= nanoseconds(ofSample: end) {
      (startOffset, gaps) = (nil, [])
      return note(from: 0, to: end, .late)
    }
    guard let last = gaps.last, lastGapEnd > end else { return }
    let left = last.sampleCount - (lastGapEnd - end)
    if left > 0 { gaps[gaps.count - 1].sampleCount = left } else { gaps.removeLast() }
    lastGapEnd = end
  }

  /// Takes samples that follow those before, and steers by where they belong.
  private mutating func follow(
    _ channels: [[Float]], at time: Double
  ) throws(ResamplerError) -> [[Float]] {
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

  private mutating func convert(_ channels: [[Float]]) throws(ResamplerError) -> [[Float]] {
    let output = try resampler.convert(channels)
    inputCount += Int64(channels.first?.count ?? 0)
    let early = max(0, -outputCount)
    outputCount += Int64(output.first?.count ?? 0)
    return early > 0 ? output.map { Array($0.dropFirst(Int(early))) } : output
  }

  private mutating func convertSilence(_ count: Int64) throws(ResamplerError) -> [[Float]] {
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

  /// Names silence from one of the take's samples to another.
  private mutating func note(from start: Int64, to end: Int64, _ cause: RecordedAudioGap.Cause) {
    guard end > start else { return }
    if let last = gaps.last, lastGapEnd >= start - 1 {
      // It goes on. That nothing came says less than why.
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

  /// When a sample of the take is heard, in nanoseconds after its zero, to the nearest.
  private func nanoseconds(ofSample sample: Int64) -> Int64 {
    Int64(saturating: (Double(sample) / rate * 1_000_000_000).rounded())
  }
}

/// How fast a card's samples come, by a straight line of least squares through all of a take's
/// blocks; what is missing between two of them breaks the line, but not its direction.
struct DriftMeter {
  /// The least sum of what blocks span, in seconds, that says more of the card than of its stamps.
  private static let shortestSpan = 4.0
  /// In millionths; a card that is farther from its label than this has another rate.
  private static let largestDrift = 5_000.0

  private let rate: Double
  private var (count, meanTime, meanLead) = (0.0, 0.0, 0.0)
  private var (startTime, samples, span) = (0.0, Int64(0), 0.0)
  /// Sums over all lines: of the squares of times, and of times by how far the samples lead.
  private var (squares, products) = (0.0, 0.0)
  /// What the lines before this one span.
  private var earlierSpan = 0.0

  init(rate: Double) { self.rate = rate }

  /// How much faster than the label, in millionths; nil while there is not enough to tell.
  var partsPerMillion: Double? {
    guard earlierSpan + span >= Self.shortestSpan, squares > 0 else { return nil }
    let drift = products / squares / rate * 1_000_000
    return max(-Self.largestDrift, min(Self.largestDrift, drift))
  }

  /// Begins a new line: nobody knows how many samples passed before the next block.
  mutating func interrupt() {
    earlierSpan += span
    (count, meanTime, meanLead, samples, span) = (0, 0, 0, 0, 0)
  }

  /// Takes a block of so many samples, which follows the one before.
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
