// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankPlayback
import TestSupport
import Testing

/// The frame on screen at each host time, compared with a model in this file.
struct GoldenTableTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  static let speeds: [Rational] = [
    Rational(1, over: 32), Rational(1, over: 8), Rational(1, over: 4), Rational(1, over: 3),
    Rational(1, over: 2), Rational(4, over: 5), 1, Rational(3, over: 2), 2, Rational(17, over: 3),
    8, 32,
  ]

  /// The times of refreshes at 60 Hz, in nanoseconds after the start.
  private static let refreshes = (0...125).map { Int64($0) * 16_666_667 }

  /// Returns the frame at a composition time of a 240 fps clip.
  ///
  /// It is the frame that begins there, or in reverse the frame that ends there.
  private static func frame(
    at time: Rational, count: Int64 = 480, isBackward: Bool = false
  ) throws -> Int {
    let exact = time * 240
    let index =
      try isBackward
      ? exact.rounded(.towardPositiveInfinity) - 1 : exact.rounded(.towardNegativeInfinity)
    return Int(min(max(0, index), Int128(count) - 1))
  }

  /// Converts nanoseconds to seconds.
  private static func seconds(_ nanoseconds: Int64) -> Rational {
    Rational(Int128(nanoseconds), over: 1_000_000_000)
  }

  /// Returns the refreshes at which a player shows a different frame than the model.
  private static func differences(
    _ stage: Stage, delay: Int64 = 0, _ model: (Int64) throws -> Int?
  ) throws -> [String] {
    try refreshes.compactMap { time in
      let shown = stage.number(at: time)
      let wanted = try model(max(0, time - delay))
      return shown == wanted ? nil : "\(time) ns: \(shown ?? -1) for \(wanted ?? -1)"
    }
  }

  @Test(arguments: speeds) func `Each display refresh shows the frame due at its time`(
    _ speed: Rational
  ) throws {
    let asset = try Movies.painted(scratch)
    for isBackward in [false, true] {
      let stage = try Stage(asset)
      if isBackward { stage.player.seek(to: MediaTime(seconds: 2)) }
      stage.work()
      try stage.player.setRate(isBackward ? -speed : speed)
      let found = try Self.differences(stage) { time in
        let distance = speed * Self.seconds(time)
        return try Self.frame(at: isBackward ? 2 - distance : distance, isBackward: isBackward)
      }
      #expect(found.isEmpty, "\(speed) \(isBackward ? "backward" : "forward")")
      #expect(stage.player.ledger.late == 0)
      #expect(stage.player.ledger.isBalanced)
    }
  }

  @Test func `The playback test detects a player that is 100 ms late`() throws {
    let asset = try Movies.painted(scratch)
    for speed in Self.speeds {
      let stage = try Stage(asset)
      try stage.player.setRate(speed)
      let found = try Self.differences(stage, delay: 100_000_000) {
        try Self.frame(at: speed * Self.seconds($0))
      }
      // At 1/32 speed, 100 ms are less than one frame, so only some refreshes differ.
      #expect(!found.isEmpty, "\(speed)")
    }
  }

  @Test(arguments: [false, true]) func `A movie with B-frames plays in both directions`(
    _ isBackward: Bool
  ) throws {
    let asset = try Movies.painted(scratch, count: 300, gop: 60, reordered: true)
    let stage = try Stage(asset)
    if isBackward { stage.player.seek(to: MediaTime(seconds: 2)) }
    stage.work()
    try stage.player.setRate(isBackward ? -1 : 1)
    let found = try Self.differences(stage) { time in
      let distance = Self.seconds(time)
      let start = Rational(5, over: 4)
      return try Self.frame(
        at: isBackward ? start - distance : distance, count: 300, isBackward: isBackward)
    }
    #expect(found.isEmpty)
  }

  @Test func `Playback follows a speed ramp in both directions`() throws {
    let asset = try Movies.painted(scratch)
    var composition = Composition(try asset.mediaSource())
    // One second of source from speed 1 to 1/4 lasts 2/(1 + 1/4) = 1.6 s.
    try composition.setSpeedRamp(
      SpeedRamp(from: .normal, to: Speed(1, over: 4)),
      in: TimeRange(duration: MediaTime(seconds: 1)))
    for isBackward in [false, true] {
      let stage = try Stage(composition, of: [asset])
      if isBackward { stage.player.seek(to: composition.duration) }
      stage.work()
      try stage.player.setRate(isBackward ? -1 : 1)
      for time in Self.refreshes {
        let distance = Double(time) / 1e9
        let position = isBackward ? 2.6 - distance : distance
        let u = min(position, 1.6) / 1.6
        let source =
          position < 1.6 ? 1.6 * (u - 0.375 * u * u) : min(2, 1 + (position - 1.6))
        let exact = source * 240
        let shown = stage.number(at: time)
        // The model is in floating point, so instants at the edge of a frame are left out.
        guard position > 0, abs(exact - exact.rounded()) > 1e-4 else { continue }
        #expect(shown == Int(exact), "\(time) ns, backward: \(isBackward)")
      }
    }
  }

  @Test func `An edit can keep the playhead at the same composition time`() throws {
    let asset = try Movies.painted(scratch)
    let source = try asset.mediaSource()
    var slow = Composition(source)
    try slow.setSpeed(
      Speed(1, over: 2),
      in: TimeRange(start: MediaTime(1, over: 2), duration: MediaTime(1, over: 2)))
    let stage = try Stage(Composition(source), of: [asset])
    try stage.player.setRate(1)
    let edit = Self.refreshes[45]
    let found = try Self.differences(stage) { time in
      if time == edit {
        try stage.player.replaceComposition(slow, continuingAt: .sameTime)
      }
      let now = Self.seconds(time)
      let half = Rational(1, over: 2)
      // After the edit, 0.5 to 1.5 s of the composition play 0.5 to 1 s of the source.
      let position =
        time <= edit || now < half ? now : now < 3 * half ? half + (now - half) / 2 : now - half
      return try Self.frame(at: position)
    }
    #expect(found.isEmpty)
  }

  @Test func `An edit by default keeps the playhead at its source time`() throws {
    let asset = try Movies.painted(scratch)
    let source = try asset.mediaSource()
    var slow = Composition(source)
    try slow.setSpeed(Speed(1, over: 4), in: TimeRange(duration: slow.duration))
    let stage = try Stage(Composition(source), of: [asset])
    try stage.player.setRate(1)
    let edit = Self.refreshes[60]
    let found = try Self.differences(stage) { time in
      if time == edit { try stage.player.replaceComposition(slow) }
      let (now, changed) = (Self.seconds(time), Self.seconds(edit))
      return try Self.frame(at: now < changed ? now : changed + (now - changed) / 4)
    }
    #expect(found.isEmpty)
  }

  @Test func `A playback rate change does not move the playhead`() throws {
    let asset = try Movies.painted(scratch)
    let stage = try Stage(asset)
    try stage.player.setRate(1)
    let changes: [Int: Rational] = [
      30: 2, 50: Rational(-1, over: 2), 90: -1, 120: Rational(1, over: 8),
    ]
    var (base, since, rate) = (Rational.zero, Rational.zero, Rational.one)
    for (number, time) in Self.refreshes.enumerated() {
      let now = Self.seconds(time)
      let position = base + rate * (now - since)
      let wanted = try Self.frame(at: position, isBackward: rate < .zero)
      #expect(stage.number(at: time) == wanted, "refresh \(number)")
      if let next = changes[number] {
        // A change of the playback rate takes effect at the next whole audio sample.
        let sample = try (now * 48_000).rounded(.towardPositiveInfinity)
        let start = Rational(sample, over: 48_000)
        (base, since, rate) = (base + rate * (start - since), start, next)
        try stage.player.setRate(next)
      }
    }
  }
}
