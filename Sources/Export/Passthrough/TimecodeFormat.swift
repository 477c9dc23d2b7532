// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankMovieFormat

/// The timecodes of a track (`tmcd`): each sample contains the number of its first frame, and readers count
/// on at the rate of the sample description (QuickTime File Format, "Timecode media").
///
/// In a copy, the count must continue at the speed of the video. At speed 1, one sample is enough. At other
/// speeds, each frame of the source has a sample of its own, which is repeated so that readers never count on.
struct TimecodeFormat {
  /// The duration of a frame in seconds.
  let frameDuration: Rational

  /// Reads a sample description; nil for another kind of track.
  init?(_ description: SampleDescription) {
    guard description.type == BoxType.timecode, description.bytes.count > 32 else { return nil }
    // The entry's header, its data reference, a reserved field and the flags precede these fields.
    let timescale = Int128(Box.number(description.bytes[24..<28]))
    let duration = Int128(Box.number(description.bytes[28..<32]))
    guard timescale > 0, duration > 0 else { return nil }
    frameDuration = Rational(duration, over: timescale)
  }

  /// Appends the timecodes of a part of a source sample.
  ///
  /// - Parameters:
  ///   - output: The samples of the track so far.
  ///   - number: The number of the first frame of the sample.
  ///   - start: The start of the sample in source seconds.
  ///   - end: Its end.
  ///   - range: The mapping of the part.
  ///   - description: The index of the description in the output.
  /// - Returns: False if a frame is shorter than a tick, or if there are too many frames.
  /// - Throws: `MediaError` for times that are out of bounds.
  func append(
    to output: inout [FurtherTracks.Sample], number: UInt32, from start: Rational,
    to end: Rational, in range: MappedRange, description: Int
  ) throws -> Bool {
    let mapping = range.mapping
    guard frameDuration * Rational(Int64(range.timescale)) >= 1 else { return false }
    let part = Part(sample: start..<end, mapping, frameDuration)
    let frames = try part.frames()
    let isNormal = mapping.line.map { $0.source.duration == $0.target.duration } ?? false
    if isNormal, frames.count > 3 {
      // Readers count on from the first whole frame.
      let counted = frames.lowerBound + 2
      for frame in frames.lowerBound..<counted {
        try append(to: &output, number, frame, part.range(of: frame), range, description)
      }
      let rest = part.range(of: counted).lowerBound..<max(end, part.range(of: counted).lowerBound)
      try append(to: &output, number, counted, rest, range, description, countsOn: true)
      return output.count <= FurtherTracks.maximumSampleCount
    }
    guard frames.count <= FurtherTracks.maximumSampleCount else { return false }
    for offset in 0..<Int64(frames.count) {
      let frame = mapping.isReversed ? frames.upperBound - 1 - offset : frames.lowerBound + offset
      try append(to: &output, number, frame, part.range(of: frame), range, description)
      guard output.count <= FurtherTracks.maximumSampleCount else { return false }
    }
    return true
  }

  /// The frames of a sample that a mapping plays.
  private struct Part {
    let sample: Range<Rational>
    let frameDuration: Rational
    /// The times between which frames play.
    private let (start, end): (Rational, Rational)
    private let isHold: Bool
    /// The time by which stored times may differ from the exact boundaries of frames.
    private let tolerance: Rational

    init(sample: Range<Rational>, _ mapping: PlaybackMapping, _ frameDuration: Rational) {
      (self.sample, self.frameDuration) = (sample, frameDuration)
      (start, end) = (mapping.sourceStart, mapping.sourceEnd)
      isHold = mapping.motion == .hold
      tolerance = min(Rational(1, over: 1_000), frameDuration / 4)
    }

    /// The numbers of the frames, with neighbors that do not play.
    func frames() throws -> Range<Int64> {
      func frame(_ time: Rational, _ rounding: TimeRounding) throws -> Int64 {
        let number = try ((time - sample.lowerBound) / frameDuration).rounded(rounding)
        return Int64(min(max(number, 0), 1 << 62))
      }
      // A hold of the instant before a frame shows the frame before that.
      let margin: Int64 = isHold ? 1 : 0
      let first = max(0, try frame(start, .towardNegativeInfinity) - margin)
      let last = try frame(min(end, sample.upperBound), .towardPositiveInfinity) + margin
      var frames = first..<max(first, last)
      // Stored times are rounded, so that the frame before the first one seems to play for an instant.
      if !isHold, frames.count > 1, isShort(boundary(frames.lowerBound + 1) - start) {
        frames = frames.lowerBound + 1..<frames.upperBound
      }
      if !isHold, frames.count > 1, isShort(end - boundary(frames.upperBound - 1)) {
        frames = frames.lowerBound..<frames.upperBound - 1
      }
      return frames
    }

    /// The time range of a frame in the source; a boundary that differs a little from a cut is at the cut.
    func range(of frame: Int64) -> Range<Rational> {
      let (lower, upper) = (snapped(boundary(frame)), snapped(boundary(frame + 1)))
      return min(lower, upper)..<upper
    }

    private func boundary(_ frame: Int64) -> Rational {
      min(sample.lowerBound + frameDuration * Rational(frame), sample.upperBound)
    }

    private func snapped(_ time: Rational) -> Rational {
      if isHold { return time }
      if isShort(time - start) { return start }
      return isShort(end - time) && time < sample.upperBound ? end : time
    }

    private func isShort(_ time: Rational) -> Bool { time > 0 && time < tolerance }
  }

  private func append(
    to output: inout [FurtherTracks.Sample], _ number: UInt32, _ frame: Int64,
    _ time: Range<Rational>, _ range: MappedRange, _ description: Int, countsOn: Bool = false
  ) throws {
    guard !time.isEmpty,
      let ticks = try range.ticks(from: time.lowerBound, to: time.upperBound), !ticks.isEmpty
    else { return }
    let shown = number &+ UInt32(truncatingIfNeeded: frame)
    let length = frameDuration * Rational(Int64(range.timescale))
    var (next, part) = (ticks.lowerBound, Int64(1))
    while next < ticks.upperBound, output.count <= FurtherTracks.maximumSampleCount {
      let stop = try (length * Rational(part)).rounded(.halfAwayFromZero)
      let whole = ticks.lowerBound + max(part, Int64(clamping: stop))
      let until = countsOn ? ticks.upperBound : min(whole, ticks.upperBound)
      try add(shown, next..<until, length, description, to: &output)
      next = until
      part += 1
    }
  }

  /// Appends a sample, or prolongs the last one if its count arrives at the number here.
  private func add(
    _ number: UInt32, _ ticks: Range<Int64>, _ length: Rational, _ description: Int,
    to output: inout [FurtherTracks.Sample]
  ) throws {
    if let last = output.last, last.description == description,
      last.ticks + last.duration == ticks.lowerBound, case .made(let bytes) = last.content
    {
      let count = Int64(number &- UInt32(Box.number(bytes[...])))
      let reached = try (length * Rational(count)).rounded(.halfAwayFromZero)
      if Int128(last.duration) == reached {
        output[output.count - 1].duration += ticks.upperBound - ticks.lowerBound
        return
      }
    }
    output.append(
      FurtherTracks.Sample(
        content: .made(withUnsafeBytes(of: number.bigEndian) { Array($0) }),
        ticks: ticks.lowerBound, duration: ticks.upperBound - ticks.lowerBound,
        description: description))
  }
}
