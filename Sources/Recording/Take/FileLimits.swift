// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore

/// How large a take's file may become, and how full its disk.
///
/// Asked by the writer before it stores a frame, so that what is left over belongs to no take
/// instead of being lost.
struct FileLimits {
  /// What the sound of a take adds to its file in a second.
  struct Audio {
    let bytesPerSecond: Int64
    let packetsPerSecond: Int64
  }

  private let path: String
  private let audio: Audio?
  private let maximumSize: Int64?
  private let minimumFree: Int64?
  private var nextLook = Int64.min
  private var freeBytes = Int64.max

  /// What a plain file needs beyond its frames: the head and the tags once more, and of each
  /// frame its place, size and time, in the fragment and in the index, and its record in the
  /// ledger.
  private static let bytesPerFile: Int64 = 64 << 10
  private static let bytesPerFrame: Int64 = 96
  /// The same of a packet of sound.
  private static let bytesPerPacket: Int64 = 40
  /// Seconds of sound that may come after the last frame: while that is shown, and what a
  /// microphone is late.
  private static let lateAudio: Int64 = 2
  /// How often the disk is looked at, in microseconds of the take.
  private static let lookInterval: Int64 = 200_000

  init(_ settings: RecordingSettings, audio: Audio?) {
    self.audio = audio
    path = settings.path
    maximumSize = settings.maxRecordedFileSize
    minimumFree = settings.minFreeDiskSpaceLimit
  }

  /// The reason to end a take before one more frame, if there is one.
  mutating func reason(
    against frame: QueuedFrame, fileBytes: Int64, frames: Int64, seconds: Double
  ) -> StopReason? {
    let size = fileBytes + Int64(frame.bytes.count)
    var finished = size + Self.bytesPerFile + (frames + 1) * Self.bytesPerFrame
    if let audio {
      let packets = (Int64(saturating: seconds) + Self.lateAudio) &* audio.packetsPerSecond
      finished += Self.lateAudio * audio.bytesPerSecond + packets &* Self.bytesPerPacket
    }
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
  /// The most that ``reserve(at:)`` asks for.
  private static let largestReserve: Int64 = 512 << 20

  /// Bytes that captures without an end leave free unless asked otherwise: a twentieth of the disk
  /// on which a file is or is to be, but at most 512 MiB; nil where the system does not tell.
  static func reserve(at path: String) -> Int64? {
    status(at: path).map { min(largestReserve, bytes($0.f_blocks, $0) / 20) }
  }

  /// Bytes that a user without privileges may still write where a file is or is to be; nil where
  /// the system does not tell (statvfs(3)).
  static func bytes(at path: String) -> Int64? {
    status(at: path).map { bytes($0.f_bavail, $0) }
  }

  private static func status(at path: String) -> statvfs? {
    var status = statvfs()
    let folder = path.folderAndName.folder
    let isKnown =
      statvfs(path.systemPath, &status) == 0
      || statvfs((folder.isEmpty ? "." : folder).systemPath, &status) == 0
    return isKnown ? status : nil
  }

  private static func bytes(_ blocks: fsblkcnt_t, _ status: statvfs) -> Int64 {
    let (bytes, overflow) = Int64(clamping: blocks)
      .multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
    return overflow ? .max : bytes
  }
}
