// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import OvercrankRetiming

/// Repeated frames, detected by comparing each frame with the last frame that was not repeated.
struct RepeatedFrameDetectorTests {
  /// Returns whether each frame of a sequence counts as a repetition, from its difference to the
  /// previous frame.
  private func judged(_ differences: [Float], cutAfter cut: Int? = nil) -> [Bool] {
    var detector = RepeatedFrameDetector()
    return differences.enumerated().map { index, difference in
      if index == cut { detector.forgetDifference() }
      return detector.isRepetition(
        FrameInterpolator.Comparison(
          blockDifference: difference, difference: 0, inconsistentShare: 0, residual: 0))
    }
  }

  @Test func `A frame that changes far less than before counts as repeated`() {
    #expect(judged([20, 1, 18, 0.4, 21]) == [false, true, false, true, false])
    // The first difference has no earlier difference to compare with.
    #expect(judged([1, 1]) == [false, false])
  }

  @Test func `Slow or decelerating motion does not count as repeated`() {
    #expect(!judged([0.6, 0.5, 0.6, 0.4, 0.5]).contains(true))
    #expect(!judged([20, 14, 9, 6, 4, 2.5, 1.5]).contains(true))
  }

  @Test func `Repeats are found by the size and ratio of frame differences`() {
    // Measured values: in the first pair, an encoder changed a repeated frame by much. In the
    // second pair, a genuine frame has about the same ratio of differences.
    #expect(judged([8.62, 2.7]) == [false, true])
    #expect(judged([19.48, 4.86]) == [false, false])
    #expect(judged([13.48, 3.09]) == [false, true])
    // A frame with a large difference never counts as repeated.
    #expect(judged([250, 8.1]) == [false, false])
  }

  @Test func `Too many repeated frames in a row count as a still image`() {
    let limit = RepeatedFrameDetector.longestRepetition
    let frames = judged([20] + Array(repeating: 0, count: 2 * limit + 2))
    let repeated = Array(repeating: true, count: limit)
    #expect(frames == [false] + repeated + [false] + repeated + [false])
  }

  @Test func `A scene cut does not make the next frame count as repeated`() {
    #expect(judged([80, 3, 3]) == [false, true, true])
    #expect(judged([80, 3, 3], cutAfter: 1) == [false, false, false])
  }
}
