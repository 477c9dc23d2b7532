// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Overcrank
import Synchronization

/// Stores objects that are found during a recording in the recorded movie.
final class StoredObjects: Sendable {
  private let movie: MovieFileOutput
  private let longCount = Atomic<Int>(0)
  private let lateCount = Atomic<Int>(0)
  private let isOver = Atomic<Bool>(false)

  init(_ movie: MovieFileOutput) { self.movie = movie }

  /// Starts searching the frames of a session, beginning with the first frame.
  func find(
    _ selection: ObjectSelection, in session: CaptureSession, _ recognition: any ObjectRecognition
  ) throws -> any ObjectSearch {
    try recognition.search(session, selection) { [self] in store($0) }
  }

  private func store(_ objects: [RecognizedObject]) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    for object in objects {
      let stored = StoredObject(object)
      let data = try? encoder.encode(stored)
      let isTaken = try? data.map {
        try movie.append(
          .text(String(decoding: $0, as: UTF8.self)), forKey: stored.key,
          atCaptureTime: object.time)
      }
      if isTaken == nil {
        longCount.wrappingAdd(1, ordering: .relaxed)
      } else if isTaken != true || isOver.load(ordering: .acquiring) {
        lateCount.wrappingAdd(1, ordering: .relaxed)
      }
    }
  }

  /// Waits until the search of the last frame has ended.
  ///
  /// The movie is already finished, so objects that are found now are only counted as late.
  func end(_ search: (any ObjectSearch)?) {
    isOver.store(true, ordering: .releasing)
    while search?.isBusy == true { usleep(1_000) }
  }

  /// Warnings with the number of objects that were not stored, by reason.
  var warnings: [String] {
    let counts = [
      (longCount.load(ordering: .relaxed), "their text is too long"),
      (lateCount.load(ordering: .relaxed), "they were found after the movie's end"),
    ]
    return counts.compactMap { count, reason in
      count == 0 ? nil : "\(count) objects were not stored: \(reason)"
    }
  }
}
