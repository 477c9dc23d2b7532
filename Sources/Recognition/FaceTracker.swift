// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster

/// Finds faces in consecutive frames, and gives each face a permanent id.
///
/// In each frame, a known face is searched for only in a small crop around its expected position.
/// Passes over whole frames, of bounded rate, find new faces. One pass in four also finds small
/// faces, and two in four find tilted faces.
struct FaceTracker {
  /// A search that the tracker made in a frame; recorded for tests.
  enum Pass: Hashable {
    case whole(FaceReader.Pass)
    /// A search around a known face, with the face's rotation in degrees.
    case crop(Double)
    case roll
  }

  /// The rotation that was measured for a face, and the time of the measurement.
  private struct Measurement {
    var pose: FacePose
    var microseconds: Int64
    var frame: Int
  }

  /// The repeating sequence of passes over whole frames.
  static let passes = [
    FaceReader.Pass(effort: .fine), FaceReader.Pass(effort: .quick, degrees: FaceReader.tilt),
    FaceReader.Pass(effort: .quick), FaceReader.Pass(effort: .quick, degrees: -FaceReader.tilt),
  ]
  /// The least time between two measurements of a face's rotation, in microseconds.
  static let rollInterval: Int64 = 100_000

  private let reader: FaceReader
  private var identities = FaceIdentities()
  /// The measured rotations by face id.
  private var measurements: [Int64: Measurement] = [:]
  private var schedule: FramePasses<FaceReader.Pass>
  private let fewestPoseFrames: Int
  private var frameCount = 0
  /// The searches that were made in the last frame, for tests.
  private(set) var passes: [Pass] = []

  /// Whether the last frame was searched as a whole.
  var didSearchWholeFrame: Bool {
    passes.contains { if case .whole = $0 { true } else { false } }
  }

  /// Creates a tracker.
  ///
  /// - Parameters:
  ///   - reader: The reader that searches.
  ///   - passRate: The greatest number of passes over whole frames, per second.
  ///   - fewestPoseFrames: The least number of frames from one measurement of a face's rotation to the
  ///     next.
  init(
    _ reader: FaceReader, passRate: FrameRate = MetadataOutput.usualPassRate,
    fewestPoseFrames: Int = 0
  ) {
    (self.reader, self.fewestPoseFrames) = (reader, fewestPoseFrames)
    schedule = FramePasses(Self.passes, rate: passRate)
  }

  /// Finds the faces of a frame.
  ///
  /// - Parameters:
  ///   - image: The luma of the frame.
  ///   - area: The part of the frame to search; nil for the whole frame. Faces with their center
  ///     outside are left out.
  ///   - microseconds: The time of the frame, later than that of the previous frame.
  /// - Returns: The faces, largest first.
  mutating func look(
    at image: LumaImage, in area: PixelRect? = nil, microseconds: Int64
  ) -> [TrackedFace] {
    passes = []
    var found: [DetectedFace] = []
    if let pass = schedule.next(at: microseconds, isFollowing: false) {
      passes.append(.whole(pass))
      found = image.search(area ?? image.area) { reader.find(in: $0, pass) }
    }
    return add(found, in: image, area, microseconds: microseconds)
  }

  /// Adds the faces that a search of a whole frame found, and searches for the other known faces.
  ///
  /// - Parameters:
  ///   - found: The found faces; empty if the frame was not searched.
  ///   - image: The luma of the frame.
  ///   - area: The part of the frame that counts; nil for the whole frame.
  ///   - microseconds: The time of the frame, later than that of the previous frame.
  /// - Returns: The faces, largest first.
  mutating func add(
    _ found: [DetectedFace], in image: LumaImage, _ area: PixelRect? = nil, microseconds: Int64
  ) -> [TrackedFace] {
    var found = found
    frameCount += 1
    for expected in identities.followed(at: microseconds)
    where !found.contains(where: expected.face.isSame) {
      let degrees = measurements[expected.id]?.pose.roll ?? expected.face.degrees
      passes.append(.crop(degrees))
      found += reader.find(
        expected.face, in: image, degrees: degrees, isSteady: expected.isSteady)
    }
    found = DetectedFace.distinct(found).centered(in: area)
    let faces = TrackedFace.largest(identities.identified(found, at: microseconds))
    measurements = measurements.filter {
      (0...FaceIdentities.memory).contains(microseconds - $0.value.microseconds)
    }
    return faces.map { face in
      TrackedFace(
        id: face.id, face: face.face, pose: pose(of: face, in: image, at: microseconds))
    }
  }

