// SPDX-License-Identifier: Apache-2.0
import Capture
import Glibc

/// How large a take's file may become, and how full its disk.
///
/// Asked by the writer before it stores a frame, so that what is left over belongs to no take
/// instead of being lost.
struct FileLimits {
  private let path: String
  private let maximumSize: Int64?
  private let minimumFree: Int64?
  private var nextLook = Int64.min
  private var freeBytes = Int64.max

  /// What a plain file needs beyond its frames: the head and the tags once more, and of each
  /// frame its place, size and time, in the fragment and in the index, and its record in the
  /// ledger.
  private static let bytesPerFile: Int64 = 64 << 10
  private static let bytesPerFrame: Int64 = 96
  /// How often the disk is looked at, in microseconds of the take.
  private static let lookInterval: Int64 = 200_000

  init(_ settings: RecordingSettings) {
    path = settings.path
    maximumSize = settings.maxRecordedFileSize
    minimumFree = settings.minFreeDiskSpaceLimit
  }

  /// The reason to end a take before one more frame, if there is one.
  mutating func reason(
    against frame: QueuedFrame, fileBytes: Int64, frames: Int64
  ) -> StopReason? {
    let size = fileBytes + Int64(frame.bytes.count)
    let finished = size + Self.bytesPerFile + (frames + 1) * Self.bytesPerFrame
    if let maximumSize, finished > maximumSize { return .maxSize }
    guard let minimumFree else { return nil }
    if frame.observation.microseconds >= nextLook {
      nextLook = frame.observation.microseconds + Self.lookInterval
      // Where the disk cannot be asked, the limit is not known to be reached.
      freeBytes = FreeSpace.bytes(at: path) ?? .max
    }
    return freeBytes < minimumFree ? .minFree : nil
  }
}

/// The room that is left on a disk.
enum FreeSpace {
  /// Bytes that a user without privileges may still write where a file is or is to be; nil where
  /// the system does not tell (statvfs(3)).
  static func bytes(at path: String) -> Int64? {
    var status = statvfs()
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    guard statvfs(path, &status) == 0 || statvfs(folder, &status) == 0 else { return nil }
    let (bytes, overflow) = Int64(clamping: status.f_bavail)
      .multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
    return overflow ? .max : bytes
  }
}
