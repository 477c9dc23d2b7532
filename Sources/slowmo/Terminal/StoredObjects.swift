// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank
import Synchronization

/// Stores the objects that are found during a recording in its movie.
final class StoredObjects: Sendable {
  private let movie: MovieFileOutput
  private let refusedCount = Atomic<Int>(0)

  init(_ movie: MovieFileOutput) { self.movie = movie }

  /// Finds objects in the frames of a session from its start.
  func find(
    _ types: ObjectTypes?, in session: CaptureSession, _ recognition: any ObjectRecognition
  ) throws -> any ObjectSearch {
    try recognition.search(session, types: types?.names ?? [], agreement: 2) { [self] in store($0) }
  }

  private func store(_ objects: [RecognizedObject]) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    for object in objects {
      let data = try? encoder.encode(StoredObject(object))
      let isStored = try? data.map {
        try movie.append(
          .text(String(decoding: $0, as: UTF8.self)), forKey: StoredObject.key,
          atCaptureTime: object.time)
      }
      if isStored != true { refusedCount.wrappingAdd(1, ordering: .relaxed) }
    }
  }

  /// The warning about objects that a movie cannot store.
  var warnings: [String] {
    let count = refusedCount.load(ordering: .relaxed)
    return count == 0 ? [] : ["\(count) objects were not stored: their text is too long"]
  }
}
