// SPDX-License-Identifier: Apache-2.0

/// Tracks samples that an output's sink did not pass on.
///
/// Used by the capture thread.
struct AudioGapTracker {
  /// The index of the next expected sample, and the reason for the loss before it.
  private var expected: Int64?
  private var cause: AudioGap.Cause?

  /// The gap before a block.
  ///
  /// The first of several consecutive losses defines its reason.
  func gap(before block: AudioBlock) -> AudioGap? {
    guard let cause = cause ?? block.gap?.cause else { return nil }
    let due = expected ?? block.gap?.position ?? block.position
    return AudioGap(cause: cause, position: due, sampleCount: max(0, block.position - due))
  }

  /// Records that a block was passed on.
  mutating func didPass(_ block: AudioBlock) {
    cause = nil
    expected = block.position + Int64(block.sampleCount)
  }

  /// Records that a block was dropped because the queue was full.
  mutating func didRefuse(_ block: AudioBlock) {
    expected = expected ?? block.gap?.position ?? block.position
    cause = cause ?? block.gap?.cause ?? .outOfBuffers
  }

  /// Clears the expected sample.
  ///
  /// Samples that were not requested do not count as lost.
  mutating func reset() { self = AudioGapTracker() }
}
