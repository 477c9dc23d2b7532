// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster

/// Finds codes in consecutive frames.
///
/// In each frame, a known code is searched for only in a small crop around its expected position.
/// Passes over whole frames, of bounded rate and with alternating effort, find new codes. A text is
/// reported once enough frames agree on it.
struct CodeTracker {
  /// A search that the tracker made in a frame; recorded for tests.
  enum Pass: Hashable {
    case whole(CodeReader.Effort)
    case crop(MetadataObjectType, PixelRect)
  }

  /// A code that is followed from frame to frame.
  fileprivate struct Track {
    var code: DetectedCode
    var microseconds: Int64
    /// The velocity of the code's center in pixels per microsecond.
    var velocity = Point(x: 0, y: 0)
    var missCount = 0
    /// Whether the code is not upright, or is inverted, so that reading it costs more.
    var isRotated = false

    func center(at time: Int64) -> Point {
      let elapsed = Double(time - microseconds)
      return Point(
        x: code.center.x + velocity.x * elapsed, y: code.center.y + velocity.y * elapsed)
    }
  }

  /// The number of frames in which a text was read, and the last such frame.
  private struct Sightings {
    var count = 0
    var lastLook = 0
  }

  /// The number of frames that must agree on the text of a code before the code is reported.
  let agreement: Int
  /// The least number of frames between two passes over whole frames while codes are followed.
  static let fewestCropFrames = 3
  /// The repeating sequence of efforts of the passes over whole frames.
  static let passes: [CodeReader.Effort] = [.thorough, .magnified, .standard, .standard]
  /// The greatest number of consecutive frames in which a followed code may be missing.
  private static let maximumMisses = 6
  /// The number of frames after which a sighting of a text is forgotten.
  private static let memory = 120

  private let reader: CodeReader
  private var tracks: [Track] = []
  private var sightings: [DetectedCode.Key: Sightings] = [:]
  private var lookCount = 0
  private var schedule: FramePasses<CodeReader.Effort>
  /// The searches that were made in the last frame, for tests.
  private(set) var passes: [Pass] = []

  /// Whether the last frame was searched as a whole.
  var didSearchWholeFrame: Bool {
    passes.contains { if case .whole = $0 { true } else { false } }
  }

  init(_ reader: CodeReader, agreement: Int, passRate: FrameRate = MetadataOutput.usualPassRate) {
    (self.reader, self.agreement) = (reader, agreement)
    // A rate above the usual one also holds while codes are followed.
    let isUsual = passRate <= MetadataOutput.usualPassRate
    schedule = FramePasses(
      Self.passes, rate: passRate, fewestFrames: isUsual ? Self.fewestCropFrames : 0)
  }

  /// Finds the codes of a frame.
  ///
  /// - Parameters:
  ///   - image: The luma of the frame.
  ///   - area: The part of the frame to search; nil for the whole frame. Codes with their center
  ///     outside are left out.
  ///   - microseconds: The time of the frame, later than that of the previous frame.
  /// - Returns: The codes on whose text enough frames agree.
  mutating func look(
    at image: LumaImage, in area: PixelRect? = nil, microseconds: Int64
  ) -> [DetectedCode] {
    passes = []
    var found: [DetectedCode] = []
    if let effort = schedule.next(at: microseconds, isFollowing: !tracks.isEmpty) {
      passes.append(.whole(effort))
      found = image.search(area ?? image.area) { reader.read($0, effort) }
    }
    return add(found, in: image, area, microseconds: microseconds)
  }

  /// Adds the codes that a search of a whole frame found, and searches for the other followed codes.
  ///
  /// - Parameters:
  ///   - found: The found codes; empty if the frame was not searched.
  ///   - image: The luma of the frame.
  ///   - area: The part of the frame that counts; nil for the whole frame.
  ///   - microseconds: The time of the frame, later than that of the previous frame.
  /// - Returns: The codes on whose text enough frames agree.
  mutating func add(
    _ found: [DetectedCode], in image: LumaImage, _ area: PixelRect? = nil, microseconds: Int64
  ) -> [DetectedCode] {
    lookCount += 1
    var all = found + crops(in: image, at: microseconds, besides: found)
    all = CodeFilter.filtered(all).centered(in: area)
    follow(all, at: microseconds)
    return believed(all)
  }

