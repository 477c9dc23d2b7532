// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore

/// Makes one image of many frames of a movie.
///
/// Frames are shown as players rotate them. Blocks the calling thread, which may be any.
public struct StillComposer: Sendable {
  /// The range of the movie that the frames come from.
  public let range: TimeRange
  let asset: Asset
  /// The capture times of the movie.
  let clock: CaptureClock
  let isCancelled: @Sendable () -> Bool

  /// The greatest number of pixels of an image.
  static let maximumPixels = 128 << 20

  /// Prepares images of a range.
  ///
  /// - Parameters:
  ///   - asset: The movie.
  ///   - range: The range in the movie's time; nil for all of it.
  ///   - clock: The capture times; nil for those that the file states, or its own times.
  ///   - isCancelled: Polled between frames.
  /// - Throws: `MediaError` with `.invalidData` for an asset without video, `.outsideSource` for a
  ///   range without a frame.
  public init(
    _ asset: Asset, range: TimeRange? = nil, clock: CaptureClock? = nil,
    isCancelled: @escaping @Sendable () -> Bool = { false }
  ) throws(MediaError) {
    guard let track = asset.videoTrack else {
      throw MediaError(
        .invalidData, "\(asset.path) contains no video", recovery: "choose a movie with video")
    }
    let whole = try TimeRange(duration: asset.duration)
    guard let shown = range.map({ $0.intersection(whole) }) ?? whole, !shown.isEmpty,
      track.frames.index(at: shown.start) != nil
    else {
      throw MediaError(
        .outsideSource, "the range is outside \(asset.path)",
        recovery: "it ends at \(asset.duration.displayText) s")
    }
    (self.asset, self.range, self.isCancelled) = (asset, shown, isCancelled)
    if let clock = clock ?? (try? asset.captureClock()) {
      self.clock = clock
    } else {
      self.clock = try asset.captureClock(.file)
    }
  }

  /// The indices of the frames that are shown in the range.
  var indices: Range<Int> {
    get throws(MediaError) {
      guard let frames = asset.videoTrack?.frames, let first = frames.index(at: range.start) else {
        return 0..<0
      }
      // A frame that begins at the end of the range is not in the range.
      let last = frames.entries.indices.last { index in
        MediaTime(frames.entries[index].ticks, over: frames.timescale) < range.end
      }
      return first..<max(first, last ?? first) + 1
    }
  }

  func time(of index: Int) throws(MediaError) -> MediaTime {
    guard let frames = asset.videoTrack?.frames else { return .zero }
    return try frames.time(ofFrame: Int64(index))
  }

  /// Returns the indices of frames spread evenly over the range, with the first and the last one.
  func spread(_ count: Int) throws(MediaError) -> [Int] {
    let all = try indices
    guard count < all.count else { return Array(all) }
    guard count > 1 else { return [all.lowerBound] }
    return (0..<count).map {
      all.lowerBound + ($0 * (all.count - 1) * 2 + count - 1) / (2 * (count - 1))
    }
  }

  /// The time of a frame since the first one of the movie, as text reports it: the capture time within
  /// the first part of the movie, and else the time in the movie.
  func reportedTime(of index: Int) throws(MediaError) -> MediaTime {
    guard let part = clock.part(ofFrame: index), part == clock.part(ofFrame: 0),
      let time = clock.seconds(ofFrame: index), let start = clock.seconds(ofFrame: 0),
      let passed = MediaTime(exactly: time - start)
    else { return try time(of: index) }
    return passed
  }

  /// The frames shown at the start of the range, and at every multiple of a duration of capture time
  /// after it, up to the next cut.
  func frames(every step: MediaTime) throws(MediaError) -> [Int] {
    guard step > .zero else {
      throw MediaError(
        .notPositive, "a step of \(step.displayText) s is not above zero",
        recovery: "choose a longer step")
    }
    let all = try indices
    guard let first = all.first, let line = CaptureLine(clock, asset, around: range.start),
      let start = clock.seconds(at: range.start)
    else { return [] }
    let last = all.last { clock.part(ofFrame: $0) == clock.part(ofFrame: first) } ?? first
    let end = last + 1 == all.upperBound ? clock.seconds(at: range.end) : nil
    let frames = line.frames(every: step.seconds, until: end.map { $0 - start } ?? line.end)
    return Array(frames.lazy.filter(all.contains).prefix(10_000))
  }

  func checkCancelled() throws(MediaError) {
    if isCancelled() { throw .readingCancelled(asset) }
  }

  /// Throws for an image that is too large.
  static func check(width: Int, height: Int) throws(MediaError) {
    let (pixels, overflow) = width.multipliedReportingOverflow(by: height)
    guard width > 0, height > 0, width <= 65_500, height <= 65_500, !overflow,
      pixels <= maximumPixels
    else {
      throw MediaError(
        .imageTooLarge, "cannot create an image of \(width)x\(height) pixels",
        recovery: "choose fewer or smaller frames")
    }
  }
}

extension MediaError.Code {
  /// An image would have too many pixels.
  public static let imageTooLarge = Self(rawValue: "image_too_large")
}
