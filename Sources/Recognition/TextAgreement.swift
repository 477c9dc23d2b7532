// SPDX-License-Identifier: Apache-2.0

/// Reports the codes of a movie whose texts enough frames agree on, from the first of these frames.
///
/// A frame is held back until each of its texts is decided: either enough frames show it, or none of
/// the next frames does.
struct TextAgreement {
  /// The frames that show a text, without long gaps.
  private final class Group {
    var frameCount = 0
    var lastFrame = 0
    var isConfirmed = false
  }

  /// The number of frames without a text after which a new frame with it counts anew.
  static let memory = 120

  /// The number of frames that must agree.
  private let required: Int
  private var groups: [DetectedCode.Key: Group] = [:]
  private var waiting: [(objects: MovieFrameObjects, groups: [Group])] = []
  private var frameCount = 0

  init(required: Int) { self.required = required }

  /// Whether a text needs no further frame to be reported.
  func isConfirmed(_ key: DetectedCode.Key) -> Bool {
    groups[key].map { $0.isConfirmed && !isOver($0) } ?? false
  }

  /// Adds the next frame.
  ///
  /// - Parameters:
  ///   - objects: The objects of the frame.
  ///   - isCertain: Whether a text needs no other frame to confirm it.
  mutating func add(_ objects: MovieFrameObjects, isCertain: (DetectedCode) -> Bool) {
    frameCount += 1
    groups = groups.filter { !isOver($0.value) }
    var shown: [Group] = []
    for code in objects.codes {
      let group = groups[code.key] ?? Group()
      groups[code.key] = group
      shown.append(group)
      if group.lastFrame != frameCount { group.frameCount += 1 }
      group.lastFrame = frameCount
      group.isConfirmed = group.isConfirmed || group.frameCount >= required || isCertain(code)
    }
    waiting.append((objects, shown))
  }

  /// Takes the next frame whose texts are decided.
  ///
  /// - Parameter isEnd: Whether no more frames will come.
  /// - Returns: The frame with only the confirmed texts; nil if there is none.
  mutating func next(isEnd: Bool) -> MovieFrameObjects? {
    guard let (objects, shown) = waiting.first,
      isEnd || shown.allSatisfy({ $0.isConfirmed || isOver($0) })
    else { return nil }
    waiting.removeFirst()
    var decided = objects
    decided.codes = zip(objects.codes, shown).filter { $0.1.isConfirmed }.map(\.0)
    return decided
  }

  /// Whether no further frame belongs to a group.
  private func isOver(_ group: Group) -> Bool { frameCount - group.lastFrame > Self.memory }
}
