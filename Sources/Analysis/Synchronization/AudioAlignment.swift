// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import OvercrankRetiming

/// The offset between two recordings' audio, to a fraction of a sample.
///
/// A coarse search finds the offset to about 0.1 ms. Then short blocks of the second signal are
/// matched with the first signal, each block separately. A line through their offsets gives the
/// offset and the drift. The scatter around the line gives the uncertainty.
struct AudioAlignment {
  /// A signal of one channel, and a copy of it at the rate of the coarse search.
  struct Signal {
    let samples: [Float]
    let coarse: [Float]
  }

  /// The sampling rate of the coarse search in hertz.
  static let coarseRate = 8_000

  private let first: Signal
  private let second: Signal
  private let rate: Double

  init(_ first: Signal, _ second: Signal, sampleRate: Int) {
    (self.first, self.second, rate) = (first, second, Double(sampleRate))
  }

  /// The result of the coarse search.
  struct Search {
    /// The evidence, with offsets in samples of the coarse rate.
    let evidence: CoarseAlignment.Evidence
    /// The time in the second signal for which the offsets were found, in seconds.
    let center: Double
  }

  /// Searches the offsets at which the signals agree.
  ///
  /// `limit` is the greatest offset in seconds; nil for any.
  func search(limit: Double?) -> Search {
    let (a, b) = (first.coarse, second.coarse)
    let limit = limit.map { Int(min($0, 1e6) * Double(Self.coarseRate)) }
    // In a long recording, clocks drift apart by more than a period of the audio, which blurs the
    // peak. So the loudest 30 s are searched first, and the whole recording only if they do not
    // match.
    let length = 30 * Self.coarseRate
    if b.count > 2 * length {
      let start = Self.loudest(b, length)
      let part = Array(b[start..<start + length])
      let found = CoarseAlignment(
        a, part, limit: limit, origin: start, neighborhood: Self.neighborhood
      )
      .evidence.moved(by: -start)
      let center = Double(start + length / 2) / Double(Self.coarseRate)
      switch found {
      case .one, .several: return Search(evidence: found, center: center)
      case .none, .contradiction: break
      }
    }
    let found = CoarseAlignment(a, b, limit: limit, origin: 0, neighborhood: Self.neighborhood)
      .evidence
    return Search(evidence: found, center: center(at: found.best?.offset ?? 0))
  }

  /// The middle of the common part at an offset, in seconds of the second signal.
  func center(at offset: Int) -> Double {
    let (a, b) = (first.coarse.count, second.coarse.count)
    return Double(max(0, -offset) + min(b, a - offset)) / 2 / Double(Self.coarseRate)
  }

  /// Offsets this near to each other belong to one peak, in samples of the coarse rate.
  static let neighborhood = 160

  /// Measures the offset.
  ///
  /// `limit` is the greatest offset in seconds; nil for any. `names` are the two recordings, for
  /// messages.
  ///
  /// - Throws: `MediaError` with `.nothingInCommon` or `.ambiguousMatch`.
  func offset(limit: Double?, names: (String, String)) throws(MediaError) -> RecordingOffset {
    let search = search(limit: limit)
    switch search.evidence {
    case .none, .contradiction: throw .nothingInCommon(names, "the audio of")
    case .several(let peaks): throw .ambiguousAudio(names, peaks.count)
    case .one(let peak, let rival):
      return try offset(at: peak, center: search.center, rival: rival, names: names)
    }
  }

