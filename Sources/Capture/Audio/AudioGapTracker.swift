// SPDX-License-Identifier: Apache-2.0

/// What the capture thread's end of an output knows of sound that it did not pass on.
struct AudioGapTracker {
  /// The sample that is due next, and why those before it are missing.
  private var expected: Int64?
  private var cause: AudioGap.Cause?

  /// What is missing before a block: of several losses in a row the first names the gap.
  func gap(before block: AudioBlock) -> AudioGap? {
    guard let cause = cause ?? block.gap?.cause else { return nil }
    let due = expected ?? block.gap?.position ?? block.position
    return AudioGap(cause: cause, position: due, sampleCount: max(0, block.position - due))
  }

  /// Notes that a block was passed on.
  mutating func didPass(_ block: AudioBlock) {
    cause = nil
    expected = block.position + Int64(block.sampleCount)
  }

  /// Notes that there was no room for a block.
  mutating func didRefuse(_ block: AudioBlock) {
    expected = expected ?? block.gap?.position ?? block.position
    cause = cause ?? block.gap?.cause ?? .outOfBuffers
  }

  /// Forgets what was due: what was not asked for is not missing.
  mutating func reset() { self = AudioGapTracker() }
}
