// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// Random exports of jittered sources.
///
/// The painted numbers show which source frame each output frame shows.
struct FrameRuleTests {
  /// The random seeds: all 500 in a full test run, otherwise the first 40.
  private static let seeds: Range<UInt64> =
    0..<UInt64(RunSize.cases(40, full: 500))

  /// One of eight sources, shared by several seeds.
  ///
  /// Frame times jitter by up to half a frame period, and some sources have B-frames.
  private static func recipe(_ kind: UInt64) -> MovieRecipe {
    var generator = SeededGenerator(seed: kind)
    let rate: Int64 = [120, 240, 100, 60][Int(kind % 4)]
    let count = 120
    var recipe = MovieRecipe.constant(rate, count: Int64(count), timescale: 240_000)
    let step = 240_000 / rate
    recipe.times = recipe.times.map {
      $0 + Int64.random(in: -step * 2 / 5...step * 2 / 5, using: &generator)
    }
    recipe.times[0] = 0
    recipe.end = 240_000 * Int64(count) / rate + step
    return kind % 2 == 0 ? recipe : recipe.h264(gop: 30, reordered: kind % 8 == 1)
  }

  @Test(arguments: seeds)
  func `Each output frame shows the source frame due at its time`(seed: UInt64) throws {
    let directory = try Scratch()
    let asset = try Asset.made(Self.recipe(seed % 8), in: directory)
    var random = SeededGenerator(seed: seed + 1_000)
    let (above, below) = [(30, 1), (30_000, 1_001), (24, 1), (60, 1), (25, 2)][Int(seed % 5)]
    let rate = FrameRate(Int(above), over: Int(below))
    // Up to three ranges have different speeds. The rest plays at normal speed.
    let total = try asset.duration.nanoseconds(.towardNegativeInfinity) / 1_000_000
    var cuts = Set((0..<6).map { _ in Int64.random(in: 0...total, using: &random) }).sorted()
    if cuts.count % 2 == 1 { cuts.removeLast() }
    let speeds = [(1, 8), (1, 4), (2, 3), (3, 1), (1, 1), (7, 5), (1, 16)]
    let changes = try stride(from: 0, to: cuts.count, by: 2).map { position in
      let (over, under) = speeds.randomElement(using: &random) ?? (1, 1)
      return (
        range: try range(cuts[position], cuts[position + 1]),
        speed: try speed(Int64(over), Int64(under))
      )
    }
    let composition = try asset.retimed(changes)
    var settings = ExportSettings(path: directory.file("out.mov"), mode: .constant(rate))
    let sampling = seed % 3 == 0 ? FrameSampling.nearest : .hold
    settings.render { ($0.encoding, $0.sampling) = (.ffv1, sampling) }
    let report = try ExportSession(composition, of: asset).export(settings)

    let numbers = try Asset(path: report.path).numbers()
    let slots = composition.duration.seconds * rate.framesPerSecond
    let exact = try Int(slots.rounded(.towardPositiveInfinity))
    // The last output frame may be missing if the rest of the composition is shorter than a source
    // tick.
    #expect(numbers.count == exact || numbers.count == exact - 1)
    let shown = try composition.shownTimes(of: asset, isForSlots: sampling == .hold)
    let times = numbers.indices.map { Rational(Int128($0 * below), over: Int128(above)) }
    var due = times.map { time in
      let held = shown.lastIndex { $0.time <= time } ?? 0
      // After the middle between two frames, the second frame is nearer.
      let isNearer =
        sampling == .nearest && held + 1 < shown.count
        && shown[held + 1].time - time < time - shown[held].time
      return isNearer ? held + 1 : held
    }
    if sampling == .hold {
      let perSlot = Rational(Int128(below), over: Int128(above))
      try Self.spread(&due, times, shown.map(\.time), over: composition, perSlot) {
        shown[$0].segment
      }
    }
    #expect(numbers == due.map { shown[$0].index })
    let skipped = shown.indices.count { !due.contains($0) }
    #expect(report.framesSkipped == Int64(skipped))
  }

