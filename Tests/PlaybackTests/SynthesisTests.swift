// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

@testable import OvercrankPlayback

/// Slow playback that synthesizes frames for refreshes between captured frames.
///
/// A texture at 25 fps moves 4 pixels per frame, and the screen has 50 refreshes per second.
struct SynthesisTests {
  private static let (width, height) = (96, 64)
  private static let texture = MovingTexture(seed: 5)
  private static let period: Int64 = 20_000_000
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static func frame(_ position: Double) throws -> MediaFrame {
    try texture.frame(width, height, movedBy: position * 4)
  }

  private func movie(_ frames: [MediaFrame]? = nil) throws -> Asset {
    let frames = try frames ?? (0..<20).map { try Self.frame(Double($0)) }
    return try .lossless(frames, rate: 25, at: scratch.file("clip.mov"))
  }

  private func stage(
    _ asset: Asset, _ sampling: FrameSampling = .flowFast, _ composition: Composition? = nil
  ) throws -> Stage {
    try Stage(composition ?? Composition(asset.mediaSource()), of: [asset]) {
      ($0.sampling, $0.refreshRate) = (sampling, 50)
    }
  }

  /// Does all the work that is due at a refresh, and returns the frame that it shows.
  private func refresh(
    _ stage: Stage, _ number: Int, shift: Int64 = 0, synthesizes: Bool = true
  ) throws -> PlayerFrame {
    stage.clock.set(Stage.start + Int64(number) * Self.period + shift)
    let frame = try #require(stage.player.frame(at: stage.clock.now))
    stage.work()
    if synthesizes { stage.player.synthesizePending() }
    return frame
  }

  @Test(arguments: [FrameSampling.flow, .flowFast], [false, true])
  func `A synthesized frame shows the exact time of the refresh`(
    sampling: FrameSampling, isBackward: Bool
  ) throws {
    let stage = try stage(movie(), sampling)
    if isBackward { stage.player.seek(to: MediaTime(16, over: 25)) }
    stage.work()
    // At half speed, every fourth refresh shows a captured frame.
    try stage.player.setRate(isBackward ? Rational(-1, over: 2) : Rational(1, over: 2))
    var synthesized = 0
    for number in 0..<40 {
      let shown = try refresh(stage, number)
      let passed = Double(number) / 4
      let position = isBackward ? 16 - passed : passed
      #expect(shown.isSynthesized == (number > 0 && number % 4 != 0), "refresh \(number)")
      #expect(shown.isCurrent)
      let quality = try shown.image.signalToNoise(Self.frame(position), border: 12)
      let isAtFrame = number % 4 == 0
      // Played backward, the time at which a frame starts still shows the frame before it.
      if shown.isSynthesized || isAtFrame && !isBackward {
        #expect(quality > 30, "refresh \(number): \(quality) dB")
      }
      if shown.isSynthesized {
        synthesized += 1
        #expect(shown.index == Int(position))
        let captured = try shown.captured.signalToNoise(
          Self.frame(position.rounded(.down)))
        #expect(captured > 60)
        #expect(stage.player.currentTime.text(isSynthesized: true).hasPrefix("frame ~"))
      }
      // A second call for the same refresh does not count as another refresh.
      let again = stage.player.frame(at: stage.clock.now)
      #expect(again?.isSynthesized == shown.isSynthesized)
    }
    let ledger = stage.player.ledger
    #expect(ledger.synthesized == synthesized && synthesized == 30)
    #expect(ledger.isBalanced && ledger.late == 0 && ledger.shown >= 10)
  }

  @Test func `The captured frame is shown if synthesis is not ready`() throws {
    let stage = try stage(movie())
    try stage.player.setRate(Rational(1, over: 2))
    _ = try refresh(stage, 0, synthesizes: false)
    let late = try refresh(stage, 1)
    #expect(!late.isSynthesized && late.isCurrent && late.index == 0)
    #expect(try refresh(stage, 2).isSynthesized)
    // A refresh that comes between the expected refresh times has no synthesized frame.
    let between = try refresh(stage, 2, shift: 10_000_000)
    #expect(!between.isSynthesized && between.index == 0)
    #expect(stage.player.ledger.synthesized == 1 && stage.player.ledger.late == 0)
  }