  /// Returns the rotation of a face.
  ///
  /// The rotation is measured again if the last measurement is too old. The search starts at the
  /// last rotation.
  private mutating func pose(
    of face: TrackedFace, in image: LumaImage, at microseconds: Int64
  ) -> FacePose {
    let known = measurements[face.id]
    if let known,
      microseconds - known.microseconds < Self.rollInterval
        || frameCount - known.frame < fewestPoseFrames
    {
      return known.pose
    }
    passes.append(.roll)
    let pose = reader.pose(
      of: face.face, in: image, near: known?.pose.roll ?? face.face.degrees)
    measurements[face.id] = Measurement(
      pose: pose, microseconds: microseconds, frame: frameCount)
    return pose
  }
}

/// Assigns ids to faces by their expected positions.
///
/// A face is expected to continue at its last velocity. Its detected position may differ from the
/// expected one by 0.6 of its size, and by more if it was missing in the frames before. A missing
/// face is expected to move as the other faces do, because a turning camera moves all of them.
struct FaceIdentities {
  fileprivate struct Track {
    let id: Int64
    var face: DetectedFace
    /// The time at which the face has this position, in microseconds.
    var microseconds: Int64
    /// The time of the last detection, in microseconds.
    var seen: Int64
    var missCount = 0
    /// The velocity in pixels per microsecond; nil for a face that was seen only once.
    var velocity: (x: Double, y: Double)?

    /// Returns the face where it is expected at a time; a face that was seen only once moves as the
    /// others do.
    func expected(at time: Int64, others: (x: Double, y: Double)) -> DetectedFace {
      // A face that has been missing for some time may have stopped, so its motion is not continued
      // further.
      let elapsed = Double(max(0, min(time, seen + FaceIdentities.extrapolation) - microseconds))
      let velocity = velocity ?? others
      let (x, y) = (velocity.x * elapsed, velocity.y * elapsed)
      return face.moved(byX: x, y: y)
    }
  }

  /// The time in microseconds for which a missing face keeps its id.
  static let memory: Int64 = 1_000_000
  /// The longest time in microseconds for which motion is extrapolated.
  private static let extrapolation: Int64 = 300_000
  /// The greatest number of consecutive frames in which a followed face may be missing.
  private static let maximumMisses = 6
  /// The greatest distance from the expected position, relative to the size of the face, and its
  /// increase for each frame without the face.
  private static let (reach, reachPerMiss) = (0.6, 0.2)
  private static let greatestReach = 1.2

  private var tracks: [Track] = []
  private var lastID: Int64 = 0

  /// The mean velocity of the faces whose velocity is known.
  private var commonVelocity: (x: Double, y: Double) {
    let known = tracks.compactMap(\.velocity)
    guard !known.isEmpty else { return (0, 0) }
    return (
      known.reduce(0) { $0 + $1.x } / Double(known.count),
      known.reduce(0) { $0 + $1.y } / Double(known.count)
    )
  }

  /// A face where it is expected.
  struct Expected: Hashable {
    let id: Int64
    let face: DetectedFace
    /// Whether the face was found in the last frame, and its motion is known.
    let isSteady: Bool
  }

