// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore

/// Builds the time map of an export from those of its sources, frame by frame.
struct TimeMapBuilder {
  /// A part of an export with one mapping.
  struct Passage: Hashable, Sendable {
    /// The number of the run, in which the source goes on without a cut.
    let run: Int
    /// Seconds of the source per second of the output, below zero for reverse playback; nil where it
    /// varies.
    let speed: Rational?

    init(run: Int, speed: Rational? = nil) { (self.run, self.speed) = (run, speed) }

    /// Makes the passage of a mapping in a run.
    init(run: Int, _ mapping: PlaybackMapping) {
      self.run = run
      guard mapping.motion == .constant, let speed = try? mapping.meanSpeed() else {
        self.speed = nil
        return
      }
      self.speed = mapping.isReversed ? -speed.fraction : speed.fraction
    }
  }

  typealias SourceFrame = ConstantRatePlan.Frame

  /// Several output frames with one content.
  struct Run: Hashable, Sendable {
    let shown: Shown
    let count: Int64
  }

  /// The content of an output frame.
  enum Shown: Hashable, Sendable {
    case frame(SourceFrame)
    /// A mixture of frames; the weights need not add up to 1.
    case mixed([Part])
    /// An image between two frames, at a position from 0 to 1.
    case between(SourceFrame, SourceFrame, share: Double, content: TimeMap.Content)
    /// A gap.
    case nothing
  }

  /// A frame of a mixture.
  struct Part: Hashable, Sendable {
    let frame: SourceFrame
    let weight: Double
  }

  /// The map of the frames so far.
  private(set) var map = TimeMap()
  private let sources: [TimeMap]
  /// Whether capture times between those of frames occur, which need finer ticks.
  private let isFine: Bool
  private var last: Shown?
  private var current: Origin?

  /// The passage and the segment of a source to which the current segment belongs.
  private struct Origin {
    let passage: Int
    let run: Int
    /// Nil for frames of unknown origin.
    let source: Int?
    /// The index of the segment in the map of the source; -1 for frames of unknown origin.
    let segment: Int
    /// The frames of that segment.
    let frames: Range<Int>
    /// The number of ticks of the output per tick of the source.
    let scale: Int32
    /// Whether the recording of the segment is known.
    let isKnown: Bool

    /// Whether the next frame belongs to the segment; nil stands for a frame of unknown origin.
    func goesOn(in passage: Int, with frame: SourceFrame?) -> Bool {
      guard self.passage == passage, source == frame?.source else { return false }
      return frame.map { frames.contains($0.index) } ?? true
    }
  }

  /// Prepares for a number of output frames.
  init(_ sources: [TimeMap], isFine: Bool, frameCount: Int) {
    self.sources = sources
    self.isFine = isFine
    map.reserveCapacity(frameCount)
  }

  /// Appends an output frame.
  ///
  /// `number` is that of the passage, because two passages may be equal.
  mutating func append(_ shown: Shown, at passage: Passage, number: Int) {
    if case .frame(let frame) = shown, continues(with: frame, in: number) {
      last = shown
      return
    }
    let main = Self.mainFrame(of: shown)
    let known = main.flatMap { main in
      sources[main.source].frames.indices.contains(main.index) ? main : nil
    }
    if current?.goesOn(in: number, with: known) != true { begin(passage, number, known) }
    if let known, let current, map.segments.last?.recording != nil {
      var next = frame(shown, known, current.scale)
      if let before = map.frames.last, before.index == next.index, before.ticks == next.ticks,
        last == shown || next.content == .genuine && before.content.isCaptured,
        map.recording(ofFrame: map.frames.count - 1)
          == map.segments.last?.recording.map({ map.recordings[$0] })
      {
        next.content = .repeated
      }
      map.append(next)
    } else {
      map.append(TimeMap.Frame(index: 0, ticks: 0))
    }
    last = shown
  }

  /// Appends a frame that continues the current segment with another capture, as nearly every frame does.
  ///
  /// Returns false for any other frame, and appends nothing.
  private mutating func continues(with frame: SourceFrame, in passage: Int) -> Bool {
    guard let current, current.isKnown, current.goesOn(in: passage, with: frame),
      let before = map.frames.last
    else { return false }
    let next = captured(frame, current.scale)
    guard before.index != next.index || before.ticks != next.ticks else { return false }
    map.append(next)
    return true
  }

