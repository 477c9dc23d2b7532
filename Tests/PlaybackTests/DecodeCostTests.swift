// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import OvercrankPlayback
import TestSupport
import Testing

/// The number of packets that a player decodes for each command.
struct DecodeCostTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Seeks to a frame and shows it, without decoding frames in advance.
  private func show(_ frame: Int64, _ stage: Stage) -> Int? {
    stage.player.seek(to: MediaTime(frame, over: 240))
    while stage.player.state == .seeking, stage.player.decodeNext() {}
    return stage.player.frame(at: stage.clock.now).flatMap { PaintedBlocks.number(in: $0.image) }
  }

  @Test(arguments: [false, true]) func `A seek decodes only from the last key frame to the target`(
    _ isReordered: Bool
  ) throws {
    let asset = try Movies.painted(scratch, gop: 60, reordered: isReordered)
    let stage = try Stage(asset)
    for frame: Int64 in [430, 75, 299, 181, 359, 62, 477] {
      let before = stage.player.sentPacketCount
      #expect(show(frame, stage) == Int(frame))
      // The decoder for distant frames has several threads, and each thread delays the output by a
      // frame.
      let sent = stage.player.sentPacketCount - before
      #expect(sent <= Int(frame % 60) + 1 + 24, "frame \(frame)")
    }
  }

  @Test func `Stepping back after a seek decodes no frame again`() throws {
    let asset = try Movies.painted(scratch, gop: 60)
    let stage = try Stage(asset)
    #expect(show(449, stage) == 449)
    let sent = stage.player.sentPacketCount
    for frame in (438...448).reversed() {
      stage.player.step(by: -1)
      #expect(stage.player.state == .paused)
      let shown = stage.player.frame(at: stage.clock.now)
      #expect(shown.flatMap { PaintedBlocks.number(in: $0.image) } == frame)
    }
    #expect(stage.player.sentPacketCount == sent)
  }

  @Test(arguments: [false, true]) func `Reverse playback decodes each GOP at most twice`(
    _ isReordered: Bool
  ) throws {
    let asset = try Movies.painted(scratch, gop: 24, reordered: isReordered)
    let stage = try Stage(asset)
    stage.player.seek(to: MediaTime(seconds: 2))
    stage.work()
    let before = stage.player.sentPacketCount
    try stage.player.setRate(-1)
    for refresh in 0..<120 {
      #expect(stage.number(at: Int64(refresh) * 1_000_000_000 / 60) != nil)
    }
    #expect(stage.player.ledger.late == 0)
    // The clip has 20 GOPs of 24 frames. The delay of the decoder adds some packets for each GOP.
    // The GOP at the end of the read-ahead is decoded twice.
    let sent = stage.player.sentPacketCount - before
    #expect(sent <= 2 * 480 + 20 * 6)
  }
}
