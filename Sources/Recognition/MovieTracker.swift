// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// The objects of one frame of a movie.
struct MovieFrameObjects {
  let frame: DecodedFrame
  var codes: [DetectedCode] = []
  var faces: [TrackedFace] = []
  /// Whether the frame was searched for new objects.
  var isSearched = false
}

/// Follows the objects of a movie from frame to frame, forwards and backwards.
///
/// Objects that the search of a whole frame missed are searched for around their expected positions.
/// A new object is also searched for in the frames before the one that first showed it, as far back
/// as the window reaches: a file can be looked at again.
struct MovieTracker {
  /// The number of frames that are kept to be looked at again.
  static let window = 12
  /// The least number of frames from one measurement of a face's rotation to the next.
  private static let poseInterval = 8

  private let readers: ObjectReaders
  private var codes: CodeTracker?
  private var faces: FaceTracker?
  private var kept: [MovieFrameObjects] = []

  init(_ readers: ObjectReaders) {
    self.readers = readers
    codes = readers.codes.map { CodeTracker($0, agreement: 1) }
    faces = readers.faces.map { FaceTracker($0, fewestPoseFrames: Self.poseInterval) }
  }

  /// Adds the next frame.
  ///
  /// - Parameters:
  ///   - frame: The frame.
  ///   - found: The objects that a search of the whole frame found.
  ///   - isSearched: Whether the frame counts as searched for new objects.
  ///   - changedArea: The part outside which the codes are those of the frame before; nil if they were
  ///     searched for in the whole frame.
  /// - Returns: The oldest kept frame, if there are more than the window has.
  mutating func add(
    _ frame: DecodedFrame, _ found: FrameSearch.Found, isSearched: Bool,
    unchangedOutside changedArea: PixelRect? = nil
  ) -> MovieFrameObjects? {
    // The same image shows the same objects.
    let same = frame.isRepeated ? kept.last : nil
    var objects = MovieFrameObjects(frame: frame, isSearched: isSearched)
    let time = frame.microseconds
    var foundCodes = same?.codes ?? found.codes ?? []
    if let changedArea, let before = kept.last {
      foundCodes += before.codes.filter { !$0.searchArea().overlaps(changedArea) }
    }
    objects.codes = codes?.add(foundCodes, in: frame.luma, microseconds: time) ?? []
    let known = (same?.faces ?? []).map(\.face)
    objects.faces =
      faces?.add(
        DetectedFace.distinct(known + (found.faces ?? [])), in: frame.luma, microseconds: time)
      ?? []
    let before = kept.last
    for code in objects.codes where before?.codes.contains(where: { $0.key == code.key }) == false {
      lookBack(for: code)
    }
    for face in objects.faces where before?.faces.contains(where: { $0.id == face.id }) == false {
      lookBack(for: face)
    }
    kept.append(objects)
    return kept.count > Self.window ? kept.removeFirst() : nil
  }

  /// Returns the kept frames after the last one was added.
  mutating func finish() -> [MovieFrameObjects] {
    defer { kept = [] }
    return kept
  }

  /// Searches for a code in the frames before the one that showed it first.
  private mutating func lookBack(for code: DetectedCode) {
    guard let reader = readers.codes else { return }
    var expected = code
    for index in kept.indices.reversed() {
      let luma = kept[index].frame.luma
      // The motion of the code is not known yet, so the margin is wide.
      let area = expected.searchArea(margin: 0.5)
      let found = luma.search(area) { reader.read($0, code.type, isRotated: expected.isRotated) }
      guard let same = found.first(where: { $0.key == code.key }) else { return }
      kept[index].codes.append(same)
      expected = same
    }
  }

  /// Searches for a face in the frames before the one that showed it first.
  private mutating func lookBack(for face: TrackedFace) {
    guard let reader = readers.faces else { return }
    var expected = face.face
    for index in kept.indices.reversed() {
      let (luma, known) = (kept[index].frame.luma, kept[index].faces)
      let found = reader.find(expected, in: luma, degrees: face.roll ?? expected.degrees)
      guard let same = found.first(where: expected.isSame),
        !known.contains(where: { $0.face.isSame(as: same) || $0.id == face.id })
      else { return }
      kept[index].faces = TrackedFace.largest(
        known + [TrackedFace(id: face.id, face: same, pose: face.pose)])
      expected = same
    }
  }
}

extension PixelRect {
  /// Whether two rectangles have a pixel in common.
  fileprivate func overlaps(_ other: PixelRect) -> Bool {
    x < other.x + other.width && other.x < x + width && y < other.y + other.height
      && other.y < y + height
  }
}
