// SPDX-License-Identifier: Apache-2.0

/// Finds frames that repeat the image of the frame before them.
///
/// A repeated frame is recognized by its contrast with the frames around it. If nothing moves, and
/// the codec removed the noise of the camera, no contrast exists and nothing is reported. Two kinds
/// of contrast count. In a moving scene, even the block that otherwise changes most stands still in
/// a repeated frame. In a noisy scene, the noise itself stands still.
struct RepeatedFrames {
  private let differences: [FrameDifference?]
  /// Whether the lighting flickers, so that whole frames change their brightness.
  private let flickers: Bool

  /// The largest difference, in levels, between a frame and its repetition after lossy coding: 5 in
  /// any scene, 10 where much moves.
  static let codingError = 5.0...10
  /// The smallest difference between frames, in levels, that counts as motion of the scene.
  private static let motion = 8.0
  /// The difference, in levels, that not even strong noise reaches.
  private static let certainMotion = 20.0
  /// The number of neighboring frames on each side with which a run of repeated frames is compared.
  private static let neighbors = 8
  /// The greatest number of frames on each side among which these neighbors are searched.
  private static let reach = 240

  /// - Parameters:
  ///   - differences: The difference of each frame to the frame before it, by index; nil if
  ///     unknown.
  ///   - flickers: Whether the lighting flickers.
  init(_ differences: [FrameDifference?], flickers: Bool = false) {
    self.flickers = flickers
    self.differences = differences.indices.map { index in
      guard var difference = differences[index] else { return nil }
      let near = differences[max(0, index - 24)..<min(differences.count, index + 25)]
      let moving = near.compactMap { $0?.largest }.filter { $0 > Self.codingError.lowerBound }
      let limit = min(
        Self.codingError.upperBound, max(Self.codingError.lowerBound, 0.2 * moving.median))
      difference.isAlike = difference.largest <= limit
      return difference
    }
  }

  /// The indices of the repeated frames, in ascending order.
  func indices() -> [Int] {
    let still = runs(\.isAlike).filter { isStill($0, outside: { !$0.isAlike }) }
    var found = Set(still.joined())
    let level = noiseLevel()
    let isQuiet = { (difference: FrameDifference) -> Bool in
      difference.median <= 0.15 * level && difference.largest <= Self.codingError.lowerBound
    }
    if level >= 0.6, !flickers {
      for run in runs(isQuiet) where isNoiseless(run, outside: { !isQuiet($0) }) {
        found.formUnion(run)
      }
    }
    return found.sorted()
  }

  /// The ranges of consecutive frames whose difference meets a condition.
  private func runs(_ condition: (FrameDifference) -> Bool) -> [ClosedRange<Int>] {
    var runs: [ClosedRange<Int>] = []
    for (index, difference) in differences.enumerated() {
      guard let difference, condition(difference) else { continue }
      if let last = runs.last, last.upperBound == index - 1 {
        runs[runs.count - 1] = last.lowerBound...index
      } else {
        runs.append(index...index)
      }
    }
    return runs
  }

  /// Returns the level that the median block difference exceeds in a quarter of the frames.
  private func noiseLevel() -> Double {
    let medians = differences.compactMap { $0?.median }.sorted()
    return medians.isEmpty ? 0 : medians[medians.count * 3 / 4]
  }

  /// Whether the image stands still in a run of frames, but moves in the frames around the run.
  private func isStill(
    _ run: ClosedRange<Int>, outside condition: (FrameDifference) -> Bool
  ) -> Bool {
    let context = Context(differences, run, Self.neighbors, Self.reach, condition)
    guard context.count >= 4 else { return false }
    let inside = run.compactMap { differences[$0] }
    let peak = inside.map(\.largest).max() ?? .infinity
    let level = context.median(\.largest)
    guard level >= Self.motion, peak <= level / 4, context.hasSharpEdges(over: peak) else {
      return false
    }
    if run.count == 1, let around = inside.first?.around, around < level / 2 { return false }
    // At the maximum and minimum of flicker, the brightness does not change for one frame, which
    // then looks like a repeated frame.
    if flickers, context.median(\.lowest) >= level / 4 { return false }
    if level < Self.certainMotion, !stands(out: run, by: \.largest, atLeast: level / 2) {
      return false
    }
    // If the scene merely stops moving, its noise remains. A repeated frame has no noise.
    let noise = context.median(\.lowest)
    if noise >= 0.25, inside.map(\.lowest).median > 0.85 * noise { return false }
    if run.count >= 10 {
      let rest = max(0.15, 0.1 * context.median(\.median))
      if inside.map(\.median).median > rest { return false }
    }
    guard context.isOpen else { return true }
    // At an end of the clip, the scene itself may be at rest. Only missing noise proves repeated
    // frames.
    return run.count >= 3 && peak == 0 && context.median(\.lowest) >= 0.25
  }

