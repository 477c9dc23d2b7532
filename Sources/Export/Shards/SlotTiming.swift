// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The ticks of output frames.
struct SlotTiming: Sendable {
  let timescale: Int32
  let ticksPerSlot: Int64

  /// - Throws: `MediaError` with `.unsupportedSource` for a rate that cannot be stored.
  init(_ rate: FrameRate) throws(MediaError) {
    // With the frame rate as timescale, one tick would be a whole frame, and times that players
    // round to ticks (such as edits) would be coarse. So the timescale is a multiple of it, at
    // least 24000.
    let factor = max(1, (24_000 + Int64(rate.numerator) - 1) / Int64(rate.numerator))
    guard let timescale = Int32(exactly: Int64(rate.numerator) * factor) else {
      throw MediaError(
        .unsupportedSource, "a rate of \(rate) fps cannot be stored",
        recovery: "choose a rate such as 30")
    }
    self.timescale = timescale
    ticksPerSlot = Int64(rate.denominator) * factor
  }
}
