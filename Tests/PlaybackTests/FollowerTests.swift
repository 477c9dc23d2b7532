// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankPlayback
import TestSupport
import Testing

/// A player that follows another player, whose audio gives the clock.
struct FollowerTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test func `A player that follows another keeps its offset in frames`() throws {
    let asset = try Movies.painted(scratch, hasAudio: true)
    let other = try Movies.painted(scratch, name: "other.mov")
    let stage = try Stage(asset, hasAudio: true) { $0.refreshRate = 50 }
    let follower = try stage.player.makeFollower(
      Composition(other.mediaSource()), of: [other], origin: MediaTime(90, over: 240),
      besideOrigin: MediaTime(30, over: 240))
    defer { follower.close() }
    /// The frames that both players show at one refresh.
    func frames() throws -> [Int] {
      stage.work()
      follower.decodePending()
      let now = stage.clock.now
      return try [stage.player, follower].map { player in
        let frame = try #require(player.frame(at: now))
        #expect(frame.isCurrent)
        return try #require(PaintedBlocks.number(in: frame.image))
      }
    }
    var random = SeededGenerator(seed: 24)
    #expect(try frames() == [0, 60])
    for _ in 0..<200 {
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        let rate = Rational(Int128.random(in: 1...8, using: &random), over: 4)
        try stage.player.setRate(Bool.random(using: &random) ? rate : -rate)
      case 1: stage.player.step(by: Int.random(in: -3...3, using: &random))
      case 2:
        stage.player.seek(
          to: MediaTime(Int64.random(in: 0..<480, using: &random), over: 240))
      case 3:
        let start = Int64.random(in: 0..<200, using: &random)
        try stage.player.setLoop(
          TimeRange(start: MediaTime(start, over: 240), duration: MediaTime(1, over: 4)))
      default: stage.player.pause()
      }
      for _ in 0..<3 {
        stage.play(for: 20_000_000)
        let shown = try frames()
        // After the end of the second clip, its last frame stays.
        #expect(shown[1] == min(479, shown[0] + 60))
      }
    }
    #expect(follower.ledger.isBalanced && follower.ledger.late == 0)
  }

  @Test func `A follower is moved by frames at any speed`() throws {
    let asset = try Movies.painted(scratch)
    let stage = try Stage(asset)
    var slowed = Composition(try asset.mediaSource())
    try slowed.setSpeed(
      Speed(1, over: 8), in: TimeRange(start: .zero, end: MediaTime(100, over: 240)))
    let follower = try stage.player.makeFollower(slowed, of: [asset])
    defer { follower.close() }
    // In the middle of a frame of the leader, the slowed follower shows the first frames.
    stage.player.seek(to: MediaTime(21, over: 480))
    var frame = 0
    func show() -> Int? {
      stage.work()
      follower.decodePending()
      return follower.currentTime.source?.frameIndex
    }
    frame = try #require(show())
    for step in [1, 1, 3, -2, 5, -1] {
      #expect(follower.shift(byFrames: step))
      frame += step
      #expect(show() == frame)
    }
    // Behind the last frame of the follower is none.
    #expect(follower.shift(byFrames: 10_000))
    #expect(show() == 479)
    #expect(!follower.shift(byFrames: 1))
    #expect(show() == 479)
    #expect(follower.shift(byFrames: -1))
    #expect(show() == 478)
  }

  @Test func `A player that follows another ignores direct commands`() throws {
    let asset = try Movies.painted(scratch)
    let stage = try Stage(asset)
    let follower = try stage.player.makeFollower(
      Composition(asset.mediaSource()), of: [asset])
    defer { follower.close() }
    stage.player.seek(to: MediaTime(1, over: 2))
    stage.work()
    try follower.setRate(2)
    follower.step(by: 5)
    follower.decodePending()
    #expect(follower.currentTime.source?.frameIndex == 120)
    stage.player.close()
    #expect(follower.currentTime.source?.frameIndex == 120)
  }

  @Test func `A playback position prints frame and time and mark and speed`() throws {
    let asset = try Movies.painted(scratch)
    let stage = try Stage(asset)
    stage.player.seek(to: MediaTime(318, over: 240))
    stage.work()
    let mark = stage.player.currentTime
    let rate = Rational(1, over: 8)
    #expect(mark.text() == "frame 318/480 · 1.325000 s")
    #expect(mark.text(rate: rate) == "frame 318/480 · 1.325000 s · 1/8")
    stage.player.step(by: 5)
    stage.work()
    #expect(
      stage.player.currentTime.text(rate: rate, since: mark)
        == "frame 323/480 · 1.345833 s · +20.8 ms since mark · 1/8")
    stage.player.step(by: -7)
    stage.work()
    #expect(
      stage.player.currentTime.text(rate: -1, since: mark)
        == "frame 316/480 · 1.316667 s · -8.3 ms since mark · -1")
  }
}
