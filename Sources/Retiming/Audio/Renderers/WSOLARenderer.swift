// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore

/// How the grains are cut of which a voice is made.
struct GrainShape: Sendable {
  /// How long a grain plays alone, and how long it fades into the next, in samples.
  let hold: Int
  let fade: Int
  /// How far from where a grain belongs one is looked for that fits, either way, in samples.
  let reach: Int
  /// How many samples of it are compared.
  let compared: Int
  /// Of how many samples sums are made, by which places are tried at first.
  let step: Int
  /// What plays 1:1 around onsets; nil to let them be cut as they come.
  let lock: TransientTimeMap.Extent?
  /// How far onsets that are no more than accents may be moved, either way, in samples.
  let freedom: Int

  /// Windows of 20 ms that overlap by half, 6.5 ms of search, and onsets kept.
  static func timeDomain(sampleRate: Int) -> GrainShape {
    let half = max(4, sampleRate / 100)
    return GrainShape(
      hold: 0, fade: half, reach: sampleRate * 13 / 2000,
      compared: half * 3 / 2,
      step: max(1, sampleRate / 11_000),
      lock: TransientTimeMap.Extent(before: 5, after: 5, sampleRate: sampleRate),
      freedom: sampleRate / 250)
  }

  /// Grains of 20 ms of which 8 ms are a fade, and 7 ms of search: at a stretch of 1.5 sound that
  /// goes on as it was is 6.7 ms away, so that a clap is heard once; and 70 Hz has half a period.
  static func lowQuality(sampleRate: Int) -> GrainShape {
    let fade = max(4, sampleRate / 125)
    return GrainShape(
      hold: sampleRate * 12 / 1000, fade: fade, reach: sampleRate * 7 / 1000, compared: fade,
      step: max(1, sampleRate / 11_000), lock: nil, freedom: 0)
  }
}

/// The source at another speed and its own pitch: grains of it, each where it belongs to within a
/// few milliseconds and there where it goes on from the one before most alike (WSOLA).
///
/// Where a grain belongs is always computed from the whole map, never from the grain before: what
/// the search moves does not add up. All channels move together, so that their phases stay.
final class WSOLARenderer: SegmentRenderer {
  private let shape: GrainShape
  private var map: TransientTimeMap
  private var detector: OnsetDetector?
  private var window: SourceWindow
  private var queue: SampleQueue
  /// The source sample from which positions in maps count.
  private let origin: Int64
  /// The output sample at which the next hop starts, counted from the piece's first one.
  private var position: Int
  /// The sample of the source, from `origin`, that plays at output sample zero of this grain.
  private var offset: Int
  /// How far behind that sample.
  private var between = FractionalDelay.none
  /// Where the piece ends, and the offset of what follows; nil where nothing runs on.
  private let landing: (position: Int, offset: Int)?
  private let fadeIn: [Float]
  /// The onset that was locked last, and where its grains are taken from.
  private var locked: (onset: Double, place: (offset: Int, between: FractionalDelay))?

  /// How far ahead of where they belong grains have been of late, in samples.
  private var bias = 0.0

  /// Makes a voice for a piece; `lead` samples before it and `tail` after it are made as well.
  init(_ piece: AudioPiece, shape: GrainShape, sampleRate: Int, channelCount: Int)
    throws(MediaError)
  {
    let position = try piece.position(at: -piece.lead)
    let nearest = try position.wholeNumber(.halfAwayFromZero, of: "the sample \(position)")
    let start = piece.entry ?? nearest
    let length = Int(piece.samples.count)
    self.shape = shape
    // An onset is judged by what was before.
    let lead = Int64(shape.reach + sampleRate / 20)
    let (first, overflow) = start.subtractingReportingOverflow(lead)
    guard !overflow else {
      throw MediaError(.notExact, "the sample \(position) is too far")
    }
    origin = first
    let base = try SpeedMap(piece, origin: first)
    map = TransientTimeMap(
      base,
      shape.lock ?? TransientTimeMap.Extent(before: 0, after: 0, sampleRate: sampleRate),
      bounds: base.source(at: 0)..<base.source(at: Double(length)))
    detector =
      shape.lock == nil
      ? nil : OnsetDetector(sampleRate: sampleRate, channelCount: channelCount)
    window = SourceWindow(from: first, channelCount: channelCount, step: shape.step)
    queue = SampleQueue(channelCount: channelCount, dropping: 0)
    self.position = -Int(piece.lead)
    offset = Int(start - first) + Int(piece.lead)
    landing = piece.exit.map { (length, Int($0 - first) - length) }
    fadeIn = Self.fade(shape.fade)
  }

  private static func fade(_ length: Int) -> [Float] {
    (0..<length).map { Float(0.5 - 0.5 * cos(.pi * (Double($0) + 0.5) / Double(length))) }
  }

  func next(_ count: Int, _ read: SampleReader) throws -> Planes {
    while queue.count < count { try hop(read) }
    return queue.take(count)
  }