  /// Returns the recently seen faces where they are expected at a time.
  func followed(at microseconds: Int64) -> [Expected] {
    let common = commonVelocity
    return tracks.filter { $0.missCount <= Self.maximumMisses }.map {
      Expected(
        id: $0.id, face: $0.expected(at: microseconds, others: common),
        isSteady: $0.missCount == 0 && $0.velocity != nil)
    }
  }

  /// Returns the faces with their ids, and stores them for the next frame.
  ///
  /// If the time goes backwards, the clock was restarted, and all faces get new ids.
  mutating func identified(_ faces: [DetectedFace], at microseconds: Int64) -> [TrackedFace] {
    tracks.removeAll {
      microseconds < $0.seen || microseconds - $0.seen > Self.memory
    }
    let common = commonVelocity
    let expected = tracks.map { $0.expected(at: microseconds, others: common) }
    var pairs: [(track: Int, face: Int, distance: Double)] = []
    for (track, before) in expected.enumerated() {
      for (index, face) in faces.enumerated() {
        let (x, y) = (face.center.x - before.center.x, face.center.y - before.center.y)
        let size = max(1, max(face.size, before.size))
        let distance = (x * x + y * y).squareRoot() / size
        let isSimilar = min(face.size, before.size) > 0.5 * size
        let reach = min(
          Self.greatestReach, Self.reach + Self.reachPerMiss * Double(tracks[track].missCount))
        if distance <= reach && isSimilar { pairs.append((track, index, distance)) }
      }
    }
    var ids = [Int64?](repeating: nil, count: faces.count)
    var taken = Set<Int>()
    for pair in pairs.sorted(by: { $0.distance < $1.distance })
    where ids[pair.face] == nil && !taken.contains(pair.track) {
      ids[pair.face] = tracks[pair.track].id
      taken.insert(pair.track)
      tracks[pair.track].move(to: faces[pair.face], at: microseconds)
    }
    // The mean offset of the found faces from their expected positions. This offset is added to the
    // expected positions of the missing faces.
    let count = Double(taken.count)
    let deviation = (
      x: taken.reduce(0) { $0 + tracks[$1].face.center.x - expected[$1].center.x } / max(1, count),
      y: taken.reduce(0) { $0 + tracks[$1].face.center.y - expected[$1].center.y } / max(1, count)
    )
    for track in tracks.indices where !taken.contains(track) {
      tracks[track].missCount += 1
      guard taken.count > 1, tracks[track].missCount <= Self.maximumMisses else { continue }
      tracks[track].coast(to: expected[track], deviation, at: microseconds)
    }
    return zip(faces, ids).map { face, id in
      if let id { return TrackedFace(id: id, face: face) }
      lastID += 1
      tracks.append(Track(id: lastID, face: face, microseconds: microseconds, seen: microseconds))
      return TrackedFace(id: lastID, face: face)
    }
  }
}

extension FaceIdentities.Track {
  /// Updates the position and the velocity of the face from a later frame.
  fileprivate mutating func move(to face: DetectedFace, at time: Int64) {
    let elapsed = Double(time - microseconds)
    if elapsed > 0 {
      // The detector's positions are multiples of several pixels, so the velocity is averaged over
      // frames.
      let weight = velocity == nil ? 1 : 0.7
      let before = velocity ?? (0, 0)
      velocity = (
        before.x + weight * ((face.center.x - self.face.center.x) / elapsed - before.x),
        before.y + weight * ((face.center.y - self.face.center.y) / elapsed - before.y)
      )
    }
    (self.face, microseconds, seen, missCount) = (face, time, time, 0)
  }

  /// Moves a missing face to its expected position, corrected by the deviation of the other faces.
  fileprivate mutating func coast(
    to expected: DetectedFace, _ deviation: (x: Double, y: Double), at time: Int64
  ) {
    let elapsed = Double(time - microseconds)
    guard elapsed > 0 else { return }
    if let before = velocity {
      velocity = (before.x + deviation.x / elapsed, before.y + deviation.y / elapsed)
    }
    face = expected.moved(byX: deviation.x, y: deviation.y)
    microseconds = time
  }
}
