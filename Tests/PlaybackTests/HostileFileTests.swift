// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import OvercrankPlayback
import TestSupport
import Testing

struct HostileFileTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test func `Damaged movies play or fail with a MediaError`() throws {
    _ = try Movies.painted(scratch, count: 96, gop: 12, reordered: true, hasAudio: true)
    let whole = try bytes(of: scratch.file("clip.mov"))
    var opened = 0
    for seed in 0..<40 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var damaged = whole
      for _ in 0..<Int.random(in: 1...60, using: &random) {
        damaged[.random(in: 32..<damaged.count, using: &random)] = .random(
          in: 0...255, using: &random)
      }
      let path = try scratch.write(damaged, as: "damaged.mov")
      do {
        let stage = try Stage(try Asset(path: path), hasAudio: true)
        opened += 1
        for rate in [Rational.one, -8, Rational(1, over: 3), 32] {
          try stage.player.setRate(rate)
          for _ in 0..<6 {
            stage.clock.advance(by: 33_000_000)
            stage.work()
            _ = stage.player.frame(at: stage.clock.now)
          }
          stage.player.seek(to: MediaTime(.random(in: 0...40, using: &random), over: 100))
          stage.player.step(by: -1)
          stage.work()
          #expect(stage.player.state != .seeking)
        }
      } catch is MediaError {}
    }
    #expect(opened > 5)
  }

  @Test func `The player reports an unreadable file and its clock runs on`() async throws {
    let asset = try Movies.painted(scratch, count: 96)
    var settings = PlayerSettings()
    settings.hasThreads = false
    let clock = VirtualClock()
    settings.clock = clock
    let player = try Player(asset, settings: settings)
    let events = player.events
    _ = try scratch.write([0], as: "clip.mov")
    player.decodePending()
    try player.setRate(1)
    clock.advance(by: 100_000_000)
    #expect(player.frame(at: clock.now) == nil)
    #expect(player.currentTime.composition == Rational(1, over: 10))
    player.close()
    var codes: [MediaError.Code] = []
    for await event in events {
      if case .fileFailed(let error) = event.kind { codes.append(error.code) }
    }
    #expect(codes == [.invalidData])
  }
}