  /// Makes the samples up to the end of the next fade.
  private func hop(_ read: SampleReader) throws {
    var hop = shape.hold + shape.fade
    if let landing, position < landing.position, landing.position - position < 2 * hop {
      // The last fade of the piece ends in what follows.
      hop = landing.position - position
      let fade = min(hop, shape.fade)
      try prepare(upTo: max(offset, landing.offset) + position + hop, read)
      write(hold: hop - fade, fade, to: landing.offset, .none)
      (offset, between) = (landing.offset, .none)
    } else {
      let next = try nextOffset(read)
      write(hold: shape.hold, shape.fade, to: next.offset, next.between)
      (offset, between) = next
    }
    position += hop
    // A lock takes from no further back than it is made up for.
    let first = min(offset + position, Int(map.base.source(at: Double(position))))
    let needed =
      first - 2 * (shape.reach + shape.fade) - Int(map.extent.lookAhead) - FractionalDelay.reach
    window.forget(before: origin + Int64(needed))
    map.forget(before: Double(needed))
  }

  /// Reads the source, and finds its onsets, up to a position.
  private func prepare(upTo end: Int, _ read: SampleReader) throws {
    try window.read(upTo: origin + Int64(end + FractionalDelay.reach + 1), read) { block in
      guard var finder = detector.take() else { return }
      // In grains a slow rise stays as it is; a lock would bring it early.
      for onset in finder.append(block) where !onset.isSoft {
        map.append(Double(onset.position), strength: onset.strength)
      }
      map.scanned(upTo: Double(finder.scanned))
      detector = finder
    }
  }

  /// Where the next grain is to be taken from.
  private func nextOffset(
    _ read: SampleReader
  ) throws -> (offset: Int, between: FractionalDelay) {
    // The middle of what will be heard of it.
    let middle = position + shape.hold + shape.fade + shape.hold / 2
    let start = position + shape.hold
    let ahead = shape.lock == nil ? 0 : Int(map.extent.lookAhead) + 1
    let span = shape.reach + max(shape.compared, 2 * shape.fade + shape.hold) + shape.fade
    let plain = Int(map.base.source(at: Double(middle)).rounded())
    try prepare(upTo: max(plain, offset + middle) + ahead + span, read)
    if let lock = map.lock(around: Double(middle), within: Double(shape.fade)) {
      if let locked, locked.onset == lock.source { return locked.place }
      // What is no more than an accent may move a little to go on from what plays.
      let freedom = Double(shape.freedom) * min(1, 2 * (1 - lock.strength))
      let place = try mostAlike(
        around: Int((lock.source - lock.output).rounded()), from: start, reach: Int(freedom), read)
      locked = (lock.source, place)
      return place
    }
    let exact = Int(map.source(at: Double(middle)).rounded()) - middle
    var nominal = exact - Int(bias.rounded())
    // What is heard of the grain must hold no onset: it would be heard twice.
    let length = Double(2 * shape.fade + shape.hold)
    let margin = Double(shape.fade) / 5
    let onsets = map.locks.map(\.source)
    func holds(_ offset: Int) -> Double? {
      let first = Double(offset + start)
      return onsets.first { first - margin < $0 && $0 < first + length + margin }
    }
    if let onset = holds(nominal) {
      let first = Int(onset < Double(nominal + middle) ? onset + margin : onset - margin - length)
      nominal = first - start
    }
    let isFree = holds(exact) == nil && holds(nominal) == nil
    let best = try mostAlike(
      around: nominal, from: start, reach: shape.reach, read,
      excludes: { holds(nominal + $0) != nil })
    // What goes on as it was is a hop ahead: where little else is alike, as in noise, the search
    // takes it whenever it is within reach, and all would come early (7 ms at a stretch of 8).
    if isFree {
      let limit = Double(shape.reach) / 2
      bias = min(max(bias + 0.05 * Double(best.offset - exact), -limit), limit)
    }
    return best
  }

  /// The offset near a nominal one with which the grain that starts at an output sample goes on
  /// best from what plays.
  private func mostAlike(
    around nominal: Int, from start: Int, reach: Int, _ read: SampleReader,
    excludes: (Int) -> Bool = { _ in false }
  ) throws -> (offset: Int, between: FractionalDelay) {
    let length = max(shape.compared, 2 * shape.fade + shape.hold)
    try prepare(upTo: max(nominal, offset) + start + reach + length + 2 * shape.fade, read)
    guard reach > 0 else { return (nominal, .none) }
    let base = Int(origin - window.range.lowerBound)
    let wanted = between.samples(
      of: window.mix, from: base + start + offset, count: shape.compared)
    let best = CrossCorrelation.best(
      CrossCorrelation.Search(
        wanted: wanted, middle: base + start + nominal, reach: reach, penalty: 0.01),
      in: window.mix, window.steps, excludes: excludes)
    let rest = CrossCorrelation.remainder(
      of: wanted, around: base + start + nominal + best, in: window.mix)
    let whole = Int(rest.rounded(.down))
    return (nominal + best + whole, FractionalDelay(rest - Double(whole)))
  }

  /// Writes a stretch of the grain that plays, and its fade into another.
  private func write(hold: Int, _ fade: Int, to next: Int, _ nextBetween: FractionalDelay) {
    let base = Int(origin - window.range.lowerBound) + position
    let gains = fade == shape.fade ? fadeIn : Self.fade(fade)
    queue.append(
      window.planes.map { plane in
        var made = between.samples(of: plane, from: base + offset, count: hold + fade)
        let incoming = nextBetween.samples(of: plane, from: base + next + hold, count: fade)
        for index in 0..<fade {
          made[hold + index] += (incoming[index] - made[hold + index]) * gains[index]
        }
        return made
      })
  }
}
