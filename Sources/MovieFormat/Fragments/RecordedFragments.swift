// SPDX-License-Identifier: Apache-2.0

package import OvercrankFrameAccounting
import OvercrankLinuxSystem

/// A fragment as its journal describes it, whether or not its `moof` box exists.
package struct RecordedFragment {
  package let number: UInt32
  package let start: Int64
  /// The space for the `moof` box and the padding after it, in bytes.
  package let headSpace: Int
  /// The byte offset of the media data, after the `mdat` header.
  package let mediaStart: Int64
  /// The number of file bytes that were certainly on the disk when the fragment started.
  package let syncedBytes: Int64
  package var samples: [StoredSample] = []
  /// The attached data that belongs to no track, in file order.
  package var attachments: [StoredSample] = []
  /// The frames that arrived during the fragment.
  package var frames: [FrameObservation] = []
  /// The byte offset at which the media data of the fragment ends.
  package var mediaEnd: Int64 {
    max(samples.last?.end ?? mediaStart, attachments.last?.end ?? mediaStart)
  }
}

/// Finds the fragments of a recording through their journals, even in a truncated file.
///
/// The search stops at the first invalid fragment, because data after it may not belong to the
/// recording.
package struct RecordedFragments {
  package private(set) var fragments: [RecordedFragment] = []

  /// Takes fragments that were found before, such as those that a repair kept.
  package init(_ fragments: [RecordedFragment]) { self.fragments = fragments }

  /// Finds all fragments at or after the file offset `first`.
  package init(in file: borrowing MovieBoxes, from first: Int64) {
    var start = first
    while let fragment = Self.fragment(in: file, at: start, after: fragments.last) {
      fragments.append(fragment)
      start = fragment.mediaEnd
    }
  }

  /// Reads the intact ones of these attachments.
  static func attachments(
    _ attachments: [StoredSample], in file: borrowing MovieBoxes
  ) -> [[UInt8]] {
    var all: [[UInt8]] = []
    for sample in attachments {
      let bytes = file.file.read(sample.byteCount, at: sample.position)
      if sample.isWhole(bytes) { all.append(bytes) }
    }
    return all
  }

  private static func fragment(
    in file: borrowing MovieBoxes, at start: Int64, after last: RecordedFragment?
  ) -> RecordedFragment? {
    let number = (last?.number ?? 0) &+ 1
    // One or two boxes precede the journal. If their headers are damaged, the journal is assumed at
    // the same distance as in the previous fragment.
    var offsets: [Int64] = []
    if let head = file.box(at: start), head.type == BoxType.free || head.type == BoxType.fragment {
      offsets.append(head.end)
      if let padding = file.box(at: head.end), padding.type == BoxType.free {
        offsets.append(padding.end)
      }
    }
    if let last { offsets.append(start + Int64(last.headSpace)) }
    for offset in offsets {
      guard let space = Int(exactly: offset - start), space > 0, space < 1 << 24,
        let box = journalBox(in: file, at: offset)
      else { continue }
      let head = file.file.read(FragmentJournal.headBytes, at: offset)
      guard let said = FragmentJournal.head(head, ofFragmentAt: start), said.number == number,
        let size = Int(exactly: box.byteCount)
      else { continue }
      let bytes = file.file.read(
        size - FragmentJournal.headBytes, at: offset + Int64(FragmentJournal.headBytes))
      return fragment(
        RecordedFragment(
          number: number, start: start, headSpace: space, mediaStart: box.end + 8,
          syncedBytes: said.synced), TakeRecord.list(bytes), fileEnd: file.byteCount)
    }
    return nil
  }

  /// The box at an offset, if it has the type and the size of a journal box; otherwise nil.
  private static func journalBox(in file: borrowing MovieBoxes, at offset: Int64) -> Box? {
    guard let box = file.box(at: offset), box.type == BoxType.uuid, box.headBytes == 8,
      box.byteCount >= Int64(FragmentJournal.headBytes), box.byteCount < 1 << 28
    else { return nil }
    return box
  }

  private static func fragment(
    _ empty: RecordedFragment, _ records: [TakeRecord], fileEnd: Int64
  ) -> RecordedFragment {
    var fragment = empty
    // A take without audio has a sample for each frame.
    fragment.samples.reserveCapacity(records.count / 2)
    fragment.frames.reserveCapacity(records.count / 2)
    for record in records {
      switch record {
      case .frame(let frame): fragment.frames.append(frame)
      case .sample(let sample):
        var sample = sample
        sample.position = fragment.mediaEnd
        guard sample.position <= fileEnd,
          Int64(sample.byteCount) <= fileEnd - sample.position
        else { return fragment }
        if sample.track == StoredSample.attachment {
          fragment.attachments.append(sample)
        } else {
          fragment.samples.append(sample)
        }
      }
    }
    return fragment
  }
}
