// SPDX-License-Identifier: Apache-2.0

/// The stretch of the source that an engine still looks at, read once, in order.
struct SourceWindow {
  /// Where the samples lie that are there, and what is above them is read next.
  private(set) var range: Range<Int64>
  private(set) var planes: Planes
  /// All channels in one, by which likeness is judged: weighed so that opposite ones do not vanish.
  private(set) var mix: [Float] = []
  /// The same in sums.
  private(set) var steps: DecimatedSignal
  private let weights: [Float]

  private static let blockLength = 2048

  /// Makes a window that will be read from a sample on, in which likeness is sought by sums of
  /// `step` samples.
  init(from start: Int64, channelCount: Int, step: Int = 1) {
    steps = DecimatedSignal(step: step)
    range = start..<start
    planes = Planes(repeating: [], count: channelCount)
    weights = (0..<channelCount).map { 1 / (1 + 0.35 * Float($0)) }
  }

  /// Reads on until a sample is there, and tells `seen` of each block as it comes.
  mutating func read(
    upTo end: Int64, _ read: SampleReader, seen: (Planes) -> Void = { _ in }
  ) throws {
    while range.upperBound < end {
      let block = try read(range.upperBound, Self.blockLength)
      seen(block)
      for channel in planes.indices { planes[channel] += block[channel] }
      var mixed = [Float](repeating: 0, count: Self.blockLength)
      for (plane, weight) in zip(block, weights) {
        for index in mixed.indices { mixed[index] += plane[index] * weight }
      }
      mix += mixed
      steps.extend(to: mix)
      range = range.lowerBound..<range.upperBound + Int64(Self.blockLength)
    }
  }

  /// Drops the samples before one, now and then.
  mutating func forget(before start: Int64) {
    let unneeded = Int(min(start, range.upperBound) - range.lowerBound)
    guard unneeded > 32_768 else { return }
    let spent = steps.forget(before: unneeded)
    for channel in planes.indices { planes[channel].removeFirst(spent) }
    mix.removeFirst(spent)
    range = range.lowerBound + Int64(spent)..<range.upperBound
  }
}
