// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The exact code of a time map: a few bytes for frames at a steady rate, and two for each frame whose
/// capture time jitters.
///
/// Recordings and segments are listed. Four lists follow with a number for each frame: its content, and
/// the steps of its index, of its losses and of its capture time. The step of the capture time is
/// relative to a typical period, so that a lost frame does not matter.
extension TimeMap {
  private static let version: UInt64 = 1

  /// The bytes of the code.
  package var code: [UInt8] {
    var writer = NumberWriter()
    writer.append(Self.version)
    writer.append(UInt64(recordings.count))
    for recording in recordings {
      writer.append(recording.identity)
      writer.append(UInt64(recording.basis.rawValue) << 1 | (recording.knowsLosses ? 1 : 0))
      writer.append(UInt64(recording.timescale))
    }
    let periods = recordings.indices.map(typicalPeriod)
    for period in periods { writer.append(period) }
    writer.append(UInt64(segments.count))
    for segment in segments {
      writer.append(UInt64(segment.frames.count))
      writer.append(UInt64((segment.recording ?? -1) + 1))
      let scale = segment.timeScale
      writer.append(UInt64((scale == nil ? 0 : 1) | (segment.isContinued ? 2 : 0)))
      if let scale {
        // A segment has only scales of 64 bits.
        writer.append(Int64(clamping: scale.numerator))
        writer.append(Int64(clamping: scale.denominator))
      }
    }
    writer.append(list: frames.map { Self.number(of: $0.content) })
    var (steps, losses, ticks): ([Int64], [Int64], [Int64]) = ([], [], [])
    steps.reserveCapacity(frames.count)
    losses.reserveCapacity(frames.count)
    ticks.reserveCapacity(frames.count)
    for segment in segments {
      let period = segment.recording.map { periods[$0] } ?? 0
      var last = Frame(index: 0, ticks: 0)
      if segment.isContinued { last = frames[segment.frames.lowerBound - 1] }
      for frame in frames[segment.frames] {
        let (step, loss) = (frame.index &- last.index, frame.lost &- last.lost)
        steps.append(step)
        losses.append(loss)
        ticks.append(frame.ticks &- last.ticks &- (step &+ loss) &* period)
        last = frame
      }
    }
    for list in [steps, losses, ticks] { writer.append(list: list) }
    return writer.bytes
  }

  /// Reads a code for a movie with this number of frames.
  ///
  /// The work is bounded by that number and by the number of bytes. Nil for bytes that ``code`` did not
  /// write, and for another number of frames.
  package init?(code: [UInt8], frameCount: Int) {
    var reader = NumberReader(code[...])
    guard reader.next() == Self.version,
      let recordingCount = reader.nextCount(upTo: reader.remaining)
    else { return nil }
    self.init()
    var known: Set<Recording> = []
    for _ in 0..<recordingCount {
      guard let identity = reader.next(), let form = reader.next(),
        let basis = Recording.Basis(rawValue: UInt8(truncatingIfNeeded: form >> 1)),
        form < UInt64(Recording.Basis.allCases.count) << 1,
        let timescale = reader.next().flatMap({ Int32(exactly: $0) }), timescale > 0
      else { return nil }
      let recording = Recording(
        identity: identity, basis: basis, timescale: timescale, knowsLosses: form & 1 == 1)
      guard known.insert(recording).inserted else { return nil }
      add(recording)
    }
    var periods: [Int64] = []
    for _ in 0..<recordingCount {
      guard let period = reader.nextSigned() else { return nil }
      periods.append(period)
    }
    guard let parts = Self.parts(&reader, recordingCount: recordingCount, frameCount: frameCount),
      let contents = reader.nextList(count: frameCount),
      let steps = reader.nextList(count: frameCount),
      let losses = reader.nextList(count: frameCount),
      let ticks = reader.nextList(count: frameCount), reader.isAtEnd
    else { return nil }
    reserveCapacity(frameCount)
    var position = 0
    for part in parts {
      beginSegment(
        recording: part.recording, timeScale: part.timeScale, isContinued: part.isContinued)
      guard segments.last?.isContinued == part.isContinued else { return nil }
      let period = part.recording.map { periods[$0] } ?? 0
      var last = part.isContinued ? frames[position - 1] : Frame(index: 0, ticks: 0)
      for _ in 0..<part.count {
        guard let content = Self.content(contents[position]) else { return nil }
        let step = steps[position] &+ losses[position]
        last = Frame(
          index: last.index &+ steps[position], lost: last.lost &+ losses[position],
          ticks: last.ticks &+ ticks[position] &+ step &* period, content: content)
        append(last)
        position += 1
      }
    }
  }

  private struct Part {
    let count: Int
    let recording: Int?
    let timeScale: Rational?
    let isContinued: Bool
  }

  private static func parts(
    _ reader: inout NumberReader, recordingCount: Int, frameCount: Int
  ) -> [Part]? {
    guard let count = reader.nextCount(upTo: frameCount), count <= reader.remaining else {
      return nil
    }
    var parts: [Part] = []
    var total = 0
    for _ in 0..<count {
      guard let frames = reader.nextCount(upTo: frameCount - total), frames > 0,
        let number = reader.nextCount(upTo: recordingCount), let form = reader.next(), form < 4
      else { return nil }
      var scale: Rational?
      if form & 1 == 1 {
        guard let numerator = reader.nextSigned(), let denominator = reader.nextSigned(),
          denominator > 0
        else { return nil }
        scale = Rational(Int128(numerator), over: Int128(denominator))
      }
      total += frames
      parts.append(
        Part(
          count: frames, recording: number > 0 ? number - 1 : nil, timeScale: scale,
          isContinued: form & 2 == 2))
    }
    return total == frameCount ? parts : nil
  }

  /// The distance of two successive frames of a recording in ticks: the median over some of its frames.
  ///
  /// The code gives the same times back with any period, and is shortest with that of most frames.
  private func typicalPeriod(ofRecording number: Int) -> Int64 {
    let stride = max(1, frames.count / 1_024)
    var periods: [Int64] = []
    for segment in segments where segment.recording == number {
      for index in Swift.stride(
        from: segment.frames.lowerBound + 1, to: segment.frames.upperBound, by: stride)
      {
        let slots =
          (frames[index].index &- frames[index - 1].index)
          &+ (frames[index].lost &- frames[index - 1].lost)
        let distance = frames[index].ticks &- frames[index - 1].ticks
        guard slots != 0, slots != -1 || distance != .min else { continue }
        periods.append(distance / slots)
      }
    }
    periods.sort()
    return periods.isEmpty ? 0 : periods[periods.count / 2]
  }

  private static func number(of content: Content) -> Int64 {
    switch content {
    case .genuine: 0
    case .repeated: 1
    case .blended: 2
    case .synthesized(let tenths): 3 + Int64(min(9, tenths))
    }
  }

  private static func content(_ number: Int64) -> Content? {
    switch number {
    case 0: .genuine
    case 1: .repeated
    case 2: .blended
    case 3...12: .synthesized(confidenceTenths: UInt8(number - 3))
    default: nil
    }
  }
}
