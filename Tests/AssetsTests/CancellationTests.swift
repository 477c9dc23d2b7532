// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Cancels all reading.
///
/// The test runs in a separate process, which can read nothing afterwards.
struct CancellationTests {
  @Test func `A cancellation ends every reader with the cancelled error`() async throws {
    await #expect(processExitsWith: .success) {
      let directory = try Scratch()
      var recipe = MovieRecipe.constant(240, count: 60).h264(gop: 10, reordered: true)
      recipe.audio = MovieRecipe.Audio()
      recipe.audio?.sampleCount = 48_000
      let path = directory.file("clip.mov")
      try recipe.write(to: path)
      let asset = try Asset(path: path)
      var frames = try FrameReader(asset, undecodable: .hold)
      var range = try FrameReader(asset, undecodable: .skip)
      var audio = try AudioReader(asset)
      let cursor = PacketCursor(asset)
      _ = try frames.mediaFrame(at: 5)
      _ = try cursor.packet(at: 5)
      Asset.cancelReading()
      func isCancelled(_ work: () throws -> Void) -> Bool {
        do { try work() } catch let error as MediaError { return error.code == .cancelled } catch {
          return (error as? CallFailure)?.kind == .cancelled
        }
        return false
      }
      let outcomes = [
        isCancelled { _ = try frames.mediaFrame(at: 40) },
        isCancelled { try range.readFrames(in: 0...59, wanted: { _ in true }) { _, _ in true } },
        isCancelled { _ = try audio.samples(from: 0, count: 48_000) },
        isCancelled { _ = try cursor.packet(at: 50) },
        isCancelled { _ = try FrameReader(asset) },
        isCancelled { _ = try Asset(path: path) },
      ]
      guard outcomes.allSatisfy(\.self) else { fatalError("\(outcomes)") }
    }
  }
}
