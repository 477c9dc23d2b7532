// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankPlayback
import OvercrankRetiming
import TestSupport
import Testing

/// Random player commands, and each command alone.
struct PlayerCommandTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The number of random commands, which is larger in a full test run.
  private static let commandCount =
    ProcessInfo.processInfo.environment["OVERCRANK_PLAYER_COMMANDS"].flatMap { Int($0) } ?? 400

  /// A model of the playhead position, which moves at one rate from a given time.
  ///
  /// It is computed without the player.
  private struct Model {
    var base: Rational
    var since: Rational
    var rate: Rational
    var loop: TimeRange?
    let duration: Rational

    func position(at now: Rational) -> Rational {
      let time = base + rate * (now - since)
      if let loop, rate != .zero {
        let period = loop.duration
        let (start, end) = (loop.start.seconds, loop.end.seconds)
        let turns = { (distance: Rational) -> Rational in
          Rational((try? (distance / period).rounded(.towardNegativeInfinity)) ?? 0)
        }
        if rate > .zero, base < end, time >= end {
          return time - end - turns(time - end) * period + start
        }
        if rate < .zero, base > start, time <= start {
          return end - (start - time - turns(start - time) * period)
        }
      }
      return min(max(.zero, time), duration)
    }
  }

  /// Gives a random command, and compares the playhead position after the command with the model.
  private func command(
    _ stage: Stage, _ random: inout SeededGenerator, _ edits: [Composition]
  ) throws {
    let player = stage.player
    let time = MediaTime(.random(in: 0...2_000, using: &random), over: 1_000)
    switch Int.random(in: 0..<12, using: &random) {
    case 0, 1, 2:
      let magnitude = Rational(
        .random(in: 1...32, using: &random), over: .random(in: 1...32, using: &random))
      try player.setRate(Bool.random(using: &random) ? magnitude : -magnitude)
    case 3: player.pause()
    case 4: player.play()
    case 5:
      player.seek(to: time, tolerance: Bool.random(using: &random) ? .exact : .nearestKeyFrame)
    case 6: player.step(by: .random(in: -5...5, using: &random))
    case 7:
      let length = MediaTime(.random(in: 10...900, using: &random), over: 1_000)
      let start = MediaTime(.random(in: 0...1_000, using: &random), over: 1_000)
      try player.setLoop(
        Bool.random(using: &random) ? nil : TimeRange(start: start, duration: length))
    case 8:
      player.algorithm = AudioTimePitchAlgorithm.allCases.randomElement(using: &random) ?? .mute
    case 9: player.isMuted.toggle()
    case 10:
      let later = stage.clock.now + MediaTime(.random(in: -20...60, using: &random), over: 1_000)
      try player.play(
        atHostTime: MediaTime(later),
        rate: [1, -1, Rational(1, over: 2)].randomElement(using: &random) ?? 1)
    default:
      try player.replaceComposition(
        edits.randomElement(using: &random) ?? player.composition,
        continuingAt: Bool.random(using: &random) ? .sameTime : .sameSource)
    }
  }

  private func edits(_ asset: Asset) throws -> [Composition] {
    let whole = Composition(try asset.mediaSource())
    var slow = whole
    try slow.setSpeed(Speed(1, over: 4), in: TimeRange(duration: MediaTime(1, over: 2)))
    var ramp = whole
    try ramp.setSpeedRamp(
      SpeedRamp(from: .normal, to: Speed(1, over: 8)),
      in: TimeRange(duration: MediaTime(seconds: 1)))
    var mixed = slow
    try mixed.reverse(TimeRange(start: MediaTime(seconds: 1), duration: MediaTime(seconds: 1)))
    try mixed.freezeFrame(at: MediaTime(1, over: 4), for: MediaTime(1, over: 3))
    try mixed.insertEmptyTimeRange(
      TimeRange(start: MediaTime(1, over: 8), duration: MediaTime(1, over: 5)))
    return [whole, slow, ramp, mixed]
  }

  @Test func `Random player commands cause no stall and no time drift`() throws {
    let asset = try Movies.painted(scratch, hasAudio: true)
    let edits = try edits(asset)
    let budget = 200_000
    for hasAudio in [false, true] {
      let stage = try Stage(asset, hasAudio: hasAudio) {
        $0.frameMemory = budget
        $0.algorithm = .varispeed
      }
      var random = SeededGenerator(seed: 10_000)
      for number in 0..<Self.commandCount {
        try command(stage, &random, edits)
        stage.work()
        // The command takes effect after the audio samples that are already written. The model
        // starts at the position after that.
        stage.play(for: 40_000_000)
        stage.work()
        let isPlaying = stage.player.state == .playing
        #expect(stage.player.state != .seeking, "command \(number)")
        let base = stage.player.currentTime.composition
        let since = stage.clock.now.seconds
        let model = Model(
          base: base, since: since, rate: stage.player.rate, loop: stage.player.loop,
          duration: stage.player.composition.duration.seconds)
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          stage.clock.advance(by: .random(in: 1_000_000...20_000_000, using: &random))
          stage.work()
          let found = stage.player.currentTime.composition
          if isPlaying {
            #expect(found == model.position(at: stage.clock.now.seconds), "command \(number)")
          }
          _ = stage.player.frame(at: stage.clock.now)
        }
        #expect(stage.player.decodedFrameBytes <= budget, "command \(number)")
        #expect(stage.player.ledger.isBalanced, "command \(number)")
      }
      #expect(stage.player.ledger.shown > Self.commandCount / 4)
    }
  }

  @Test func `Commands from several threads never corrupt the player state`() async throws {
    let asset = try Movies.painted(scratch, hasAudio: true)
    let clock = VirtualClock()
    var settings = PlayerSettings()
    settings.audioSink = MemoryAudioSink(clock: clock)
    settings.clock = clock
    settings.frameMemory = 400_000
    settings.algorithm = .varispeed
    let player = try Player(asset, settings: settings)
    let events = player.events
    let count = Self.commandCount / 4
    await withTaskGroup(of: Void.self) { group in
      for seed in 0..<3 {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(seed))
          for _ in 0..<count {
            switch Int.random(in: 0..<6, using: &random) {
            case 0: try? player.setRate([1, -2, 8].randomElement(using: &random) ?? 1)
            case 1: player.pause()
            case 2: player.seek(to: MediaTime(.random(in: 0...20, using: &random), over: 10))
            case 3: player.step(by: -1)
            case 4: player.algorithm = [.varispeed, .mute].randomElement(using: &random) ?? .mute
            default: _ = player.currentTime
            }
            clock.advance(by: 1_000_000)
            await Task.yield()
          }
        }
      }
      group.addTask {
        for _ in 0..<count {
          _ = player.frame(at: clock.now)
          clock.advance(by: 1_000_000)
          await Task.yield()
        }
      }
    }
    #expect(player.ledger.isBalanced)
    player.close()
    #expect(player.state == .closed)
    // The stream of player events ends, and its last event reports the state `closed`.
    var last: PlayerEvent?
    for await event in events { last = event }
    #expect(last?.kind == .state(.closed))
  }

  @Test func `Steps in both directions count from the frame shown`() throws {
    let asset = try Movies.painted(scratch)
    let stage = try Stage(asset)
    stage.player.seek(to: MediaTime(1_001, over: 1_000))
    #expect(stage.number(at: 0) == 240)
    for (step, wanted) in [
      (1, 241), (1, 242), (-1, 241), (-2, 239), (100, 339), (1_000, 479), (-479, 0), (-1, 0),
    ] {
      stage.player.step(by: step)
      #expect(stage.number(at: 1) == wanted)
    }
    // A step during playback pauses the player.
    try stage.player.setRate(1)
    #expect(stage.number(at: 500_100_000) == 120)
    stage.player.step(by: -1)
    #expect(stage.number(at: 600_000_000) == 119)
    #expect(stage.player.state == .paused)
  }

  @Test func `Stepping back after playback decodes no frame again`() throws {
    let asset = try Movies.painted(scratch, gop: 240)
    let stage = try Stage(asset)
    try stage.player.setRate(1)
    for refresh in 0...60 { _ = stage.number(at: Int64(refresh) * 16_666_667) }
    stage.player.pause()
    stage.work()
    for step in 1...8 {
      stage.player.step(by: -1)
      let frame = stage.player.frame(at: stage.clock.now)
      #expect(frame?.index == 240 - step)
      #expect(frame?.isCurrent == true)
      #expect(stage.player.state == .paused)
    }
  }

  @Test func `A seek with key frame tolerance shows the nearest key frame`() throws {
    let asset = try Movies.painted(scratch, gop: 48)
    let stage = try Stage(asset)
    for (frame, wanted) in [(23, 0), (25, 48), (70, 48), (73, 96), (479, 432)] {
      stage.player.seek(to: MediaTime(Int64(frame), over: 240), tolerance: .nearestKeyFrame)
      #expect(stage.number(at: 0) == wanted)
      #expect(stage.player.currentTime.composition == Rational(Int128(wanted), over: 240))
    }
  }

  @Test func `Playback stops at the start or end and can start again`() throws {
    let asset = try Movies.painted(scratch, count: 120)
    let stage = try Stage(asset)
    let player = stage.player
    try player.setRate(2)
    #expect(stage.number(at: 300_000_000) == 119)
    #expect(player.state == .ended && player.rate == .zero)
    #expect(player.currentTime.composition == Rational(1, over: 2))
    player.play()
    #expect(player.state == .playing)
    #expect(stage.number(at: 400_000_000) == 48)
    try player.setRate(-32)
    #expect(stage.number(at: 500_000_000) == 0)
    #expect(player.state == .ended && player.currentTime.composition == .zero)
  }

  @Test func `Rejects playback rates outside 1/32 to 32`() throws {
    let stage = try Stage(try Movies.painted(scratch, count: 24))
    for rate in [
      Rational(33), Rational(-33), Rational(1, over: 33), Rational(1, over: 10_000_000), .invalid,
    ] {
      #expect { try stage.player.setRate(rate) } throws: {
        ($0 as? MediaError)?.code == .rateOutOfRange
      }
    }
    #expect(stage.player.state == .paused)
  }

  @Test func `Rejects a composition with a file that has no loaded asset`() throws {
    let stage = try Stage(try Movies.painted(scratch, count: 24))
    let other = try Movies.painted(scratch, count: 24, name: "other.mov")
    let composition = Composition(try other.mediaSource())
    #expect { try stage.player.replaceComposition(composition) } throws: {
      ($0 as? MediaError)?.code == .missingAsset
    }
    try stage.player.replaceComposition(composition, addingAssets: [other])
    #expect(stage.number(at: 0) == 0)
    #expect(stage.player.currentTime.source?.path == other.path)
  }

  @Test func `Frames between two display refreshes count as skipped`() throws {
    let asset = try Movies.painted(scratch)
    let stage = try Stage(asset)
    try stage.player.setRate(1)
    for refresh in 0...60 { _ = stage.number(at: Int64(refresh) * 16_666_667) }
    let ledger = stage.player.ledger
    // One second at 240 fps has 61 refreshes, both ends included.
    #expect(ledger.shown == 61 && ledger.skippedByRate == 180 && ledger.late == 0)
    #expect(ledger.due == 241)
  }

  @Test(arguments: [1, -1] as [Rational])
  func `A display refresh after the clip end counts all due frames`(
    _ rate: Rational
  ) throws {
    let stage = try Stage(try Movies.painted(scratch, count: 48))
    if rate < .zero { stage.player.seek(to: MediaTime(1, over: 5)) }
    _ = stage.number(at: 0)
    try stage.player.setRate(rate)
    // The end of the clip comes after 0.2 s, between two refreshes.
    for time in [50_000_000, 300_000_000, 400_000_000] as [Int64] { _ = stage.number(at: time) }
    #expect(stage.player.state == .ended)
    #expect(stage.player.ledger.due == 48 && stage.player.ledger.isBalanced)
  }

  @Test func `In a composition gap an empty display counts as up to date`()
    throws
  {
    let asset = try Movies.painted(scratch)
    var composition = Composition(try asset.mediaSource())
    let half = try #require(MediaTime(exactly: Rational(1, over: 2)))
    try composition.insertEmptyTimeRange(TimeRange(start: half, duration: half))
    let stage = try Stage(composition, of: [asset])
    #expect(!stage.player.isFrameCurrent)
    #expect(stage.number(at: 0) == 0 && stage.player.isFrameCurrent)
    stage.player.seek(to: try #require(MediaTime(exactly: Rational(3, over: 4))))
    #expect(stage.number(at: 10_000_000) == nil && stage.player.isFrameCurrent)
    stage.player.seek(to: try #require(MediaTime(exactly: Rational(3, over: 2))))
    #expect(stage.player.frame(at: stage.clock.now) == nil && !stage.player.isFrameCurrent)
    #expect(stage.number(at: 20_000_000) == 240 && stage.player.isFrameCurrent)
  }

  @Test func `A composition with only a gap starts playing at once`() throws {
    let asset = try Movies.painted(scratch)
    var composition = Composition(try asset.mediaSource())
    let gap = try TimeRange(duration: MediaTime(seconds: 1))
    try composition.insertEmptyTimeRange(gap)
    try composition.removeTimeRange(
      try TimeRange(start: gap.end, end: composition.duration))
    let stage = try Stage(composition, of: [asset])
    #expect(stage.player.state == .paused && stage.number(at: 0) == nil)
    try stage.player.setRate(1)
    #expect(stage.player.state == .playing)
    #expect(stage.number(at: 500_000_000) == nil && stage.player.isFrameCurrent)
  }

  @Test func `A frame that is not decoded in time counts as late`() throws {
    let asset = try Movies.painted(scratch)
    let stage = try Stage(asset) { $0.frameMemory = 1 }
    try stage.player.setRate(1)
    stage.clock.advance(by: 500_000_000)
    let frame = stage.player.frame(at: stage.clock.now)
    #expect(frame == nil || frame?.isCurrent == false)
    #expect(!stage.player.isFrameCurrent)
    #expect(stage.player.ledger.late == 1 && stage.player.ledger.isBalanced)
  }
}
