// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore

/// The grain parameters of WSOLA; all lengths are in samples.
struct GrainShape: Sendable {
  /// The length of the unfaded part of a grain (`hold`), and of the crossfade into the next grain
  /// (`fade`).
  let hold: Int
  let fade: Int
  /// The greatest distance from the nominal position that is searched, in each direction.
  let reach: Int
  /// The number of samples that the cross-correlation compares.
  let compared: Int
  /// The decimation factor of the coarse search.
  let step: Int
  /// The extent of 1:1 playback around onsets; nil if onsets are not detected.
  let lock: TransientTimeMap.Extent?
  /// The greatest distance by which a weak onset may miss its exact time, in each direction.
  let freedom: Int

  /// Windows of 20 ms that overlap by half, a search of 6.5 ms, and preserved onsets.
  static func timeDomain(sampleRate: Int) -> GrainShape {
    let half = max(4, sampleRate / 100)
    return GrainShape(
      hold: 0, fade: half, reach: sampleRate * 13 / 2000,
      compared: half * 3 / 2,
      step: max(1, sampleRate / 11_000),
      lock: TransientTimeMap.Extent(before: 5, after: 5, sampleRate: sampleRate),
      freedom: sampleRate / 250)
  }

  /// Grains of 20 ms with a fade of 8 ms and a search of 7 ms.
  ///
  /// At a stretch of 1.5 a grain's natural continuation lies 6.7 ms from its nominal position. The
  /// search finds it there, so a clap is heard once. The search also covers half a period of 70 Hz,
  /// so it can match the phase of any higher tone.
  static func lowQuality(sampleRate: Int) -> GrainShape {
    let fade = max(4, sampleRate / 125)
    return GrainShape(
      hold: sampleRate * 12 / 1000, fade: fade, reach: sampleRate * 7 / 1000, compared: fade,
      step: max(1, sampleRate / 11_000), lock: nil, freedom: 0)
  }
}

/// A renderer that keeps the pitch, using WSOLA (waveform-similarity overlap-add).
///
/// Each grain is taken near its nominal position, where it best continues the previous grain.
/// Nominal positions come from the map and not from previous grains, so search offsets do not
/// accumulate. All channels use the same grains and stay in phase.
final class WSOLARenderer: SegmentRenderer {
  private let shape: GrainShape
  private var map: TransientTimeMap
  private var detector: OnsetDetector?
  private var window: SourceWindow
  private var queue: SampleQueue
  /// The source sample to which positions in maps are relative.
  private let origin: Int64
  /// The output sample at which the next hop starts, relative to the piece's first sample.
  private var position: Int
  /// The source position minus the output position in the current grain, in samples.
  ///
  /// Source positions are relative to `origin`.
  private var offset: Int
  /// The fractional part of `offset`.
  private var between = FractionalDelay.none
  /// The end of the piece and the offset at which the next piece copies the source; nil if no copy
  /// continues this piece.
  private let landing: (position: Int, offset: Int)?
  private let fadeIn: [Float]
  /// The last preserved onset and the offset chosen for it, which all grains around the onset
  /// share.
  private var locked: (onset: Double, match: (offset: Int, between: FractionalDelay))?

  /// The correction in samples that is subtracted from exact offsets to get nominal offsets.
  private var bias = 0.0

  /// Creates a renderer for a piece, including its lead and tail.
  init(_ piece: AudioPiece, shape: GrainShape, sampleRate: Int, channelCount: Int)
    throws(MediaError)
  {
    let position = try piece.position(at: -piece.lead)
    let nearest = try position.wholeNumber(.halfAwayFromZero, of: "the sample \(position)")
    let start = piece.entry ?? nearest
    let length = Int(piece.samples.count)
    self.shape = shape
    // The onset detector compares an onset with the samples before it, so reading starts 50 ms
    // before the piece.
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

  /// Renders one hop: the hold and the crossfade of the current grain.
  private func hop(_ read: SampleReader) throws {
    var hop = shape.hold + shape.fade
    if let landing, position < landing.position, landing.position - position < 2 * hop {
      // The last crossfade leads into the samples that the next piece copies, so the two pieces
      // join without a click.
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
    // The next grain starts near `first`. A grain at an onset in a 1:1 section may start earlier,
    // but by less than the look-ahead, so samples farther before `first` than the look-ahead and
    // the search are not needed.
    let first = min(offset + position, Int(map.base.source(at: Double(position))))
    let needed =
      first - 2 * (shape.reach + shape.fade) - Int(map.extent.lookAhead) - FractionalDelay.reach
    window.forget(before: origin + Int64(needed))
    map.forget(before: Double(needed))
  }

  /// Reads the source and detects onsets up to a position.
  private func prepare(upTo end: Int, _ read: SampleReader) throws {
    try window.read(upTo: origin + Int64(end + FractionalDelay.reach + 1), read) { block in
      guard var finder = detector.take() else { return }
      // A slow rise needs no 1:1 section: grains are not stretched, so they keep the shape of the
      // rise. Such a section would only make the rise early.
      for onset in finder.append(block) where !onset.isSoft {
        map.append(Double(onset.position), strength: onset.strength)
      }
      map.scanned(upTo: Double(finder.scanned))
      detector = finder
    }
  }

  /// Returns the offset of the next grain.
  private func nextOffset(
    _ read: SampleReader
  ) throws -> (offset: Int, between: FractionalDelay) {
    // The output sample at the center of the audible part of the next grain.
    let middle = position + shape.hold + shape.fade + shape.hold / 2
    let start = position + shape.hold
    let ahead = shape.lock == nil ? 0 : Int(map.extent.lookAhead) + 1
    let span = shape.reach + max(shape.compared, 2 * shape.fade + shape.hold) + shape.fade
    let plain = Int(map.base.source(at: Double(middle)).rounded())
    try prepare(upTo: max(plain, offset + middle) + ahead + span, read)
    if let lock = map.lock(around: Double(middle), within: Double(shape.fade)) {
      if let locked, locked.onset == lock.source { return locked.match }
      // The grain may be shifted from the exact time of a weak onset, if its waveform then
      // continues the current grain better. A strong onset must keep its exact time.
      let freedom = Double(shape.freedom) * min(1, 2 * (1 - lock.strength))
      let match = try bestMatch(
        around: Int((lock.source - lock.output).rounded()), from: start, reach: Int(freedom), read)
      locked = (lock.source, match)
      return match
    }
    let exact = Int(map.source(at: Double(middle)).rounded()) - middle
    var nominal = exact - Int(bias.rounded())
    // Grains of the locked section already play the onset. Other grains must not contain this
    // onset, or it would be heard twice.
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
    let best = try bestMatch(
      around: nominal, from: start, reach: shape.reach, read,
      excludes: { holds(nominal + $0) != nil })
    // In noise only the samples that directly follow the current grain match well. The search picks
    // them whenever they are within reach, which would make all audio early (7 ms at a stretch of
    // 8). `bias` therefore accumulates the measured displacement and corrects nominal positions,
    // until the displacement is zero on average.
    if isFree {
      let limit = Double(shape.reach) / 2
      bias = min(max(bias + 0.05 * Double(best.offset - exact), -limit), limit)
    }
    return best
  }

  /// Returns the offset near `nominal` at which the next grain best continues the current grain.
  private func bestMatch(
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

  /// Writes the unfaded part of the current grain and the crossfade into the next grain.
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