  /// Begins a segment.
  private mutating func begin(_ passage: Passage, _ number: Int, _ frame: SourceFrame?) {
    let segment = frame.map { sources[$0.source].segmentIndex(ofFrame: $0.index) }
    let source = frame.map { sources[$0.source] }
    let part = segment.flatMap { source?.segments[$0] }
    let scale = part?.timeScale.flatMap { own in passage.speed.map { $0 * own } }
    let recording = part?.recording.flatMap { source?.recordings[$0] }.map(refined)
    map.beginSegment(
      recording: recording.map { map.index(of: $0) }, timeScale: scale,
      isContinued: isContinued(to: passage.run, frame?.source, segment))
    current = Origin(
      passage: number, run: passage.run, source: frame?.source, segment: segment ?? -1,
      frames: part?.frames ?? 0..<0,
      scale: part?.recording.flatMap { source?.recordings[$0] }.map(factor) ?? 1,
      isKnown: recording != nil)
  }

  /// Whether the source plays on from the last frame without a cut, which may be in the source itself.
  private func isContinued(to run: Int, _ source: Int?, _ segment: Int?) -> Bool {
    guard let current, current.run == run, let source, let segment, current.source == source else {
      return false
    }
    let all = sources[source].segments
    let (first, last) = (min(current.segment, segment), max(current.segment, segment))
    return first >= 0 && all[first..<last + 1].dropFirst().allSatisfy(\.isContinued)
  }

  /// The recording with the ticks of the output.
  private func refined(_ recording: TimeMap.Recording) -> TimeMap.Recording {
    TimeMap.Recording(
      identity: recording.identity, basis: recording.basis,
      timescale: recording.timescale * factor(recording), knowsLosses: recording.knowsLosses)
  }

  /// The number of ticks of the output per tick of a source.
  private func factor(_ recording: TimeMap.Recording) -> Int32 {
    isFine ? max(1, 1_000_000_000 / recording.timescale) : 1
  }

  private static func mainFrame(of shown: Shown) -> SourceFrame? {
    switch shown {
    case .frame(let frame): frame
    case .mixed(let parts): parts.max { $0.weight < $1.weight }?.frame
    case .between(let frame, _, _, _): frame
    case .nothing: nil
    }
  }

  /// The origin of a source frame, with the ticks of the output.
  private func captured(_ source: SourceFrame, _ scale: Int32) -> TimeMap.Frame {
    var frame = sources[source.source].frames[source.index]
    frame.ticks = frame.ticks &* Int64(scale)
    // A repeated frame counts as genuine where the one before it is left out.
    if frame.content.isCaptured { frame.content = .genuine }
    return frame
  }

  private func frame(
    _ shown: Shown, _ main: SourceFrame, _ scale: Int32
  ) -> TimeMap.Frame {
    var frame = captured(main, scale)
    switch shown {
    case .nothing, .frame: break
    case .mixed(let parts):
      frame.content = .blended
      let total = parts.reduce(0) { $0 + $1.weight }
      let mean = parts.reduce(0.0) { sum, part in
        sum + (ticks(of: part.frame, relativeTo: main, scale) ?? 0) * part.weight
      }
      if total > 0 { frame.ticks &+= Int64(exactly: (mean / total).rounded()) ?? 0 }
    case .between(_, let next, let share, let content):
      frame.content = content
      let distance = ticks(of: next, relativeTo: main, scale) ?? 0
      frame.ticks &+= Int64(exactly: (distance * share).rounded()) ?? 0
    }
    return frame
  }

  /// The distance of the capture times of two frames in ticks of the output; nil for frames of
  /// different recordings.
  private func ticks(
    of frame: SourceFrame, relativeTo main: SourceFrame, _ scale: Int32
  ) -> Double? {
    guard sources[frame.source].frames.indices.contains(frame.index),
      sources[frame.source].recording(ofFrame: frame.index)
        == sources[main.source].recording(ofFrame: main.index)
    else { return nil }
    let distance =
      sources[frame.source].frames[frame.index].ticks
      &- sources[main.source].frames[main.index].ticks
    return Double(distance) * Double(scale)
  }
}
