// SPDX-License-Identifier: Apache-2.0

/// A sliding window of source samples; the source is read once, in order.
struct SourceWindow {
  /// The source samples in the window; reading continues at the upper bound.
  private(set) var range: Range<Int64>
  private(set) var planes: Planes
  /// A mono mix of the source for cross-correlation; empty if the window was created without a
  /// `step`.
  ///
  /// The channels have unequal weights, because with equal ones two channels of opposite phase
  /// would cancel out.
  private(set) var mix: [Float] = []
  /// The mono mix, decimated by `step`.
  private(set) var steps: DecimatedSignal
  private let isMixed: Bool
  private let weights: [Float]

  private static let blockLength = 2048

  /// Creates an empty window at a source sample.
  ///
  /// The mix is decimated by `step`; without a step, no mix is made.
  init(from start: Int64, channelCount: Int, step: Int? = nil) {
    steps = DecimatedSignal(step: step ?? 1)
    isMixed = step != nil
    range = start..<start
    planes = Planes(repeating: [], count: channelCount)
    weights = (0..<channelCount).map { 1 / (1 + 0.35 * Float($0)) }
  }

  /// Reads up to a source sample, and passes each new block to `seen`.
  mutating func read(
    upTo end: Int64, _ read: SampleReader, seen: (Planes) -> Void = { _ in }
  ) throws {
    while range.upperBound < end {
      let block = try read(range.upperBound, Self.blockLength)
      seen(block)
      for channel in planes.indices { planes[channel] += block[channel] }
      if isMixed {
        var mixed = [Float](repeating: 0, count: Self.blockLength)
        for (plane, weight) in zip(block, weights) {
          for index in mixed.indices { mixed[index] += plane[index] * weight }
        }
        mix += mixed
        steps.extend(to: mix)
      }
      range = range.lowerBound..<range.upperBound + Int64(Self.blockLength)
    }
  }

  /// Drops the samples before a source sample, but only if there are more than 32,768 samples to
  /// drop.
  ///
  /// Each removal moves all remaining samples, so frequent small removals would be slow.
  mutating func forget(before start: Int64) {
    let unneeded = Int(min(start, range.upperBound) - range.lowerBound)
    guard unneeded > 32_768 else { return }
    let spent = isMixed ? steps.forget(before: unneeded) : unneeded
    for channel in planes.indices { planes[channel].removeFirst(spent) }
    if isMixed { mix.removeFirst(spent) }
    range = range.lowerBound + Int64(spent)..<range.upperBound
  }
}
