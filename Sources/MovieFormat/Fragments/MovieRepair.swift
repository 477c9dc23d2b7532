// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankFrameAccounting
import OvercrankLinuxSystem
package import OvercrankMediaCore

/// The changes that make the fragments of an interrupted recording readable for all readers.
///
/// The recorder would have written the same bytes next, into space that it had already reserved. A
/// repair that is interrupted therefore never makes a part of the file unreadable.
package struct MovieRepair {
  package private(set) var fragments: [RecordedFragment]
  /// The number of video frames that readers find before the repair.
  package private(set) var framesBefore: Int64 = 0
  /// Whether damaged samples were dropped.
  private var isCut = false
  /// Whether the dropped samples include a video frame without a frame record.
  private var hasUnclaimed = false
  /// The number of frames of which only a part reached the file, so that they cannot be read.
  package private(set) var brokenFrames: Int64 = 0
  /// The samples that were dropped from a file of audio alone, whose samples have no frame records.
  package private(set) var droppedAudio: [StoredSample] = []
  /// The number of lead-in frames: video frames at the start of the file that are hidden.
  package let leadIn: Int
  /// All frames that have a record, including frames that cannot be read.
  package let frames: [FrameObservation]
  /// Whether each sample of the first track has a frame record, as video has.
  private let hasFrameRecords: Bool
  /// All attached data that has a record, also after a damaged sample.
  let attachments: [StoredSample]

  /// Plans the repair, without writing anything.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - first: The offset of the first fragment.
  ///   - leadIn: The number of hidden lead-in frames before the first frame of the take.
  package init(_ file: borrowing MovieBoxes, from first: Int64, leadIn: Int) {
    self.leadIn = leadIn
    fragments = RecordedFragments(in: file, from: first).fragments
    frames = fragments.flatMap(\.frames)
    attachments = fragments.flatMap(\.attachments)
    hasFrameRecords = Self.startsWithVideo(file)
    let end = fragments.last?.mediaEnd ?? first
    var isReadable = true
    for fragment in fragments {
      isReadable = isReadable && Self.hasWholeHead(fragment, file)
      if isReadable { framesBefore += frameCount(in: fragment) }
    }
    let began = end < file.byteCount && Self.isOpen(fragments.last, file)
    keepWhole(file)
    framesBefore = max(0, min(framesBefore - Int64(leadIn), frameCount))
    let taken = Int64(frames.count { $0.outcome == .taken })
    // A part of one more sample may have been written after the last sample that has a record.
    brokenFrames = max(0, taken - frameCount) + (began && !isCut || hasUnclaimed ? 1 : 0)
  }

  /// The number of intact video frames of the take, without lead-in frames; in a file of audio alone, the
  /// number of intact samples.
  package var frameCount: Int64 {
    max(0, fragments.reduce(0) { $0 + frameCount(in: $1) } - Int64(leadIn))
  }

  /// Whether samples are decoded in another order than they are shown.
  package var isReordered: Bool {
    fragments.contains { $0.samples.contains { $0.presentationOffset != 0 } }
  }

  /// Whether the first track is video; true if the index cannot be read.
  private static func startsWithVideo(_ file: borrowing MovieBoxes) -> Bool {
    guard let head = file.boxes().first(where: { $0.type == BoxType.movie }),
      let bytes = file.bytes(of: head), bytes.count > 8
    else { return true }
    let track = Box.list(in: bytes, from: 8, to: bytes.count)
      .first { $0.type == BoxType.track }.flatMap { MovieTrack($0, in: bytes) }
    return track?.kind != .audio
  }

  private func frameCount(in fragment: RecordedFragment) -> Int64 {
    Int64(fragment.samples.count { $0.track == 0 || !hasFrameRecords })
  }

  /// Whether the size of the fragment's `mdat` box is still 0, which means that the box extends to
  /// the end of the file.
  private static func isOpen(_ fragment: RecordedFragment?, _ file: borrowing MovieBoxes) -> Bool {
    guard let fragment else { return false }
    return Box.number(file.file.read(4, at: fragment.mediaStart - 8)[...]) == 0
  }

  /// Drops the first damaged sample and everything after it.
  private mutating func keepWhole(_ file: borrowing MovieBoxes) {
    // Synced bytes are certainly intact, so samples that consist of synced bytes need not be read.
    let synced = fragments.map(\.syncedBytes).max() ?? 0
    var taken = leadIn + frames.count { $0.outcome == .taken }
    for index in fragments.indices {
      for (offset, sample) in fragments[index].samples.enumerated() {
        // A video frame that has no frame record is dropped, because its capture time is unknown.
        if sample.track == 0, hasFrameRecords { taken -= 1 }
        guard taken >= 0, sample.end <= synced || Self.isWhole(sample, file) else {
          hasUnclaimed = taken < 0
          if !hasFrameRecords {
            droppedAudio =
              fragments[index].samples[offset...] + fragments[(index + 1)...].flatMap(\.samples)
          }
          fragments[index].samples.removeSubrange(offset...)
          fragments[index].attachments.removeAll { $0.position > sample.position }
          fragments.removeSubrange((index + 1)...)
          isCut = true
          return
        }
      }
    }
  }

  private static func isWhole(
    _ sample: StoredSample, _ file: borrowing MovieBoxes
  ) -> Bool {
    sample.isWhole(file.file.read(sample.byteCount, at: sample.position))
  }

  /// Whether the `moof` box agrees with the CRC-32 that is stored after it.
  private static func hasWholeHead(
    _ fragment: RecordedFragment, _ file: borrowing MovieBoxes
  ) -> Bool {
    let head = file.file.read(fragment.headSpace, at: fragment.start)
    let boxes = Box.list(in: head, from: 0, to: head.count)
    if fragment.samples.isEmpty { return boxes.count == 1 }
    guard boxes.count == 2, boxes[0].type == BoxType.fragment, boxes[1].byteCount >= 12 else {
      return false
    }
    let end = Int(boxes[0].end)
    let check = head[..<end].withUnsafeBytes { CRC32.checksum(of: $0) }
    return Box.number(head[(end + 8)..<(end + 12)]) == UInt64(check)
  }

  /// The bytes of the file that one write of the repair replaced.
  package struct Replaced {
    let position: Int64
    let bytes: [UInt8]
  }

  /// Writes the missing `moof` boxes and `mdat` headers.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - replaced: Receives the replaced bytes, in order of replacement.
  /// - Throws: `CallFailure` with the operation "write to", or if a `moof` box does not fit the
  ///   reserved space.
  package func write(
    to file: borrowing MovieBoxes, replaced: inout [Replaced]
  ) throws(CallFailure) {
    for (index, fragment) in fragments.enumerated() {
      let isLast = index == fragments.count - 1
      // If bytes follow the samples of the last fragment, its `mdat` box extends over these bytes
      // to the end of the file.
      let goesOn = isLast && fragment.mediaEnd < file.byteCount
      var media = BoxBytes()
      media.append(
        goesOn ? 0 : UInt32(clamping: fragment.mediaEnd - fragment.mediaStart + 8))
      media.append(BoxType.media)
      let oldMedia = file.file.read(8, at: fragment.mediaStart - 8)
      if oldMedia != media.bytes {
        replaced.append(Replaced(position: fragment.mediaStart - 8, bytes: oldMedia))
        try file.file.write(media.bytes, at: fragment.mediaStart - 8)
      }
      let head = Self.movieFragment(fragment, next: isLast ? nil : fragments[index + 1])
        .head(number: fragment.number, space: fragment.headSpace)
      guard head.count == fragment.headSpace else {
        throw CallFailure("find room for an index in", file.file.path, EINVAL)
      }
      // Even an intact `moof` box is rewritten, because it may list samples that the journal does
      // not.
      let oldHead = file.file.read(fragment.headSpace, at: fragment.start)
      if oldHead != head {
        replaced.append(Replaced(position: fragment.start, bytes: oldHead))
        try file.file.writeFrontLast(head, at: fragment.start)
      }
    }
    try file.file.sync()
  }

  /// Restores the replaced bytes, and truncates the file to its old size.
  package static func undo(
    _ replaced: [Replaced], in file: borrowing MovieBoxes, byteCount: Int64
  ) throws(CallFailure) {
    for piece in replaced.reversed() { try file.file.write(piece.bytes, at: piece.position) }
    if file.file.count() > byteCount { file.file.truncate(to: byteCount) }
    try file.file.sync()
  }

  private static func movieFragment(
    _ fragment: RecordedFragment, next: RecordedFragment?
  ) -> MovieFragment {
    let trackCount = (fragment.samples.map { $0.track }.max() ?? 0) + 1
    var made = MovieFragment(
      start: fragment.start, ticks: 0, trackCount: trackCount,
      isReordered: fragment.samples.contains { $0.presentationOffset != 0 })
    for sample in fragment.samples {
      made.endLast(ofTrack: sample.track, atTicks: sample.ticks)
      made.append(sample)
    }
    for sample in (next?.samples ?? []).reversed() where sample.track < trackCount {
      made.endLast(ofTrack: sample.track, atTicks: sample.ticks)
    }
    return made
  }
}
