// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankFrameAccounting
package import OvercrankLinuxSystem

/// What must be written into a recording that was cut off so that every reader finds its fragments.
///
/// Each of the writes is what the recorder itself would have written next, into room that was kept
/// for it: wherever they are cut off, no reader finds less than before.
package struct MovieRepair {
  package private(set) var fragments: [RecordedFragment]
  /// Pictures that readers found without the repair.
  package private(set) var framesBefore: Int64 = 0
  /// Whether there is more in the file than samples that are whole.
  private var isCut = false
  /// Whether one of those that were dropped is a picture whose frame has no record.
  private var hasUnclaimed = false
  /// Frames of which something reached the file, and that cannot be read.
  package private(set) var brokenFrames: Int64 = 0
  /// Pictures at the beginning that are no frames of the take, and not shown.
  package let leadIn: Int
  /// All the frames that the file tells of, also those that cannot be read.
  package let frames: [FrameObservation]

  /// Looks what must be done; nothing is written.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - first: Where its first fragment begins.
  ///   - leadIn: How many pictures come before the first frame of the take.
  package init(_ file: borrowing MovieBoxes, from first: Int64, leadIn: Int) {
    self.leadIn = leadIn
    fragments = RecordedFragments(in: file, from: first).fragments
    frames = fragments.flatMap(\.frames)
    let end = fragments.last?.mediaEnd ?? first
    var isReadable = true
    for fragment in fragments {
      isReadable = isReadable && Self.hasWholeHead(fragment, file)
      if isReadable { framesBefore += Self.pictures(in: fragment) }
    }
    let began = end < file.byteCount && Self.isOpen(fragments.last, file)
    keepWhole(file)
    framesBefore = max(0, min(framesBefore - Int64(leadIn), pictures))
    let taken = Int64(frames.count { $0.outcome == .taken })
    // The last one's bytes are there in part, and nothing else is known of it.
    brokenFrames = max(0, taken - pictures) + (began && !isCut || hasUnclaimed ? 1 : 0)
  }

  /// Pictures of the take that are whole.
  package var pictures: Int64 {
    max(0, fragments.reduce(0) { $0 + Self.pictures(in: $1) } - Int64(leadIn))
  }

  private static func pictures(in fragment: RecordedFragment) -> Int64 {
    Int64(fragment.samples.count { $0.track == 0 })
  }

  /// Whether the fragment's media go on to the end of the file, wherever that is.
  private static func isOpen(_ fragment: RecordedFragment?, _ file: borrowing MovieBoxes) -> Bool {
    guard let fragment else { return false }
    return Box.number(file.file.read(4, at: fragment.mediaStart - 8)[...]) == 0
  }

  /// Drops what is not whole, and all that follows it.
  private mutating func keepWhole(_ file: borrowing MovieBoxes) {
    // What was on the disk for sure needs not be read.
    let synced = fragments.map(\.syncedBytes).max() ?? 0
    var taken = leadIn + frames.count { $0.outcome == .taken }
    for index in fragments.indices {
      for (offset, sample) in fragments[index].samples.enumerated() {
        // Of a picture without its frame's record nobody knows when it was captured.
        if sample.track == 0 { taken -= 1 }
        guard taken >= 0, sample.end <= synced || Self.isWhole(sample, file) else {
          hasUnclaimed = taken < 0
          fragments[index].samples.removeSubrange(offset...)
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
    let bytes = file.file.read(sample.byteCount, at: sample.position)
    return bytes.count == sample.byteCount
      && bytes.withUnsafeBytes { SampleCheck.value(of: $0, at: sample.position) }
        == sample.check
  }

  /// Whether the `moof` is there, by the check that stands behind it.
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

  /// Bytes of the file that others took the place of.
  package struct Replaced {
    let position: Int64
    let bytes: [UInt8]
  }

  /// Writes the heads that are missing.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - replaced: What stood there before, in the order in which it was replaced.
  /// - Throws: `SystemError` for "write to", or where a head has no room.
  package func write(
    to file: borrowing MovieBoxes, replaced: inout [Replaced]
  ) throws(SystemError) {
    for (index, fragment) in fragments.enumerated() {
      let isLast = index == fragments.count - 1
      // The media of the last one go on to the end of the file, over all that is no part of it.
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
        throw SystemError("find room for an index in", file.file.path, EINVAL)
      }
      // Also where a head is whole: it may tell of samples of which the journal does not.
      let oldHead = file.file.read(fragment.headSpace, at: fragment.start)
      if oldHead != head {
        replaced.append(Replaced(position: fragment.start, bytes: oldHead))
        try file.file.writeFrontLast(head, at: fragment.start)
      }
    }
    try file.file.sync()
  }

  /// Gives a file back what stood in it, and cuts off what was added.
  package static func undo(
    _ replaced: [Replaced], in file: borrowing MovieBoxes, byteCount: Int64
  ) throws(SystemError) {
    for piece in replaced.reversed() { try file.file.write(piece.bytes, at: piece.position) }
    if file.file.count() > byteCount { file.file.truncate(to: byteCount) }
    try file.file.sync()
  }

  private static func movieFragment(
    _ fragment: RecordedFragment, next: RecordedFragment?
  ) -> MovieFragment {
    let trackCount = (fragment.samples.map { $0.track }.max() ?? 0) + 1
    var made = MovieFragment(start: fragment.start, ticks: 0, trackCount: trackCount)
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
