// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The offset between two recordings by the frames in which a light went on or off.
struct FlashAlignment {
  /// A change of the light between two frames.
  struct Edge: Hashable {
    /// The start of the first frame that shows the change, in seconds.
    let start: Double
    /// The fraction of the change that this frame shows; nil if it shows all of it.
    let share: Double?
    /// Whether the light became brighter.
    let isRising: Bool
    /// The absolute change of the mean brightness, which is from 0 to 255.
    let size: Double
    /// The duration of the frame in seconds.
    let frame: Double
    /// The estimated time of the change in seconds, and the standard deviation of this time.
    private(set) var time = 0.0
    private(set) var deviation = 0.0

    init(start: Double, share: Double?, isRising: Bool, size: Double, frame: Double) {
      (self.start, self.share, self.isRising) = (start, share, isRising)
      (self.size, self.frame) = (size, frame)
    }

    /// Estimates the time of the change.
    ///
    /// The constants in the formulas minimize the error if every exposure time up to a whole frame
    /// is equally likely.
    fileprivate mutating func estimate(isShort: Bool) {
      if let share {
        // A partial change happened while this frame was exposed: the smaller the fraction that the
        // frame shows, the later in the exposure the light changed.
        time = start + frame * (1 - share) * 2 / 3
        deviation = frame * (0.03 + (1 - share) * 0.24)
      } else {
        // A complete change happened before this frame was exposed.
        time = start - frame * (isShort ? 0.3 : 1.0 / 6)
        deviation = frame * (isShort ? 0.27 : 0.22)
      }
    }
  }

  /// The mean brightness of the frames, 0 to 255, and their times in seconds.
  struct Brightness {
    var times: [Double] = []
    var values: [Double] = []
  }

  /// Finds the times at which the light changed, the greatest changes first.
  ///
  /// A sensor sums the light of its exposure, so the first frame after a change may show only a
  /// fraction of the change. This fraction gives the time of the change within the frame. The
  /// exposure time is not known. Two thirds of a frame are assumed, and the deviation covers other
  /// exposure times.
  static func edges(_ brightness: Brightness) -> [Edge] {
    let (times, values) = (brightness.times, brightness.values)
    guard values.count >= 4 else { return [] }
    let steps = zip(values.dropFirst(), values).map { $0 - $1 }
    let magnitudes = steps.map { abs($0) }.sorted()
    // Motion and noise change the brightness of most frames a little. A change of the light must be
    // far larger than the median of these changes.
    let least = max(2, 12 * magnitudes[magnitudes.count / 2])
    var edges: [Edge] = []
    var index = 0
    while index < steps.count {
      guard abs(steps[index]) >= least else {
        index += 1
        continue
      }
      let isRising = steps[index] > 0
      // A change that begins during an exposure may extend over two frames.
      let next = index + 1 < steps.count ? steps[index + 1] : 0
      let goesOn = next * steps[index] > 0 && abs(next) >= least / 4
      let total = steps[index] + (goesOn ? next : 0)
      let frame = times[index + 1] - times[index]
      // The fraction of the change that the first frame shows.
      let share = goesOn ? min(1, steps[index] / total) : 1
      edges.append(
        Edge(
          start: times[index + 1], share: share < 0.97 ? share : nil, isRising: isRising,
          size: abs(total), frame: frame))
      index += goesOn ? 2 : 1
    }
    // If no change falls within an exposure, the exposures are probably short.
    let isShort = edges.allSatisfy { $0.share == nil }
    for index in edges.indices { edges[index].estimate(isShort: isShort) }
    return Array(edges.sorted { $0.size > $1.size }.prefix(64))
  }

  /// Measures the offset between the two recordings.
  ///
  /// `limit` is the greatest offset in seconds; nil for any. `names` are the two recordings, for
  /// messages.
  ///
  /// - Throws: `MediaError` with `.nothingInCommon` or `.ambiguousMatch`.
  static func offset(
    _ first: [Edge], _ second: [Edge], limit: Double?, names: (String, String)
  ) throws(MediaError) -> RecordingOffset {
    guard !first.isEmpty, !second.isEmpty else { throw .nothingInCommon(names, "the light in") }
    var best: [(Edge, Edge)] = []
    var candidates: [(offset: Double, weight: Double)] = []
    for one in first {
      for other in second where one.isRising == other.isRising {
        let offset = one.time - other.time
        if let limit, abs(offset) > limit { continue }
        let pairs = Self.pairs(first, second, at: offset)
        candidates.append((offset, Self.weight(pairs)))
        if Self.weight(pairs) > Self.weight(best) { best = pairs }
      }
    }
    guard !best.isEmpty else { throw .nothingInCommon(names, "the light in") }
    let points = best.map { one, other in
      let variance = one.deviation * one.deviation + other.deviation * other.deviation
      return (x: other.time, y: one.time - other.time, weight: 1 / variance)
    }
    let total = points.reduce(0) { $0 + $1.weight }
    let offset = points.reduce(0) { $0 + $1.weight * $1.y } / total
    let tolerance = 2 * best.reduce(0) { max($0, $1.0.frame, $1.1.frame) }
    let rival =
      candidates.filter { abs($0.offset - offset) > tolerance }.map(\.weight).max() ?? 0
    guard rival <= 0.85 * Self.weight(best) else {
      throw MediaError(
        .ambiguousMatch,
        "the light in \(names.0) and \(names.1) matches at several offsets, because it repeats",
        recovery: "use one flash, or state the greatest possible offset")
    }
    return RecordingOffset(
      offset: offset, uncertainty: ConfidenceInterval.factor / total.squareRoot(), method: .flash,
      confidence: 1 - rival / Self.weight(best),
      time: points.reduce(0) { $0 + $1.weight * $1.x } / total, drift: nil,
      matchCount: points.count)
  }

  /// Returns pairs of an edge from each recording that show the same change, if `offset` is the
  /// offset of the recordings.
  ///
  /// The times of a pair may deviate from the offset by at most one frame of each recording.
  private static func pairs(
    _ first: [Edge], _ second: [Edge], at offset: Double
  ) -> [(Edge, Edge)] {
    var taken: Set<Int> = []
    return first.compactMap { one in
      let near = second.indices.filter {
        let other = second[$0]
        return !taken.contains($0) && one.isRising == other.isRising
          && abs(one.time - other.time - offset) <= one.frame + other.frame
      }
      let distance = { (index: Int) in abs(one.time - second[index].time - offset) }
      guard let nearest = near.min(by: { distance($0) < distance($1) }) else { return nil }
      taken.insert(nearest)
      return (one, second[nearest])
    }
  }

  /// The total size of the matching edges; of each pair, the smaller edge counts.
  private static func weight(_ pairs: [(Edge, Edge)]) -> Double {
    pairs.reduce(0) { $0 + min($1.0.size, $1.1.size) }
  }
}
