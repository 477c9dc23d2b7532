// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// Detects repeated frames, and does not confuse them with frames in which little moves.
struct RepeatedFrameTests {
  private func differences(
    _ count: Int, types: Int32 = FrameDifference.intra,
    _ value: (Int) -> (largest: Double, noise: Double)
  ) -> [FrameDifference?] {
    [nil]
      + (1..<count).map { index in
        let (largest, noise) = value(index)
        return FrameDifference(largest: largest, median: noise, lowest: noise, types: types)
      }
  }

  private func found(_ differences: [FrameDifference?]) -> [Int] {
    RepeatedFrames(differences).indices()
  }

  @Test func `Finds single and consecutive repeated frames during motion`() {
    let planted = [20, 21, 60] + Array(80...95)
    let clip = differences(150) { planted.contains($0) ? (3, 0) : (40 + Double($0 % 7), 1.2) }
    #expect(found(clip) == planted)
    let twice = differences(150) { $0 % 2 == 1 ? (2, 0) : (30, 0) }
    #expect(found(twice) == Array(stride(from: 3, to: 149, by: 2)))
  }

  @Test func `No frame of a scene at rest counts as repeated`() {
    #expect(found(differences(200) { _ in (0, 0) }).isEmpty)
    #expect(found(differences(200) { (2 + Double($0 % 3), 1) }).isEmpty)
    // The scene comes to rest, and the noise continues.
    #expect(found(differences(200) { $0 < 100 ? (60, 1) : (3, 1) }).isEmpty)
    #expect(found(differences(200) { (80..<120).contains($0) ? (3, 1) : (60, 1) }).isEmpty)
    // The scene is at rest in its first and last frames.
    #expect(found(differences(200) { (20..<180).contains($0) ? (60, 0) : (0, 0) }).isEmpty)
  }

  @Test func `A slowly reversing object does not count as repeated frames`() {
    for phase in stride(from: 0.0, through: 0.5, by: 0.05) {
      let clip = differences(120) { (abs(Double($0) - 60 + phase) * 9, 0) }
      #expect(found(clip).isEmpty, "\(phase)")
    }
  }

  @Test func `A bouncing object does not count as repeated frames`() {
    var clip = differences(120) { ($0 == 60 ? 3 : 50, 0) }
    #expect(found(clip) == [60])
    clip[60]?.around = 80
    #expect(found(clip) == [60])
    clip[60]?.around = 6
    #expect(found(clip).isEmpty)
  }

  @Test func `P and B frames without new noise do not count as repeated`() {
    // Two of three frames are predicted from the same neighbors and have no new noise.
    let clip = differences(120) { $0 % 3 == 0 ? (9, 1.5) : (0, 0) }.enumerated().map {
      index, difference -> FrameDifference? in
      guard var difference else { return nil }
      difference.types = index % 3 == 0 ? 0x203 : 0x303
      return difference
    }
    #expect(found(clip).isEmpty)
  }

  @Test func `Finds repeated frames in a still scene by identical noise`() {
    let planted = [31, 70, 71, 72]
    let clip = differences(140) {
      planted.contains($0) ? (0, 0) : (3.2, 1.4 + Double($0 % 5) * 0.1)
    }
    #expect(found(clip) == planted)
  }

  @Test(arguments: [(50, 240.0), (60, 200), (50, 120)])
  func `Measures the frequency and depth of mains flicker`(mains: Int, rate: Double) throws {
    var random = SeededGenerator(seed: 3)
    let seconds = (0..<400).map { Double($0) / rate }
    let strips = seconds.map { time in
      (0..<LightFlicker.stripCount).map { strip in
        let phase = 2 * Double.pi * (Double(2 * mains) + 0.2) * time + Double(strip) * 0.4
        return 100 + 3 * sin(phase) + .random(in: -0.4...0.4, using: &random)
          + 20 * sin(time * 5)
      }
    }
    let line = try #require(LightFlicker.line(in: strips, at: seconds))
    #expect(line.mains == mains && abs(line.depth - 0.03) < 0.006)
    let still = seconds.map { time in
      (0..<LightFlicker.stripCount).map { _ in
        100 + .random(in: -0.4...0.4, using: &random) + 20 * sin(time * 5)
      }
    }
    #expect(LightFlicker.line(in: still, at: seconds) == nil)
  }
}