  /// Whether the noise of a scene is missing in a run of frames.
  private func isNoiseless(
    _ run: ClosedRange<Int>, outside condition: (FrameDifference) -> Bool
  ) -> Bool {
    let context = Context(differences, run, Self.neighbors, Self.reach, condition)
    guard context.count >= 6, !context.isOpen else { return false }
    let inside = run.compactMap { differences[$0] }
    let noise = context.median(\.median)
    // If the whole scene moves, the median block shows the motion instead of the noise.
    guard noise >= 0.6, context.median(\.lowest) >= 0.25,
      context.highest(\.median) <= 2.5 * noise
    else { return false }
    return inside.map(\.median).median <= 0.15 * noise
      && inside.map(\.largest).max() ?? .infinity <= 0.35 * context.median(\.largest)
      && stands(out: run, by: \.median, atLeast: 0.6 * noise)
  }

  /// Whether nearby frames of the same coding types differ by at least `level`.
  ///
  /// If not, the encoder makes all frames of these types alike, and a run of alike frames proves
  /// nothing.
  private func stands(
    out run: ClosedRange<Int>, by value: KeyPath<FrameDifference, Double>, atLeast level: Double
  ) -> Bool {
    let near = max(0, run.lowerBound - 24)..<min(differences.count, run.upperBound + 25)
    let others = near.filter { !run.contains($0) }.compactMap { differences[$0] }
    return Set(run.compactMap { differences[$0]?.types }).allSatisfy { types in
      // Intra-only codecs never leave noise out.
      guard types != FrameDifference.intra else { return true }
      let same = others.filter { $0.types == types }.map { $0[keyPath: value] }.sorted()
      return same.count >= 4 && same[same.count / 4] >= level
    }
  }
}

/// The nearest frames before and after a run of frames, apart from frames in other runs of alike
/// frames.
private struct Context {
  private let before: [FrameDifference]
  private let after: [FrameDifference]
  private let isSingle: Bool

  init(
    _ differences: [FrameDifference?], _ run: ClosedRange<Int>, _ limit: Int, _ reach: Int,
    _ condition: (FrameDifference) -> Bool
  ) {
    isSingle = run.count == 1
    func taken(_ indices: some Sequence<Int>) -> [FrameDifference] {
      var found: [FrameDifference] = []
      for index in indices where found.count < limit {
        if let difference = differences[index], condition(difference) { found.append(difference) }
      }
      return found
    }
    before = taken((max(0, run.lowerBound - reach)..<run.lowerBound).reversed())
    after = taken(run.upperBound + 1..<min(differences.count, run.upperBound + 1 + reach))
  }

  var count: Int { before.count + after.count }
  /// Whether the run is at the start or the end of the clip.
  var isOpen: Bool { before.isEmpty || after.isEmpty }

  func median(_ value: KeyPath<FrameDifference, Double>) -> Double {
    (before + after).map { $0[keyPath: value] }.median
  }

  func highest(_ value: KeyPath<FrameDifference, Double>) -> Double {
    (before + after).map { $0[keyPath: value] }.max() ?? 0
  }

  /// Whether the motion stops abruptly before the run and starts abruptly after it.
  ///
  /// An object that reverses its direction is slow just before and just after it stands still.
  func hasSharpEdges(over peak: Double) -> Bool {
    [before, after].allSatisfy { side in
      guard let next = side.first else { return true }
      guard next.largest >= 3 * peak + 3 else { return false }
      let usual = side.dropFirst().prefix(3).map(\.largest).median
      guard next.largest >= 0.5 * usual else { return false }
      // A motion that comes to rest slows down first, and an encoder may leave out the
      // last small movements.
      let largest = side.map(\.largest).sorted()
      return isSingle || next.largest >= 0.6 * largest[(largest.count - 1) / 2]
    }
  }
}

extension [Double] {
  /// The median; 0 for an empty array.
  var median: Double { isEmpty ? 0 : sorted()[count / 2] }
}
