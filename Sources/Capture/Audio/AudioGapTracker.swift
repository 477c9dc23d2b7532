// SPDX-License-Identifier: Apache-2.0

/// Tracks the samples that a sink received but did not pass on, because its queue was full.
///
/// Used only by the capture thread.
struct AudioGapTracker {
  /// The index of the sample that follows the last sample passed on to the consumer.
  ///
  /// Nil before the first block.
  private var expected: Int64?
  /// The reason why samples at and after the index `expected` were lost, or nil if none were lost.
  private var cause: AudioGap.Cause?

  /// The gap before a block, or nil if no samples were lost.
  ///
  /// If several losses follow each other, the first one defines the reason.
  func gap(before block: AudioBlock) -> AudioGap? {
    guard let cause = cause ?? block.gap?.cause else { return nil }
    let due = expected ?? block.gap?.position ?? block.position
    return AudioGap(cause: cause, position: due, sampleCount: max(0, block.position - due))
  }

  /// Records that a block was passed on to the consumer.
  mutating func didPass(_ block: AudioBlock) {
    cause = nil
    expected = block.position + Int64(block.sampleCount)
  }

  /// Records that a block was dropped because the queue was full.
  mutating func didRefuse(_ block: AudioBlock) {
    expected = expected ?? block.gap?.position ?? block.position
    cause = cause ?? block.gap?.cause ?? .outOfBuffers
  }

  /// Forgets which sample is expected next.
  ///
  /// Call this for each block that arrives while the output requests no audio. Such blocks then do
  /// not count as lost.
  mutating func reset() { self = AudioGapTracker() }
}
