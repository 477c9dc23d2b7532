// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Random edits compared with the same edits of a reference model, which is a function of time.
struct CompositionModelTests {
  @Test(
    "Random edits match a reference model of the composition", arguments: 0..<150 as Range<UInt64>)
  func randomEdits(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let sources = try [("a", 2400), ("b", 7), ("c", 100)].map { path, length in
      try MediaSource(
        path: path, duration: MediaTime(Int64(length), over: path == "b" ? 1 : 240))
    }
    var composition = Composition(sources[0])
    var model = Model()
    try model.insert(TimeRange(duration: sources[0].duration), of: sources[0], at: .zero)
    var refused = 0
    for _ in 0..<14 {
      let before = composition
      var edited = model
      do {
        try Self.edit(&composition, &edited, sources, &random)
        model = edited
      } catch let error as MediaError {
        // An edit is refused only if a `MediaTime` cannot store one of its times, and then it
        // changes nothing.
        #expect(error.code == .notExact)
        #expect(composition == before)
        refused += 1
        continue
      }
      try composition.validateSegments()
      try Self.compare(composition, model, &random)
    }
    #expect(try throughJSON(composition) == composition)
    #expect(refused <= 2)
  }

  @Test(
    "Random ramps and reversals match a reference model",
    arguments: 0..<100 as Range<UInt64>)
  func randomMotions(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let source = try MediaSource(path: "a", duration: MediaTime(seconds: 10))
    var composition = Composition(source)
    var model = Model()
    try model.insert(TimeRange(duration: source.duration), of: source, at: .zero)
    var (changed, overflown) = (0, 0)
    for _ in 0..<8 {
      let before = composition
      var edited = model
      do {
        try Self.move(&composition, &edited, &random)
      } catch let error as MediaError {
        // A sum of many odd fractions may not fit in a `MediaTime`.
        #expect([.notExact, .cutInRamp, .overflow].contains(error.code))
        if error.code != .overflow { #expect(composition == before) }
        continue
      }
      changed += 1
      model = edited
      try composition.validateSegments()
      #expect(try throughJSON(composition) == composition)
      #expect(composition.duration.seconds == model.duration)
      for _ in 0..<12 {
        // The instant is inside a segment, since a reversed segment shows the previous frame at a
        // cut.
        let segment = try #require(composition.segments.randomElement(using: &random))
        let part = Rational(.random(in: 1..<97, using: &random), over: 97)
        let instant = segment.target.duration * part + segment.target.start.seconds
        do {
          let expected = try model.visibleFrame(instant)
          guard expected?.time.isValid ?? true else {
            overflown += 1
            continue
          }
          #expect(try composition.visibleFrame(at: instant) == expected)
        } catch let error as MediaError {
          // Ramps of ramps make fractions too long to compare.
          #expect(error.code == .overflow)
          overflown += 1
        }
      }
    }
    #expect(changed >= 2 && overflown <= 6 * changed)
  }

  /// Makes the same random change of speed or direction in the composition and in the model, inside
  /// one segment or across several.
  private static func move(
    _ composition: inout Composition, _ model: inout Model, _ random: inout SeededGenerator
  ) throws {
    guard let segment = composition.segments.randomElement(using: &random) else { return }
    func time(_ step: Int64) throws -> MediaTime {
      try MediaTime(
        segment.target.duration * Rational(Int128(step), over: 4) + segment.target.start.seconds)
    }
    let start = Int64.random(in: 0..<4, using: &random)
    let range = try TimeRange(
      start: time(start), end: time(.random(in: start + 1...4, using: &random)))
    switch Int.random(in: 0..<4, using: &random) {
    case 0:
      // The instant is not at the start of a segment, so that the same frame is shown on both sides
      // of it.
      let instant = try time(Int64.random(in: 1..<4, using: &random))
      let length = MediaTime(.random(in: 1...240, using: &random), over: 120)
      try composition.freezeFrame(at: instant, for: length)
      try model.freeze(at: instant, for: length)
    case 1:
      try composition.reverse(range)
      try model.reverse(range)
    default:
      let speeds = try [(1, 1), (1, 8), (2, 1), (1, 4)].map { try Speed.of($0, $1) }
      let ramp = SpeedRamp(
        from: try #require(speeds.randomElement(using: &random)),
        to: try #require(speeds.randomElement(using: &random)),
        easing: Bool.random(using: &random) ? .linear : .easeInOut)
      try composition.setSpeedRamp(ramp, in: range)
      try model.ramp(ramp, range)
    }
  }

  /// Makes the same random edit in the composition and in the model, at any times.
  private static func edit(
    _ composition: inout Composition, _ model: inout Model, _ sources: [MediaSource],
    _ random: inout SeededGenerator
  ) throws {
    let ticks = max(2, try composition.duration.converted(to: 240, rounding: .towardZero).value)
    let ends = [
      Int64.random(in: 0...ticks - 1, using: &random), .random(in: 1...ticks, using: &random),
    ].sorted()
    let range = try TimeRange.of(ends[0], max(ends[1], ends[0] + 1), per: 240)
    switch Int.random(in: 0..<5, using: &random) {
    case 0:
      guard let source = sources.randomElement(using: &random) else { return }
      let length = try source.duration.converted(to: 240, rounding: .towardZero).value
      let start = Int64.random(in: 0..<length, using: &random)
      let end = Int64.random(in: start + 1...length, using: &random)
      let part = try TimeRange.of(start, end, per: 240)
      let time = MediaTime(
        .random(in: 0...ticks + 100, using: &random), over: 240)
      try composition.insertTimeRange(part, of: source, at: time)
      try model.insert(part, of: source, at: time)
    case 1:
      let late = try TimeRange.of(ends[0], ends[0] + ends[1] / 2 + 1, per: 240)
      try composition.insertEmptyTimeRange(late)
      try model.insertEmpty(late)
    case 2 where composition.duration > MediaTime(seconds: 3) && range.end <= composition.duration:
      try composition.removeTimeRange(range)
      try model.remove(range)
    default:
      guard range.end <= composition.duration else { return }
      let stretches: [(Int64, Int64)] = [(8, 1), (1, 2), (2, 1), (1, 3), (4, 3), (1, 1)]
      let (above, below) = stretches.randomElement(using: &random) ?? (1, 1)
      let length = try MediaTime(
        range.duration * Rational(Int128(above), over: Int128(below)))
      try composition.scaleTimeRange(range, toDuration: length)
      try model.scale(range, to: length)
    }
  }

  private static func compare(
    _ composition: Composition, _ model: Model, _ random: inout SeededGenerator
  ) throws {
    #expect(composition.duration.seconds == model.duration)
    var instants = composition.segments.map(\.target.start.seconds)
    for _ in 0..<12 {
      let part = Rational(.random(in: 0..<9973, using: &random), over: 9973)
      instants.append(model.duration * part)
    }
    for instant in instants {
      #expect(try composition.visibleFrame(at: instant) == model.visibleFrame(instant))
    }
  }
}
