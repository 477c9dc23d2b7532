// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore

/// Follows a marked object through the frames of a movie.
///
/// Each frame is compared with the marked object in the first frame, so errors do not add up.
/// Blocks the calling thread, which may be any.
public struct ObjectTracker: Sendable {
  /// The property by which an object is found.
  public enum Method: String, Hashable, Sendable, Codable, CaseIterable {
    /// The brightness pattern, by normalized cross-correlation.
    case patch
    /// The color in the middle of the box, by the center of gravity of this color.
    case color
  }

  /// The property by which the object is found.
  public var method: Method
  /// The least agreement with the marked object, from 0 to 1; below it, the object is lost.
  public var minimumScore: Double
  /// The greatest ratio of the second-best match to the best; above it, the frame is ambiguous, and
  /// the object counts as lost in it.
  public var maximumRivalRatio: Double
  /// The greatest distance from the predicted position at which the object is searched for, in
  /// pixels; nil for the longer side of the box.
  public var reach: Int?

  /// Creates a tracker.
  public init(method: Method = .patch) {
    self.method = method
    minimumScore = method == .patch ? 0.7 : 0.4
    maximumRivalRatio = 0.9
    reach = nil
  }

  /// Follows an object.
  ///
  /// - Parameters:
  ///   - asset: The movie.
  ///   - start: The time of the frame in which the object is marked.
  ///   - box: The object in this frame, in pixels of the frame as it is displayed. The box has at
  ///     least 6 pixels on each side.
  ///   - end: The time at which tracking ends; nil for the end of the movie.
  ///   - isCancelled: Polled between frames.
  /// - Returns: One point for each frame from the first one.
  /// - Throws: `MediaError` with `.outsideSource` for a time or a box outside the movie,
  ///   `.ambiguousMatch` for a box without structure or of the background's color, `.invalidData`
  ///   for video that cannot be decoded, or `.cancelled`.
  public func track(
    _ asset: Asset, from start: MediaTime, in box: PixelBox, until end: MediaTime? = nil,
    isCancelled: () -> Bool = { false }
  ) throws(MediaError) -> ObjectTrack {
    var frames = try UprightFrames(asset, isColor: method == .color)
    guard let table = asset.videoTrack?.frames, let first = table.index(at: start) else {
      throw MediaError(
        .outsideSource, "\(asset.path) shows no frame at \(start.displayText) s",
        recovery: "it ends at \(asset.duration.displayText) s")
    }
    let image = try frames.image(at: first)
    try Self.check(box, in: image, of: asset)
    let matcher = try Self.matcher(method, image, box, asset)
    let center = ImagePoint(
      x: Double(box.x) + Double(box.width) / 2, y: Double(box.y) + Double(box.height) / 2)
    let nearest = reach ?? max(box.width, box.height)
    var search = Search(center: center, reach: max(4, min(nearest, 4_096)))
    var points: [TrackedPoint] = []
    for index in first..<frames.frameCount {
      let time = try table.time(ofFrame: Int64(index))
      if index > first, let end, time >= end { break }
      if isCancelled() { throw .readingCancelled(asset) }
      var found: ObjectMatch?
      do throws(MediaError) {
        let shown = try index == first ? image : frames.image(at: index)
        found = matcher(shown, search.predicted(at: time.doubleValue), search.currentReach)
      } catch {
        // In a frame that cannot be decoded, the object counts as lost.
        guard error.code == .invalidData else { throw error }
      }
      let isFound = found.map(accepts) ?? false
      search.update(isFound ? found?.position : nil, at: time.doubleValue)
      points.append(
        TrackedPoint(
          index: index, time: time, position: isFound ? found?.position : nil,
          uncertainty: isFound ? found.map { $0.deviation * ConfidenceInterval.factor } : nil,
          score: min(1, max(0, found?.score ?? 0)),
          isAmbiguous: !isFound && (found.map { $0.score >= minimumScore } ?? false)))
    }
    return ObjectTrack(method: method, box: box, points: points)
  }

  private func accepts(_ match: ObjectMatch) -> Bool {
    match.score >= minimumScore && match.rival <= match.score * maximumRivalRatio
      && match.deviation < 2
  }

  private static func check(
    _ box: PixelBox, in image: UprightFrames.Image, of asset: Asset
  ) throws(MediaError) {
    let (right, wideOverflow) = box.x.addingReportingOverflow(box.width)
    let (bottom, tallOverflow) = box.y.addingReportingOverflow(box.height)
    guard box.x >= 0, box.y >= 0, !wideOverflow, !tallOverflow, right <= image.width,
      bottom <= image.height, box.width >= 6, box.height >= 6
    else {
      throw MediaError(
        .outsideSource,
        "the box \(box.x),\(box.y),\(box.width),\(box.height) does not fit \(asset.path), which has "
          + "\(image.width)x\(image.height) pixels",
        recovery: "choose at least 6x6 pixels inside the frame")
    }
  }

  private typealias Matcher = (UprightFrames.Image, ImagePoint, Int) -> ObjectMatch?

  private static func matcher(
    _ method: Method, _ image: UprightFrames.Image, _ box: PixelBox, _ asset: Asset
  ) throws(MediaError) -> Matcher {
    switch method {
    case .patch:
      let patch = GrayImage(image, x: box.x, y: box.y, width: box.width, height: box.height)
        .map(PatchMatcher.init)
      let center = ImagePoint(
        x: Double(box.x) + Double(box.width) / 2, y: Double(box.y) + Double(box.height) / 2)
      guard let patch, patch.match(in: image, near: center, reach: 2) != nil else {
        throw MediaError(
          .ambiguousMatch, "the box in \(asset.path) has no structure that fixes a position",
          recovery: "choose a box with a corner or a spot in it, not a line or an even area")
      }
      return { patch.match(in: $0, near: $1, reach: $2) }
    case .color:
      guard let color = ColorMatcher(image, box) else {
        throw MediaError(
          .ambiguousMatch, "the box in \(asset.path) has nearly the color of its background",
          recovery: "choose a box around the object, with the object's color in the middle")
      }
      return { color.match(in: $0, near: $1, reach: $2) }
    }
  }

  /// The prediction of the object's next position.
  private struct Search {
    private var known: (position: ImagePoint, time: Double)?
    private var velocity = (x: 0.0, y: 0.0)
    private let start: ImagePoint
    private let reach: Int
    private var lostCount = 0
    /// The longest predicted step in pixels, greater than any frame.
    private static let longestStep = 100_000.0

    init(center: ImagePoint, reach: Int) { (start, self.reach) = (center, reach) }

    /// The search radius in pixels; it grows while the object is lost.
    var currentReach: Int { reach * (1 + min(lostCount, 3)) }

    func predicted(at time: Double) -> ImagePoint {
      guard let known else { return start }
      // After four lost frames, the last known position is better than an extrapolation.
      let ahead = lostCount < 4 ? time - known.time : 0
      let predicted = ImagePoint(
        x: known.position.x + velocity.x * ahead, y: known.position.y + velocity.y * ahead)
      // Frames with nearly equal times give an arbitrary velocity, so a huge step is ignored.
      let moved = predicted.distance(to: known.position)
      return moved < Self.longestStep ? predicted : known.position
    }

    mutating func update(_ position: ImagePoint?, at time: Double) {
      guard let position else {
        lostCount += 1
        return
      }
      if let known, time > known.time, lostCount < 4 {
        let step = time - known.time
        velocity = (
          (position.x - known.position.x) / step, (position.y - known.position.y) / step
        )
      } else {
        velocity = (0, 0)
      }
      known = (position, time)
      lostCount = 0
    }
  }
}