  /// Measures the offset near a peak of the coarse search.
  ///
  /// - Throws: `MediaError` with `.nothingInCommon` if no block matches there.
  func offset(
    at peak: CoarseAlignment.Peak, center: Double, rival: Double, names: (String, String)
  ) throws(MediaError) -> RecordingOffset {
    let middle = Double(peak.offset) / Double(Self.coarseRate)
    let blocks = blockStarts(around: middle).compactMap {
      match($0, around: middle, center: center, peak.isInverted)
    }
    guard !blocks.isEmpty else { throw .nothingInCommon(names, "the audio of") }
    let start = max(0, -middle)
    let end = min(Double(second.samples.count) / rate, Double(first.samples.count) / rate - middle)
    let time = (start + end) / 2
    let points = blocks.map {
      WeightedLine.Sample(x: $0.time, y: $0.offset, weight: 1 / ($0.deviation * $0.deviation))
    }
    if points.count >= 6, let line = WeightedLine(points), line.points.count >= 6 {
      return RecordingOffset(
        offset: line.value(at: time), uncertainty: line.uncertainty(at: time), method: .audio,
        confidence: 1 - rival, time: time, drift: line.slope * 1e6,
        matchCount: line.points.count)
    }
    // With too few blocks for a line, the uncertainty follows from the noise in the blocks.
    let weight = points.reduce(0) { $0 + $1.weight }
    return RecordingOffset(
      offset: points.reduce(0) { $0 + $1.weight * $1.y } / weight,
      uncertainty: ConfidenceInterval.factor / weight.squareRoot(), method: .audio,
      confidence: 1 - rival,
      time: points.reduce(0) { $0 + $1.weight * $1.x } / weight, drift: nil,
      matchCount: points.count)
  }

  /// Returns the start of the part of a given length that has the most energy, in steps of half a
  /// second.
  private static func loudest(_ samples: [Float], _ length: Int) -> Int {
    let step = coarseRate / 2
    let sums = stride(from: 0, to: samples.count - step, by: step).map { start in
      samples[start..<start + step].reduce(0) { $0 + $1 * $1 }
    }
    let width = length / step
    guard sums.count > width else { return 0 }
    let energies = (0...sums.count - width).map { sums[$0..<$0 + width].reduce(0, +) }
    return (energies.indices.max { energies[$0] < energies[$1] } ?? 0) * step
  }

  /// A block of the second signal, matched with the first.
  private struct Block {
    /// The middle of the block in the second signal, in seconds.
    let time: Double
    /// The offset in seconds.
    let offset: Double
    /// The standard deviation of the offset due to noise, in seconds.
    let deviation: Double
  }

  private static let length = 4_096
  private static let sectionCount = 48
  /// The number of samples before and after a block that the fractional delay needs.
  private static let margin = 24

  /// Returns the start of the loudest block in each section of the common part.
  private func blockStarts(around middle: Double) -> [Int] {
    let (length, half) = (Self.length, Self.length / 2)
    let offset = Int((middle * rate).rounded())
    let start = max(0, -offset) + 2 * Self.margin
    let end = min(second.samples.count, first.samples.count - offset) - 2 * Self.margin
    guard end - start >= length else { return [] }
    let hops = (end - start) / half
    let energies = (0..<hops).map { hop in
      second.samples[start + hop * half..<start + (hop + 1) * half].reduce(0) { $0 + $1 * $1 }
    }
    let sections = min(Self.sectionCount, max(1, hops / 2))
    let chosen = (0..<sections).compactMap { section -> (start: Int, energy: Float)? in
      let range = section * hops / sections..<(section + 1) * hops / sections
      let best = range.dropLast().max {
        energies[$0] + energies[$0 + 1] < energies[$1] + energies[$1 + 1]
      }
      return best.map { (start + $0 * half, energies[$0] + energies[$0 + 1]) }
    }
    // Blocks more than 40 dB below the loudest contain little but noise.
    let loudest = chosen.map(\.energy).max() ?? 0
    return chosen.filter { $0.energy > loudest * 1e-4 }.map(\.start)
  }

