// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// The start and the duration of output frames, in ticks.
struct SlotTiming: Sendable {
  let timescale: Int32
  /// The duration of an output frame in ticks.
  ///
  /// The duration is rounded for an animated image.
  let ticksPerSlot: Int64
  private let rate: FrameRate

  /// - Throws: `MediaError` with `.unsupportedSource` for a frame rate that cannot be stored.
  init(_ rate: FrameRate, _ encoding: VideoEncoding = .h264()) throws(MediaError) {
    self.rate = rate
    if let format = encoding.animatedImage {
      timescale = format.timescale
      ticksPerSlot = Self.ticks(of: 1, rate, format.timescale)
      return
    }
    // The timescale is a multiple of the frame rate and at least 24000. If the timescale were the
    // frame rate itself, one tick would be a whole frame, and times that players round to ticks,
    // such as those of edits, would be coarse.
    let factor = max(1, (24_000 + Int64(rate.numerator) - 1) / Int64(rate.numerator))
    guard let timescale = Int32(exactly: Int64(rate.numerator) * factor) else {
      throw MediaError(
        .unsupportedSource, "a rate of \(rate) fps cannot be stored",
        recovery: "choose a rate such as 30")
    }
    self.timescale = timescale
    ticksPerSlot = Int64(rate.denominator) * factor
  }

  /// Returns the start of an output frame in ticks.
  ///
  /// The start is exact in a movie, and rounded to the nearest tick in an animated image.
  ///
  /// Each start is rounded independently (halves up), so rounding errors do not accumulate.
  func ticks(of slot: Int64) -> Int64 { Self.ticks(of: slot, rate, timescale) }

  /// Returns the greatest rounding error of the starts of output frames, in seconds.
  func greatestError(count: Int64) -> Rational {
    // If the numerator of the frame rate is n, the rounding errors repeat after n frames.
    (0..<min(count, Int64(rate.numerator))).reduce(.zero) { greatest, slot in
      let exact = Rational(Int128(slot) * Int128(rate.denominator), over: Int128(rate.numerator))
      let error = Rational(Int128(ticks(of: slot)), over: Int128(timescale)) - exact
      return max(greatest, error < .zero ? .zero - error : error)
    }
  }

  private static func ticks(of slot: Int64, _ rate: FrameRate, _ timescale: Int32) -> Int64 {
    let above = Int128(slot) * Int128(rate.denominator) * Int128(timescale)
    let below = Int128(rate.numerator)
    return Int64(clamping: (2 * above + below) / (2 * below))
  }
}
