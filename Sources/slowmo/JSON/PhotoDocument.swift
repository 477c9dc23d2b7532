// SPDX-License-Identifier: Apache-2.0

import Overcrank
import Synchronization

/// The JSON document of `photo`.
struct PhotoDocument: Encodable {
  /// A photo that was written.
  struct File: Encodable {
    let file: String
    let id: Int64
    let frameIndex: Int64
    let sequence: UInt32
    /// The time at which the photo was taken, on the capture clock.
    let at: MediaTime
    let shutterLag: MediaTime
    /// The file name of the Live Photo's movie; nil for other photos.
    let movie: String?

    init(_ photo: Photo, path: String) {
      file = path
      id = photo.uniqueID
      frameIndex = photo.frameIndex
      sequence = photo.sequence
      at = photo.presentationTimeStamp
      shutterLag = photo.shutterLag
      movie = photo.livePhotoMovie?.path
    }
  }

  private enum CodingKeys: CodingKey { case schema, device, mode, dryRun, files, error }

  let device: String
  let mode: String
  let dryRun: Bool
  var files: [File] = []
  var problem: CommandError?

  init(device: String, mode: String, dryRun: Bool) {
    self.device = device
    self.mode = mode
    self.dryRun = dryRun
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schemaName("photo"), forKey: .schema)
    try container.encode(device, forKey: .device)
    try container.encode(mode, forKey: .mode)
    try container.encode(dryRun, forKey: .dryRun)
    try container.encode(files, forKey: .files)
    try container.encodeIfPresent(problem.map(ErrorDetails.init), forKey: .error)
  }
}

/// Counts photos for their file names, from 1.
final class PhotoCounter: Sendable {
  private let count = Atomic<Int64>(0)

  func next() -> Int64 { count.wrappingAdd(1, ordering: .relaxed).newValue }
}

/// Remembers a first time, from which the times in file names are counted.
final class FirstTime: Sendable {
  private let first = Mutex<Int64?>(nil)

  /// Stores the time of the first call; returns this first time in all calls.
  func of(_ time: Int64) -> Int64 {
    first.withLock { first in
      first = first ?? time
      return first ?? time
    }
  }
}
