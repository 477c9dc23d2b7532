// SPDX-License-Identifier: Apache-2.0

/// The capture time and the origin of each frame of a movie.
///
/// A movie that was cut, slowed or rendered keeps with it when and in which recording each of its
/// frames was captured.
public struct TimeMap: Hashable, Sendable {
  /// A recording from which frames of the movie come.
  public struct Recording: Hashable, Sendable {
    /// The way in which the capture times of a recording are known.
    public enum Basis: UInt8, Hashable, Sendable, CaseIterable {
      /// From the driver of the camera.
      case driver
      /// From a capture rate that the original file states.
      case statedRate
      /// The times of the original file are taken for capture times.
      case fileTimes
    }

    /// A number that differs for each recording; it is computed from the frames of the recording.
    public let identity: UInt64
    /// The way in which the capture times are known.
    public let basis: Basis
    /// Units per second of the capture times, above zero.
    public let timescale: Int32
    /// Whether the missing frames of the recording are known.
    public let knowsLosses: Bool

    /// Makes a recording.
    ///
    /// - Precondition: The timescale is above zero.
    public init(identity: UInt64, basis: Basis, timescale: Int32, knowsLosses: Bool) {
      precondition(timescale > 0, "a timescale is above zero")
      (self.identity, self.basis) = (identity, basis)
      (self.timescale, self.knowsLosses) = (timescale, knowsLosses)
    }
  }

  /// The content of a frame.
  public enum Content: Hashable, Sendable {
    /// A captured frame.
    case genuine
    /// The same image as the frame before.
    case repeated
    /// A mixture of several frames.
    case blended
    /// A synthesized frame, with its confidence in tenths, from 0 to 9.
    case synthesized(confidenceTenths: UInt8)

    /// Whether the image is one that was captured.
    public var isCaptured: Bool { self == .genuine || self == .repeated }
  }

  /// The origin of one frame.
  public struct Frame: Hashable, Sendable {
    /// The index of the frame in its recording, from 0.
    ///
    /// For a blended frame it is that of its main part, and for a synthesized one that of the captured
    /// frame before it.
    public var index: Int64
    /// The number of frames of the recording that are missing before this frame, from its start on.
    public var lost: Int64
    /// The capture time in ticks of the recording.
    public var ticks: Int64
    /// The content.
    public var content: Content

    /// Makes the origin of a frame.
    public init(index: Int64, lost: Int64 = 0, ticks: Int64, content: Content = .genuine) {
      (self.index, self.lost, self.ticks, self.content) = (index, lost, ticks, content)
    }
  }

  /// Consecutive frames of one recording that play at one speed, or along one ramp.
  public struct Segment: Hashable, Sendable {
    /// The indices of the frames in the movie; never empty.
    public fileprivate(set) var frames: Range<Int>
    /// The index of the recording; nil for frames of unknown origin, such as a gap.
    public let recording: Int?
    /// Seconds of capture time per second of the movie; nil where it varies.
    ///
    /// Below zero, the recording plays backwards.
    public let timeScale: Rational?
    /// Whether the recording goes on here from the segment before, without a cut.
    public let isContinued: Bool
  }

  /// The recordings, each once.
  public private(set) var recordings: [Recording] = []
  /// The segments in order; together they have all frames.
  public private(set) var segments: [Segment] = []
  /// The frames in presentation order.
  ///
  /// Frames of unknown origin are all zeros.
  public private(set) var frames: [Frame] = []

  /// Makes a map without frames.
  public init() {}

  /// Prepares for a number of frames.
  public mutating func reserveCapacity(_ count: Int) { frames.reserveCapacity(count) }

  /// Returns the index of a recording, and adds the recording if it is new.
  public mutating func index(of recording: Recording) -> Int {
    if let known = recordings.firstIndex(of: recording) { return known }
    add(recording)
    return recordings.count - 1
  }

  /// Adds a recording that the map does not have.
  package mutating func add(_ recording: Recording) { recordings.append(recording) }

  /// Appends a segment without frames; ``append(_:)`` adds frames to it.
  ///
  /// A segment that stays empty is replaced by the next one. A segment is continued only if it has the
  /// recording of the one before, and a scale needs numbers of 64 bits.
  ///
  /// - Precondition: `recording` is the index of a recording, or nil.
  public mutating func beginSegment(recording: Int?, timeScale: Rational?, isContinued: Bool) {
    precondition(recording.map(recordings.indices.contains) ?? true, "the recording is known")
    if segments.last?.frames.isEmpty == true { segments.removeLast() }
    let isStorable =
      timeScale.map {
        $0.isValid && Int64(exactly: $0.numerator) != nil && Int64(exactly: $0.denominator) != nil
      } ?? false
    segments.append(
      Segment(
        frames: frames.count..<frames.count, recording: recording,
        timeScale: isStorable && recording != nil ? timeScale : nil,
        isContinued: isContinued && recording != nil && segments.last?.recording == recording))
  }

  /// Appends a frame to the last segment.
  ///
  /// - Precondition: A segment was begun.
  public mutating func append(_ frame: Frame) {
    precondition(!segments.isEmpty, "a frame is in a segment")
    let last = segments.count - 1
    frames.append(segments[last].recording == nil ? Frame(index: 0, ticks: 0) : frame)
    segments[last].frames = segments[last].frames.lowerBound..<frames.count
  }

  /// Appends frames to the last segment.
  ///
  /// - Precondition: A segment was begun.
  package mutating func append(contentsOf added: [Frame]) {
    precondition(!segments.isEmpty, "a frame is in a segment")
    let last = segments.count - 1
    if segments[last].recording == nil {
      frames += repeatElement(Frame(index: 0, ticks: 0), count: added.count)
    } else {
      frames += added
    }
    segments[last].frames = segments[last].frames.lowerBound..<frames.count
  }

  /// Returns the index of the segment of a frame.
  ///
  /// - Precondition: The map has the frame.
  public func segmentIndex(ofFrame index: Int) -> Int {
    var (low, high) = (0, segments.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if segments[middle].frames.lowerBound <= index { low = middle } else { high = middle }
    }
    return low
  }

  /// Returns the recording of a frame; nil for one of unknown origin.
  public func recording(ofFrame index: Int) -> Recording? {
    guard frames.indices.contains(index) else { return nil }
    return segments[segmentIndex(ofFrame: index)].recording.map { recordings[$0] }
  }

  /// Returns the capture time of a frame on the clock of its recording; nil for one of unknown origin.
  public func captureTime(ofFrame index: Int) -> MediaTime? {
    recording(ofFrame: index).map { MediaTime(frames[index].ticks, over: $0.timescale) }
  }

  /// Returns the number of frames of the recording that are missing between a frame and the one before.
  ///
  /// Frames that were left out on purpose do not count. At a cut it is zero.
  ///
  /// - Returns: Nil for a frame of unknown origin, and if the losses are unknown.
  public func lostBefore(frame index: Int) -> Int64? {
    guard let recording = recording(ofFrame: index), recording.knowsLosses else { return nil }
    let segment = segments[segmentIndex(ofFrame: index)]
    guard index > 0, index > segment.frames.lowerBound || segment.isContinued else { return 0 }
    return Int64(clamping: (frames[index].lost &- frames[index - 1].lost).magnitude)
  }
}
