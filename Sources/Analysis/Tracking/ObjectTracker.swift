// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore
public import OvercrankRaster

/// Follows a marked object through the frames of a movie.
///
/// Each frame is compared with the marked object in the first frame, so errors do not add up. An object
/// that was lost is found again only where its motion leads, and only if it looks as it did before.
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

  /// An object that is marked in one frame.
  public struct MarkedObject: Hashable, Sendable {
    /// The time of the frame in which the object is marked.
    public var time: MediaTime
    /// The object in this frame, in pixels of the frame as it is displayed.
    ///
    /// It has at least 6 pixels on each side.
    public var box: PixelRect

    /// Marks an object.
    public init(at time: MediaTime, in box: PixelRect) { (self.time, self.box) = (time, box) }
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
  /// - Throws: `MediaError` as ``track(_:objects:until:isCancelled:)`` does.
  public func track(
    _ asset: Asset, from start: MediaTime, in box: PixelRect, until end: MediaTime? = nil,
    isCancelled: () -> Bool = { false }
  ) throws(MediaError) -> ObjectTrack {
    let object = MarkedObject(at: start, in: box)
    return try track(asset, objects: [object], until: end, isCancelled: isCancelled)[0]
  }

  /// Follows several objects, each by itself, and decodes each frame once.
  ///
  /// - Parameters:
  ///   - asset: The movie.
  ///   - objects: The objects.
  ///   - end: The time at which tracking ends; nil for the end of the movie.
  ///   - isCancelled: Polled between frames.
  /// - Returns: One track for each object, with one point for each frame from its first one.
  /// - Throws: `MediaError` with `.outsideSource` for a time or a box outside the movie,
  ///   `.ambiguousMatch` for a box without structure or of the background's color, `.invalidData`
  ///   for video that cannot be decoded, or `.cancelled`.
  public func track(
    _ asset: Asset, objects: [MarkedObject], until end: MediaTime? = nil,
    isCancelled: () -> Bool = { false }
  ) throws(MediaError) -> [ObjectTrack] {
    var frames = try UprightFrames(asset, isColor: method == .color)
    var starts: [Int] = []
    for object in objects {
      guard let first = asset.videoTrack?.frames.index(at: object.time) else {
        throw MediaError(
          .outsideSource, "\(asset.path) shows no frame at \(object.time.displayText) s",
          recovery: "it ends at \(asset.duration.displayText) s")
      }
      starts.append(first)
    }
    guard let table = asset.videoTrack?.frames, let first = starts.min() else { return [] }
    var followers = [Follower?](repeating: nil, count: objects.count)
    for index in first..<frames.frameCount {
      let time = try table.time(ofFrame: Int64(index))
      if let end, time >= end, starts.allSatisfy({ $0 < index }) { break }
      if isCancelled() { throw .readingCancelled(asset) }
      var image: UprightFrames.Image?
      do throws(MediaError) { image = try frames.image(at: index) } catch {
        // In a frame that cannot be decoded, the objects count as lost.
        guard error.code == .invalidData, !starts.contains(index) else { throw error }
      }
      for number in objects.indices where starts[number] <= index {
        if let image, starts[number] == index {
          followers[number] = try Follower(self, objects[number].box, in: image, of: asset)
        }
        if let end, time >= end, starts[number] < index { continue }
        followers[number]?.follow(image, index, time)
      }
    }
    return zip(objects, followers).map { object, follower in
      ObjectTrack(method: method, box: object.box, points: follower?.points ?? [])
    }
  }

  /// The state of one object that is followed.
  private struct Follower {
    private let tracker: ObjectTracker
    private let matcher: Matcher
    private var search: Search
    private(set) var points: [TrackedPoint] = []

    /// Learns an object from the frame in which it is marked.
    init(
      _ tracker: ObjectTracker, _ box: PixelRect, in image: UprightFrames.Image, of asset: Asset
    ) throws(MediaError) {
      try ObjectTracker.check(box, in: image, of: asset)
      self.tracker = tracker
      matcher = try ObjectTracker.matcher(tracker.method, image, box, asset)
      let center = Point(
        x: Double(box.x) + Double(box.width) / 2, y: Double(box.y) + Double(box.height) / 2)
      let nearest = tracker.reach ?? max(box.width, box.height)
      search = Search(center: center, reach: max(4, min(nearest, 4_096)))
    }

    /// Finds the object in the next frame; nil for one that cannot be decoded.
    mutating func follow(_ image: UprightFrames.Image?, _ index: Int, _ time: MediaTime) {
      let seconds = time.doubleValue
      let found = image.flatMap {
        matcher($0, search.predicted(at: seconds), search.reach(at: seconds))
      }
      let isFound = found.map { tracker.accepts($0) && search.accepts($0) } ?? false
      search.update(isFound ? found : nil, at: seconds)
      points.append(
        TrackedPoint(
          index: index, time: time, position: isFound ? found?.position : nil,
          uncertainty: isFound ? found.map { $0.deviation * ConfidenceInterval.factor } : nil,
          score: min(1, max(0, found?.score ?? 0)),
          isAmbiguous: !isFound && (found.map(tracker.isAmbiguous) ?? false)))
    }
  }

  private func accepts(_ match: ObjectMatch) -> Bool {
    match.score >= minimumScore && match.rival <= match.score * maximumRivalRatio
      && match.deviation < 2
  }

  private func isAmbiguous(_ match: ObjectMatch) -> Bool {
    match.score >= minimumScore && !accepts(match)
  }

  private static func check(
    _ box: PixelRect, in image: UprightFrames.Image, of asset: Asset
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

  private typealias Matcher = (UprightFrames.Image, Point, Int) -> ObjectMatch?

  private static func matcher(
    _ method: Method, _ image: UprightFrames.Image, _ box: PixelRect, _ asset: Asset
  ) throws(MediaError) -> Matcher {
    switch method {
    case .patch:
      let patch = GrayImage(image, x: box.x, y: box.y, width: box.width, height: box.height)
        .map(PatchMatcher.init)
      let center = Point(
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

  /// The prediction of the object's next position, and the look that a lost object must have.
  private struct Search {
    private struct Known {
      let position: Point
      let time: Double
      let resemblance: Double
    }

    /// The latest known positions, the last of them at the end.
    private var known: [Known] = []
    private var lostCount = 0
    private let start: Point
    private let reach: Int
    /// The number of positions that give the velocity of a lost object.
    private static let memory = 9
    /// The least resemblance of an object that is found again, relative to its usual one.
    private static let leastResemblance = 0.85
    /// The longest predicted step in pixels, greater than any frame.
    private static let longestStep = 100_000.0

    init(center: Point, reach: Int) { (start, self.reach) = (center, reach) }

    /// The greatest distance from the predicted position in pixels.
    ///
    /// It grows while the object is lost, but by no more than half of its predicted way.
    func reach(at time: Double) -> Int {
      let grown = reach * (1 + min(lostCount, 3))
      guard lostCount > 3, let last = known.last else { return grown }
      let way = predicted(at: time).distance(to: last.position)
      return min(grown, reach + Int(way / 2))
    }

    func predicted(at time: Double) -> Point {
      guard let last = known.last else { return start }
      let ahead = time - last.time
      let velocity = velocity
      let predicted = Point(
        x: last.position.x + velocity.x * ahead, y: last.position.y + velocity.y * ahead)
      // Frames with nearly equal times give an arbitrary velocity, so a huge step is ignored.
      let moved = predicted.distance(to: last.position)
      return moved < Self.longestStep ? predicted : last.position
    }

    /// The velocity in pixels per second.
    ///
    /// A lost object goes on with the median of its latest velocities, since what hides it may also have
    /// moved its last positions.
    private var velocity: (x: Double, y: Double) {
      let latest = lostCount == 0 ? known.suffix(2) : known[...]
      let steps = zip(latest, latest.dropFirst()).filter { $1.time > $0.time }
      guard !steps.isEmpty else { return (0, 0) }
      func median(_ part: KeyPath<Point, Double>) -> Double {
        let slopes = steps.map {
          ($1.position[keyPath: part] - $0.position[keyPath: part]) / ($1.time - $0.time)
        }
        return slopes.sorted()[slopes.count / 2]
      }
      return (median(\.x), median(\.y))
    }

    /// Whether a match may be the object: one that was lost must look as it usually did.
    func accepts(_ match: ObjectMatch) -> Bool {
      guard lostCount > 0, !known.isEmpty else { return true }
      let usual = known.map(\.resemblance).sorted()[known.count / 2]
      return match.resemblance >= usual * Self.leastResemblance
    }

    mutating func update(_ match: ObjectMatch?, at time: Double) {
      guard let match else {
        lostCount += 1
        return
      }
      // After a long time, the earlier velocity says nothing about the present one.
      if lostCount > 3 { known = [] }
      known.append(Known(position: match.position, time: time, resemblance: match.resemblance))
      if known.count > Self.memory { known.removeFirst() }
      lostCount = 0
    }
  }
}