  /// Moves each frame that no output frame shows to the previous output frame, if possible.
  private static func spread(
    _ due: inout [Int], _ slots: [Rational], _ times: [Rational], over composition: Composition,
    _ perSlot: Rational, segment: (Int) -> Int
  ) throws {
    /// Moves a source frame to the last output frame before its time. Returns false if that is
    /// impossible.
    func move(_ frame: Int, _ due: inout [Int]) throws -> Bool {
      guard let slot = slots.lastIndex(where: { $0 < times[frame] }), frame > 0 else {
        return false
      }
      let late = times[frame] - slots[slot]
      let holder = due[slot]
      guard late <= slots[slot] - times[frame - 1],
        late * Rational(2) <= perSlot, holder < frame,
        segment(holder) == segment(frame)
      else { return false }
      // The source frame in this output frame must first move to another output frame, if no other
      // output frame shows it.
      if due.count(where: { $0 == holder }) < 2 {
        guard try move(holder, &due) else { return false }
      }
      due[slot] = frame
      return true
    }
    for frame in times.indices where !due.contains(frame) {
      let part = composition.segments[segment(frame)]
      let slotCount = part.target.duration / perSlot
      let frameCount = times.indices.count { segment($0) == segment(frame) }
      guard slotCount >= Rational(Int128(frameCount) * 99, over: 100) else { continue }
      var changed = due
      if try move(frame, &changed) { due = changed }
    }
  }

  /// Timestamps as a camera driver sets them, early or late by up to a fifth of a frame period.
  @Test(arguments: [0, 1, 2] as [UInt64])
  func `Every jittered frame is shown if the output rate suffices`(seed: UInt64) throws {
    let directory = try Scratch()
    var recipe = MovieRecipe.constant(240, count: 300, timescale: 1_000_000)
    var generator = SeededGenerator(seed: seed)
    for index in recipe.times.indices.dropFirst() {
      recipe.times[index] += Int64.random(in: -800...800, using: &generator)
    }
    let asset = try Asset.made(recipe, in: directory)
    let cases: [(slowness: Int64, rate: Int64, most: Int)] = [
      (8, 30, 1), (8, 60, 2), (4, 60, 1), (16, 30, 2),
    ]
    for (slowness, rate, most) in cases {
      let composition = try asset.retimed([
        (TimeRange(duration: asset.duration), speed(1, slowness))
      ])
      var settings = ExportSettings(
        path: directory.file("\(slowness)-\(rate).mov"), mode: .constant(FrameRate(Int(rate))))
      settings.render { $0.encoding = .mjpeg }
      let report = try ExportSession(composition, of: asset).export(settings)
      let numbers = try Asset(path: report.path).numbers()
      #expect(report.framesSkipped == 0)
      #expect(Set(numbers) == Set(0..<300))
      if most == 1 { #expect(numbers.count - Set(numbers).count <= 1) }
    }
  }

  @Test func `A 240 fps clip at 1/8 speed shows each frame once at 30 fps`() throws {
    let directory = try Scratch()
    let asset = try Asset.made(.constant(240, count: 60, timescale: 240_000), in: directory)
    let composition = try asset.retimed([(TimeRange(duration: asset.duration), speed(1, 8))])
    for sampling in FrameSampling.allCases {
      var settings = ExportSettings(
        path: directory.file("\(sampling).mov"), mode: .constant(FrameRate(30)))
      settings.render { $0.encoding = .mjpeg }
      settings.render { $0.sampling = sampling }
      let report = try ExportSession(composition, of: asset).export(settings)
      #expect(try Asset(path: report.path).numbers() == (0..<60).map { $0 })
      #expect(report.framesDuplicated == 0 && report.framesSkipped == 0 && report.sparse == [])
    }
  }

  @Test func `The export plan reports ranges with too few source frames`() throws {
    let directory = try Scratch()
    let asset = try Asset.made(.constant(60, count: 120, timescale: 240_000), in: directory)
    let composition = try asset.retimed([(range(500, 1_000), speed(1, 8))])
    let settings = ExportSettings(
      path: directory.file("out.mov"), mode: .constant(FrameRate(30)))
    let plan = try ExportSession(composition, of: asset).plan(settings)
    let slow = try TimeRange(start: .milliseconds(500), end: .milliseconds(4_500))
    #expect(plan.sparse.map(\.range) == [slow])
    #expect(plan.sparse.map(\.framesPerSecond) == [Rational(15, over: 2)])
  }
}
