// SPDX-License-Identifier: Apache-2.0

import Glibc
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

  /// The changes of the light in a recording.
  struct Light {
    /// The greatest changes first.
    var edges: [Edge] = []
    /// The time that the recording covers, in seconds.
    var range = 0.0..<0.0
  }

  /// An offset at which the light of two recordings agrees.
  struct Hypothesis {
    let pairs: [(Edge, Edge)]
    /// The offset in seconds.
    let offset: Double
    /// The total size of matching edges.
    let weight: Double
    /// The total size of great edges that the other recording covers and does not show.
    let missing: Double
    /// Offsets this near are those of the same edges, in seconds.
    let tolerance: Double
    /// The number of offsets at which unrelated lights would agree as well.
    fileprivate(set) var chance = 0.0

    /// Whether unrelated lights would hardly agree as well.
    var isCertain: Bool {
      chance <= (pairs.count == 1 ? FlashAlignment.lonelyChance : FlashAlignment.greatestChance)
    }

    /// The offset and its uncertainty.
    func measured(rival: Double) -> RecordingOffset {
      let points = pairs.map { FlashAlignment.point($0.0, $0.1) }
      let total = points.reduce(0) { $0 + $1.weight }
      return RecordingOffset(
        offset: offset, uncertainty: ConfidenceInterval.factor / total.squareRoot(),
        method: .flash, confidence: 1 - rival,
        time: points.reduce(0) { $0 + $1.weight * $1.x } / total, drift: nil,
        matchCount: points.count)
    }
  }

  /// The greatest weight of missing edges, relative to that of the matching ones.
  private static let greatestMissing = 0.5
  /// The least weight of a rival relative to the best hypothesis.
  ///
  /// A light that blinks twice matches once at a wrong offset.
  private static let rivalShare = 0.4
  /// The probability that unrelated edges match, once an offset makes one pair match.
  private static let edgeChance = 0.15
  /// The greatest chance of an answer, and of one from a single edge in each recording.
  ///
  /// One flash in each recording stays below it, and one flash among several does not.
  private static let greatestChance = 0.2
  private static let lonelyChance = 0.5
  /// The least size of an edge that must not be missing, relative to the greatest matching one.
  private static let greatEdge = 0.3

  /// Finds the times at which the light changed.
  ///
  /// A sensor sums the light of its exposure, so the first frame after a change may show only a
  /// fraction of the change. This fraction gives the time of the change within the frame. The
  /// exposure time is not known. Two thirds of a frame are assumed, and the deviation covers other
  /// exposure times.
  static func light(_ brightness: Brightness) -> Light {
    let (times, values) = (brightness.times, brightness.values)
    guard values.count >= 4, let start = times.first, let end = times.last, start < end else {
      return Light()
    }
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
    return Light(
      edges: Array(edges.sorted { $0.size > $1.size }.prefix(64)), range: start..<end)
  }

  /// Measures the offset between the two recordings.
  ///
  /// `limit` is the greatest offset in seconds; nil for any. `names` are the two recordings, for
  /// messages.
  ///
  /// - Throws: `MediaError` with `.nothingInCommon` or `.ambiguousMatch`.
  static func offset(
    _ first: Light, _ second: Light, limit: Double?, names: (String, String)
  ) throws(MediaError) -> RecordingOffset {
    let hypotheses = hypotheses(first, second, limit: limit)
    guard let best = hypotheses.first, best.isCertain else {
      throw .nothingInCommon(names, "the light in")
    }
    guard hypotheses.count == 1 else { throw .ambiguousLight(names) }
    return best.measured(rival: 0)
  }

  /// The offsets that the light permits, the one with the greatest changes first.
  ///
  /// A light that repeats permits several. An offset is not permitted if a recording does not show
  /// changes of the other that it should show.
  static func hypotheses(_ first: Light, _ second: Light, limit: Double?) -> [Hypothesis] {
    var found: [Hypothesis] = []
    for one in first.edges {
      for other in second.edges where one.isRising == other.isRising {
        let offset = one.time - other.time
        if let limit, abs(offset) > limit { continue }
        guard let hypothesis = hypothesis(first, second, at: offset) else { continue }
        found.append(hypothesis)
      }
    }
    found.sort { $0.weight > $1.weight }
    guard let best = found.first else { return [] }
    for index in found.indices {
      let great = greatestSize(found[index].pairs) * greatEdge
      // Each flash has two edges.
      let candidates = first.edges.reduce(0) { sum, one in
        sum
          + second.edges.count { other in
            one.isRising == other.isRising && min(one.size, other.size) >= great
              && limit.map { abs(one.time - other.time) <= $0 } ?? true
          }
      }
      found[index].chance =
        Double(candidates) / 2 * pow(edgeChance, Double(found[index].pairs.count - 1))
    }
    var kept: [Hypothesis] = []
    for hypothesis in found
    where hypothesis.weight >= best.weight * rivalShare
      && !kept.contains(where: { abs($0.offset - hypothesis.offset) <= $0.tolerance })
    {
      kept.append(hypothesis)
    }
    return kept
  }

  /// The hypothesis near an offset; nil if the recordings contradict it.
  private static func hypothesis(
    _ first: Light, _ second: Light, at offset: Double
  ) -> Hypothesis? {
    let pairs = pairs(first.edges, second.edges, at: offset)
    guard !pairs.isEmpty else { return nil }
    let points = pairs.map { point($0.0, $0.1) }
    let total = points.reduce(0) { $0 + $1.weight }
    let weight = weight(pairs)
    let great = Self.greatestSize(pairs) * greatEdge
    // A change at the end of a recording may be incomplete.
    func missing(_ edges: [Edge], _ matched: [Edge], _ shift: Double, _ range: Range<Double>)
      -> Double
    {
      edges.filter { edge in
        let time = edge.time + shift
        return edge.size >= great && !matched.contains(edge)
          && time > range.lowerBound + 3 * edge.frame && time < range.upperBound - 3 * edge.frame
      }.reduce(0) { $0 + $1.size }
    }
    let lost =
      missing(first.edges, pairs.map(\.0), -offset, second.range)
      + missing(second.edges, pairs.map(\.1), offset, first.range)
    guard lost <= weight * greatestMissing else { return nil }
    return Hypothesis(
      pairs: pairs, offset: points.reduce(0) { $0 + $1.weight * $1.y } / total, weight: weight,
      missing: lost, tolerance: 2 * pairs.reduce(0) { max($0, $1.0.frame, $1.1.frame) })
  }

  /// The time of a pair in the second recording, its offset, and the inverse variance.
  private static func point(
    _ one: Edge, _ other: Edge
  ) -> (x: Double, y: Double, weight: Double) {
    let variance = one.deviation * one.deviation + other.deviation * other.deviation
    return (x: other.time, y: one.time - other.time, weight: 1 / variance)
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

  /// The size of the greatest pair.
  private static func greatestSize(_ pairs: [(Edge, Edge)]) -> Double {
    pairs.map { min($0.0.size, $0.1.size) }.max() ?? 0
  }

  /// The total size of matching edges.
  private static func weight(_ pairs: [(Edge, Edge)]) -> Double {
    pairs.reduce(0) { $0 + min($1.0.size, $1.1.size) }
  }
}

extension MediaError {
  static func ambiguousLight(_ names: (String, String)) -> MediaError {
    MediaError(
      .ambiguousMatch,
      "the light in \(names.0) and \(names.1) matches at several offsets, because it repeats",
      recovery: "use one flash, or state the greatest possible offset")
  }
}
