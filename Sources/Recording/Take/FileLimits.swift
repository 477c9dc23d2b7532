// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore

/// Limits on the file size and the free disk space of a take.
///
/// The writer checks the limits before it stores a frame. The first frame beyond a limit ends the
/// take, so that frame and the later ones do not count as lost.
struct FileLimits {
  /// The data rate and the packet rate of the audio in the file, in bytes and packets per second.
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

  /// The fixed part of the size of the metadata in a finished file, in bytes.
  ///
  /// The size has another part of `bytesPerFrame` for each frame.
  ///
  /// The header and the tags are stored twice. For each frame, position, size and time are stored
  /// both in the fragment and in the index, and the ledger contains a record.
  private static let bytesPerFile: Int64 = 64 << 10
  private static let bytesPerFrame: Int64 = 96
  /// The size of the metadata for each audio packet, in bytes.
  private static let bytesPerPacket: Int64 = 40
  /// The greatest length of audio that may be stored after the start of the last frame, in seconds.
  ///
  /// It covers the duration of the last frame and the delay of a microphone.
  private static let lateAudio: Int64 = 2
  /// The interval between checks of the free disk space, in microseconds of capture time.
  private static let lookInterval: Int64 = 200_000

  init(_ settings: RecordingSettings, audio: Audio?) {
    self.audio = audio
    path = settings.path
    maximumSize = settings.maxRecordedFileSize
    minimumFree = settings.minFreeDiskSpaceLimit
  }

  /// The reason to end the take before this frame is stored, or nil if no limit is reached.
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
      // If the free space is unknown because statvfs fails, the take continues.
      freeBytes = FreeSpace.bytes(at: path) ?? .max
    }
    return freeBytes < minimumFree ? .minFree : nil
  }
}

/// The free space of a disk.
package enum FreeSpace {
  /// The upper limit of ``reserve(at:)`` in bytes.
  private static let largestReserve: Int64 = 512 << 20

  /// The default free space limit of a capture with repeating triggers, in bytes.
  ///
  /// The limit is 5 % of the size of the disk that holds the file, at most 512 MiB.
  ///
  /// Nil if statvfs(3) fails.
  static func reserve(at path: String) -> Int64? {
    status(at: path).map { min(largestReserve, bytes($0.f_blocks, $0) / 20) }
  }

  /// The free bytes available to unprivileged users on the disk of a file.
  ///
  /// Nil if statvfs(3) fails.
  package static func bytes(at path: String) -> Int64? {
    status(at: path).map { bytes($0.f_bavail, $0) }
  }

  private static func status(at path: String) -> statvfs? {
    var status = statvfs()
    let isKnown =
      statvfs(path.systemPath, &status) == 0
      || statvfs(path.parentDirectory.systemPath, &status) == 0
    return isKnown ? status : nil
  }

  private static func bytes(_ blocks: fsblkcnt_t, _ status: statvfs) -> Int64 {
    let (bytes, overflow) = Int64(clamping: blocks)
      .multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
    return overflow ? .max : bytes
  }
}