  @Test func `Frame synthesis skips a refresh for which it would be late`() throws {
    let stage = try stage(movie())
    try stage.player.setRate(Rational(1, over: 2))
    _ = try refresh(stage, 0)
    func next() -> Double? {
      stage.player.core.perform { model, now in
        model.nextSynthesis(now).map { Double($0.instant.older.frame) + $0.instant.share }
      }
    }
    // Frames for three refreshes are ready, and the next refresh shows a captured frame.
    #expect(next() == nil)
    stage.player.core.perform { model, now in
      guard let image = model.frame(at: now)?.captured else { return }
      let key = FrameKey(asset: 0, frame: 19)
      let instant = PlayerSynthesis.Instant(older: key, newer: key, share: 0.5, step: 0.1)
      model.add(.image(image), at: instant, cost: Rational(1, over: 10))
    }
    // After 100 ms, the first five refreshes have passed.
    let soonest = try #require(next())
    #expect(abs(soonest - 6.0 / 4) < 1e-9, "\(soonest)")
  }

  @Test(arguments: [false, true])
  func `A synthesized frame replaces a repeated frame at its time`(isBackward: Bool) throws {
    // Frames 5 and 10 repeat the previous frame. Motion continues evenly over twice the time.
    let positions = (0..<16).map { Double([5, 10].contains($0) ? $0 - 1 : $0) }
    let stage = try stage(movie(positions.map(Self.frame)), .flow)
    if isBackward { stage.player.seek(to: MediaTime(14, over: 25)) }
    stage.work()
    try stage.player.setRate(isBackward ? Rational(-1, over: 2) : Rational(1, over: 2))
    var synthesized = 0
    for number in 0..<56 {
      let shown = try refresh(stage, number)
      let position = isBackward ? 14 - Double(number) / 4 : Double(number) / 4
      let isCaptured = number % 4 == 0 && ![5, 10].contains(position)
      #expect(number == 0 || shown.isSynthesized != isCaptured, "refresh \(number)")
      guard shown.isSynthesized else { continue }
      synthesized += 1
      let quality = try shown.image.signalToNoise(Self.frame(position), border: 12)
      #expect(quality > 28, "refresh \(number): \(quality) dB")
    }
    #expect(synthesized == 44)
    #expect(stage.player.ledger.isBalanced)
  }

  @Test func `A paused player shows captured and no synthesized frames`() throws {
    let stage = try stage(movie())
    try stage.player.setRate(Rational(1, over: 2))
    var playing = try refresh(stage, 0)
    for number in 1..<7 { playing = try refresh(stage, number) }
    #expect(playing.isSynthesized && playing.index == 1)
    let file = try playing.pngData()
    stage.player.pause()
    let paused = try refresh(stage, 7)
    #expect(!paused.isSynthesized && paused.index == 1)
    #expect(try paused.pngData() == file)
    stage.player.step(by: 3)
    stage.work()
    #expect(try !refresh(stage, 8).isSynthesized)
    stage.player.seek(to: MediaTime(11, over: 50))
    stage.work()
    let sought = try refresh(stage, 9)
    #expect(!sought.isSynthesized && sought.index == 5)
    try stage.player.setRate(Rational(1, over: 4))
    _ = try refresh(stage, 10)
    #expect(try refresh(stage, 11).isSynthesized)
  }

  @Test func `Playback synthesizes frames only on request and if needed`() throws {
    let asset = try movie()
    // Nothing is synthesized by default, or if each refresh has a captured frame.
    let cases = [(FrameSampling.hold, Rational(1, over: 8)), (.blend, 1), (.flow, 2)]
    for (sampling, rate) in cases {
      let stage = try stage(asset, sampling)
      try stage.player.setRate(rate)
      for number in 0..<10 { #expect(try !refresh(stage, number).isSynthesized) }
      #expect(stage.player.ledger.synthesized == 0)
    }
  }

  @Test func `No frame is synthesized across a cut or in a freeze frame`() throws {
    let other = MovingTexture(seed: 77)
    let frames = try (0..<8).map { number in
      number < 4
        ? try Self.frame(Double(number))
        : try other.frame(Self.width, Self.height, movedBy: Double(number) * 4)
    }
    let asset = try movie(frames)
    let cut = try stage(asset)
    try cut.player.setRate(Rational(1, over: 2))
    for number in 0..<20 {
      let shown = try refresh(cut, number)
      #expect(shown.isSynthesized == (number % 4 != 0 && !(12...15).contains(number)), "\(number)")
    }
    var composition = try Composition(asset.mediaSource())
    try composition.freezeFrame(at: MediaTime(3, over: 50), for: MediaTime(seconds: 1))
    let frozen = try stage(asset, .flowFast, composition)
    try frozen.player.setRate(Rational(1, over: 2))
    for number in 0..<40 {
      let isMoving = number < 6
      let isSynthesized = try refresh(frozen, number).isSynthesized
      #expect(isSynthesized == (isMoving && number % 4 != 0), "\(number)")
    }
  }
}