  private func match(
    _ start: Int, around offset: Double, center: Double, _ isInverted: Bool
  ) -> Block? {
    let length = Self.length
    // The search reaches two samples of the coarse rate in both directions, plus the drift of two
    // clocks whose rates differ by 100 parts per million.
    let distance = abs(Double(start) / rate - center)
    let reach = Int((2 / Double(Self.coarseRate) + (distance + 1) * 1e-4) * rate) + 2
    let wanted = second.samples[start..<start + length].map { isInverted ? -$0 : $0 }
    let middle = start + Int((offset * rate).rounded())
    let from = middle - reach - Self.margin
    let to = middle + reach + length + Self.margin
    guard from >= 0, to <= first.samples.count else { return nil }
    let part = Array(first.samples[from..<to])
    var steps = DecimatedSignal(step: 1)
    steps.extend(to: part)
    let found = CrossCorrelation.best(
      CrossCorrelation.Search(wanted: wanted, middle: middle - from, reach: reach), in: part, steps)
    guard abs(found) < reach else { return nil }
    let position = middle - from + found
    let rest = CrossCorrelation.remainder(of: wanted, around: position, in: part)
    guard abs(rest) < 2 else { return nil }
    let whole = rest.rounded(.down)
    let (correlation, bandwidth) = Self.quality(
      wanted,
      FractionalDelay(rest - whole)
        .samples(of: part, from: position + Int(whole), count: length))
    guard correlation > 0.3, bandwidth > 0 else { return nil }
    // The Cramér-Rao bound: noise relative to the signal, over the samples and their bandwidth.
    let noise = max(1 / (correlation * correlation) - 1, 1e-9)
    let deviation = (noise / Double(length)).squareRoot() / bandwidth
    return Block(
      time: (Double(start) + Double(length) / 2) / rate,
      offset: (Double(from + position - start) + rest) / rate, deviation: deviation / rate)
  }

  /// The correlation coefficient of a block with its match, and the mean frequency of the block in
  /// radians per sample.
  private static func quality(
    _ wanted: [Float], _ match: [Float]
  ) -> (correlation: Double, bandwidth: Double) {
    var (product, own, other, slope) = (0.0, 0.0, 0.0, 0.0)
    for index in wanted.indices {
      let (x, y) = (Double(wanted[index]), Double(match[index]))
      product += x * y
      own += x * x
      other += y * y
      if index > 0 {
        let rise = x - Double(wanted[index - 1])
        slope += rise * rise
      }
    }
    guard own > 0, other > 0 else { return (0, 0) }
    return (product / (own * other).squareRoot(), (slope / own).squareRoot())
  }
}

extension CoarseAlignment.Evidence {
  /// The peak with the greatest correlation.
  var best: CoarseAlignment.Peak? {
    switch self {
    case .none, .contradiction: nil
    case .several(let peaks): peaks.first
    case .one(let peak, _): peak
    }
  }

  /// Whether both signals are audible.
  var isHeard: Bool { if case .none = self { false } else { true } }

  /// The evidence with other offsets, for a part of a recording.
  fileprivate func moved(by distance: Int) -> Self {
    func moved(_ peak: CoarseAlignment.Peak) -> CoarseAlignment.Peak {
      var peak = peak
      peak.offset += distance
      return peak
    }
    return switch self {
    case .none, .contradiction: self
    case .several(let peaks): .several(peaks.map(moved))
    case .one(let peak, let rival): .one(moved(peak), rival: rival)
    }
  }
}

extension MediaError {
  static func nothingInCommon(_ names: (String, String), _ what: String) -> MediaError {
    MediaError(
      .nothingInCommon, "\(what) \(names.0) and \(names.1) has nothing in common",
      recovery: "choose recordings of the same event, with a clap or a flash in all of them")
  }

  static func ambiguousAudio(_ names: (String, String), _ count: Int) -> MediaError {
    MediaError(
      .ambiguousMatch,
      count > 1
        ? "the audio of \(names.0) and \(names.1) matches at several offsets, because it repeats"
        : "too little of the audio of \(names.0) and \(names.1) agrees to be certain of an offset",
      recovery: "clap once near both microphones, or state the greatest possible offset")
  }
}
