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
  /// - Throws: `MediaError` for times that are out of bounds.
  func append(
    to output: inout [FurtherTracks.Sample], number: UInt32, from start: Rational,
    to end: Rational, in range: MappedRange, description: Int
  ) throws {
    let mapping = range.mapping
    func frame(_ time: Rational, _ rounding: TimeRounding) throws -> Int64 {
      Int64(clamping: try ((time - start) / frameDuration).rounded(rounding))
    }
    func time(_ frame: Int64) -> Rational { min(start + frameDuration * Rational(frame), end) }
    // A hold of the instant before a frame shows the frame before that.
    let first = max(0, try frame(mapping.sourceStart, .towardNegativeInfinity) - 1)
    let last = try frame(min(mapping.sourceEnd, end), .towardPositiveInfinity) + 1
    let isNormal = mapping.line.map { $0.source.duration == $0.target.duration } ?? false
    var frames = Array(stride(from: first, to: max(first, last), by: 1))
    if isNormal, frames.count > 3 {
      // Readers count on from the first whole frame.
      let counted = frames[2]
      frames = Array(frames[..<2])
      for frame in frames {
        try append(to: &output, number, frame, time(frame), time(frame + 1), range, description)
      }
      try append(
        to: &output, number, counted, time(counted), end, range, description, countsOn: true)
      return
    }
    for frame in mapping.isReversed ? frames.reversed() : frames {
      try append(to: &output, number, frame, time(frame), time(frame + 1), range, description)
    }
  }

  private func append(
    to output: inout [FurtherTracks.Sample], _ number: UInt32, _ frame: Int64, _ start: Rational,
    _ end: Rational, _ range: MappedRange, _ description: Int, countsOn: Bool = false
  ) throws {
    guard start < end, let ticks = try range.ticks(from: start, to: end), !ticks.isEmpty else {
      return
    }
    let shown = number &+ UInt32(truncatingIfNeeded: frame)
    let length = frameDuration * Rational(Int64(range.timescale))
    var next = ticks.lowerBound
    for part in 1... as PartialRangeFrom<Int64> where next < ticks.upperBound {
      let stop = try (length * Rational(part)).rounded(.halfAwayFromZero)
      let whole = ticks.lowerBound + max(part, Int64(clamping: stop))
      let until = countsOn ? ticks.upperBound : min(whole, ticks.upperBound)
      try add(shown, next..<until, length, description, to: &output)
      next = until
      if next >= ticks.upperBound { break }
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