  /// Reads the crops around followed codes that the pass over the frame did not find.
  private mutating func crops(
    in image: LumaImage, at microseconds: Int64, besides found: [DetectedCode]
  ) -> [DetectedCode] {
    var all: [DetectedCode] = []
    for track in tracks {
      let known = found + all
      guard !known.contains(where: { $0.key == track.code.key && isNear($0, track, microseconds) })
      else { continue }
      let rect = rect(of: track, at: microseconds).clamped(
        width: image.width, height: image.height)
      all += image.search(rect) { crop in
        passes.append(.crop(track.code.type, rect))
        return reader.read(crop, track.code.type, isRotated: track.isRotated)
      }
    }
    return all
  }

  /// The crop in which a followed code is expected.
  private func rect(of track: Track, at microseconds: Int64) -> PixelRect {
    let (center, before) = (track.center(at: microseconds), track.code.center)
    return track.code.searchArea(movedByX: center.x - before.x, y: center.y - before.y)
  }

  private func isNear(_ code: DetectedCode, _ track: Track, _ microseconds: Int64) -> Bool {
    let (a, b) = (code.center, track.center(at: microseconds))
    return max(abs(a.x - b.x), abs(a.y - b.y)) <= max(code.size, track.code.size)
  }

  /// Updates the followed codes.
  private mutating func follow(_ found: [DetectedCode], at microseconds: Int64) {
    var rest = found
    for index in tracks.indices {
      let track = tracks[index]
      let nearest = rest.indices
        .filter { rest[$0].key == track.code.key && isNear(rest[$0], track, microseconds) }
        .min { distance(rest[$0], track, microseconds) < distance(rest[$1], track, microseconds) }
      guard let nearest else {
        tracks[index].missCount += 1
        continue
      }
      tracks[index].move(to: rest.remove(at: nearest), at: microseconds)
    }
    // A followed code that now reads differently, such as a longer part of an ITF code, is replaced
    // by the new reading.
    tracks.removeAll { track in
      track.missCount > Self.maximumMisses
        || track.missCount > 0 && rest.contains { CodeFilter.areTogether($0, track.code) }
    }
    tracks += rest.map {
      Track(code: $0, microseconds: microseconds, isRotated: $0.isRotated)
    }
  }

  private func distance(_ code: DetectedCode, _ track: Track, _ microseconds: Int64) -> Double {
    let (a, b) = (code.center, track.center(at: microseconds))
    return abs(a.x - b.x) + abs(a.y - b.y)
  }

  /// Counts the frames that show each text, and returns the codes on whose text enough frames
  /// agree.
  private mutating func believed(_ found: [DetectedCode]) -> [DetectedCode] {
    sightings = sightings.filter { lookCount - $0.value.lastLook <= Self.memory }
    for key in Set(found.map(\.key)) {
      sightings[key, default: Sightings()].count += 1
      sightings[key]?.lastLook = lookCount
    }
    return found.filter { sightings[$0.key].map { $0.count >= agreement } ?? false }
  }
}

extension CodeTracker.Track {
  /// Updates the position and the velocity of the followed code from a later frame.
  fileprivate mutating func move(to code: DetectedCode, at time: Int64) {
    let elapsed = Double(time - microseconds)
    if elapsed > 0 {
      velocity = Point(
        x: (code.center.x - self.code.center.x) / elapsed,
        y: (code.center.y - self.code.center.y) / elapsed)
    }
    (self.code, microseconds, missCount) = (code, time, 0)
    isRotated = code.isRotated
  }
}

extension DetectedCode {
  /// The crop in which the code is expected after a motion in pixels.
  ///
  /// The margin at each side is a fraction of the code's size. More is added if the code moves.
  func searchArea(movedByX x: Double = 0, y: Double = 0, margin: Double = 0.15) -> PixelRect {
    let edges = edges
    let margin = margin * size + 8
    let (marginX, marginY) = (margin + abs(x) / 4, margin + abs(y) / 4)
    let (left, top) = (edges.left + x - marginX, edges.top + y - marginY)
    let width = edges.right - edges.left + 2 * marginX
    let height = edges.bottom - edges.top + 2 * marginY
    return PixelRect(
      x: Int(clamping: left), y: Int(clamping: top), width: Int(clamping: width.rounded(.up)),
      height: Int(clamping: height.rounded(.up)))
  }

  /// Whether a read that only expects upright codes might miss the code.
  var isRotated: Bool {
    guard corners.count == 4 else { return false }
    if isInverted { return true }
    guard type.isLinear else { return false }
    // The direction from the first to the last bar.
    let (x, y) = (corners[1].x - corners[0].x, corners[1].y - corners[0].y)
    return abs(y) > 0.4 * abs(x)
  }
}

extension Int {
  /// Rounds to an integer, clamped to the range of plausible pixel positions.
  fileprivate init(clamping value: Double) {
    self = Int(Swift.max(-1e6, Swift.min(1e6, value)))
  }
}
