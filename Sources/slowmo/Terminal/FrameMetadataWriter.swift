// SPDX-License-Identifier: Apache-2.0

import Glibc
import Overcrank
import OvercrankLinuxSystem
import SystemPackage

/// Writes the times of frames as JSON lines to a file descriptor, one line for each written image.
struct FrameMetadataWriter {
  private let descriptor: FileDescriptor
  private let synthesized: SynthesizedFrames?

  /// Uses a file descriptor that the caller of the program opened, for the frames of a movie.
  ///
  /// - Throws: `CommandError` if the descriptor is not open for writing.
  init(_ number: Int32, _ asset: Asset) throws {
    synthesized = asset.synthesizedFrames
    let mode = fcntl(number, F_GETFL)
    guard mode >= 0, mode & O_ACCMODE != O_RDONLY else {
      throw CommandError.usage(
        "file descriptor \(number) is not open for writing",
        hint: "open it in the shell: \(number)>frames.ndjson")
    }
    descriptor = FileDescriptor(rawValue: number)
    PipeCapacity.raise(number)
  }

  /// Writes the line of a frame.
  ///
  /// - Throws: `ReaderIsGone` if the reader has closed its end, `CommandError` for another failure.
  func write(_ row: Asset.FrameTimingRow, _ image: EncodedFrame) throws {
    func text(_ value: (some BinaryInteger)?) -> String { value.map { "\($0)" } ?? "null" }
    // A recording of this library has no synthesized frames. For files of other programs, this is
    // unknown.
    let isSynthesized =
      synthesized.map { $0.confidenceTenths(ofFrame: row.index) != nil }
      ?? (row.sequence == nil ? nil : false)
    let line =
      "{\"index\":\(row.index),\"pts_ns\":\(row.time.wholeNanoseconds),"
      + "\"capture_ns\":\(text(row.captureTime?.wholeNanoseconds)),"
      + "\"sequence\":\(text(row.sequence)),\"duration_ns\":\(row.duration.wholeNanoseconds),"
      + "\"lost_before\":\(text(row.lostBefore)),"
      + "\"duplicate\":\(row.isDuplicate.map { "\($0)" } ?? "null"),"
      + "\"synthesized\":\(isSynthesized.map { "\($0)" } ?? "null"),"
      + "\"format\":\"\(image.format)\",\"width\":\(text(image.width)),"
      + "\"height\":\(text(image.height)),\"byte_count\":\(image.byteCount)}\n"
    let failure = Array(line.utf8).withUnsafeBytes { Output.fully($0, to: descriptor) }
    guard let reason = failure else { return }
    if reason == .brokenPipe { throw Output.ReaderIsGone() }
    throw Output.error(reason, "file descriptor \(descriptor.rawValue)")
  }
}

/// The capacity of pipes to a reader of frames.
enum PipeCapacity {
  /// `F_SETPIPE_SZ` of fcntl(2), whose macro Swift does not import.
  private static let command: Int32 = 1_031

  /// Raises the capacity of a pipe to 1 MiB, the most that an unprivileged program may have.
  ///
  /// Does nothing if the descriptor is not a pipe.
  static func raise(_ descriptor: Int32) { _ = fcntl(descriptor, command, Int32(1 << 20)) }
}
