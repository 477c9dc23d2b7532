// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankFrameAccounting
package import OvercrankLinuxSystem

/// A movie file that can be played while it grows: written in fragments, each sample once and
/// straight to its place.
///
/// libavformat gathers a fragment in memory before it writes it, which copies every picture twice
/// more; so only the head of the file is its work. Room for the `moof` of an open fragment is
/// written before its samples: to close it takes no more of the disk, even of a full one.
package struct FragmentedMovieWriter: ~Copyable {
  /// How long fragments are, and what they have room for.
  package struct Layout {
    /// In ticks of the first track.
    package var fragmentTicks: Int64
    /// Samples of all tracks; a fragment that has more ends early.
    package var samplesPerFragment: Int
    /// Frames whose records may wait for ``FragmentedMovieWriter/settle()``, to be written together.
    package var unsettledFrames = 0

    package init(fragmentTicks: Int64, samplesPerFragment: Int, unsettledFrames: Int = 0) {
      self.fragmentTicks = fragmentTicks
      self.samplesPerFragment = samplesPerFragment
      self.unsettledFrames = unsettledFrames
    }
  }

  /// A track of the head.
  package struct Track {
    let encoding: SampleEncoding
    /// The time of its first sample, which its times in the file are counted from.
    let firstTicks: Int64
    fileprivate var lastTicks: Int64?

    package init(encoding: SampleEncoding, firstTicks: Int64) {
      self.encoding = encoding
      self.firstTicks = firstTicks
    }
  }

  private let file: RandomAccessFile
  private let disk: DiskSync
  private let layout: Layout
  private var tracks: [Track]
  private var fragment: MovieFragment?
  private var journal = FragmentJournal(start: 0, capacity: 0)
  /// Frames whose records are not written yet.
  private var unsettledFrames = 0
  /// What is to be noted in the first fragment, before there is one.
  private var early: [FrameObservation] = []
  private var fragmentCount: UInt32 = 0
  private var scratch: ScratchBytes
  /// Bytes in the file so far.
  package private(set) var byteCount: Int64

  /// Places in a fragment are told in 31 bits.
  private static let maximumFragmentBytes: Int64 = 1 << 30

  private static let sectorBytes = 512

  /// Writes the head of a file that exists and holds no more than a movie without tracks.
  ///
  /// - Parameters:
  ///   - open: The file; nothing else writes to it.
  ///   - head: The boxes before the first fragment.
  ///   - tracks: The tracks of the head; the first is the one of frames.
  ///   - layout: How it is cut into fragments.
  ///   - reservesSpace: Whether room on the disk is taken ahead of the file's end.
  /// - Throws: `SystemError` where the file cannot be written.
  package init(
    _ open: OpenFile, head: [UInt8], tracks: [Track], layout: Layout, reservesSpace: Bool = true
  ) throws(SystemError) {
    let file = RandomAccessFile(open)
    // What stands there may be opened. Its first sector, which a disk writes whole or not at all,
    // is replaced when all the others are there.
    try file.write(Array(head.dropFirst(Self.sectorBytes)), at: Int64(Self.sectorBytes))
    try file.sync()
    try file.write(Array(head.prefix(Self.sectorBytes)), at: 0)
    disk = try DiskSync(open, reservesSpace: reservesSpace)
    self.file = file
    scratch = ScratchBytes()
    self.tracks = tracks
    self.layout = layout
    byteCount = Int64(head.count)
  }

  /// Writes a sample; it lasts until the next of its track.
  ///
  /// - Parameters:
  ///   - bytes: The sample.
  ///   - track: Its track's place in the head.
  ///   - ticks: When it is decoded and shown.
  ///   - duration: How long it lasts if none follows, in ticks.
  ///   - isKeyFrame: Whether decoding may start here.
  /// - Throws: `SystemError`: times that do not rise or are too far apart, a full disk. What was
  ///   written before stays.
  package mutating func append(
    _ bytes: UnsafeRawBufferPointer, track: Int, ticks: Int64, duration: Int64, isKeyFrame: Bool
  ) throws(SystemError) {
    // Before anything is written: what is refused must not be in the file.
    try disk.check()
    let shaped = tracks[track].encoding.shape(bytes, in: &scratch)
    try check(shaped, track: track, ticks: ticks)
    let time = ticks - tracks[track].firstTicks
    fragment?.endLast(ofTrack: track, atTicks: time)
    if let fragment {
      let isLong = track == 0 && time - fragment.ticks >= layout.fragmentTicks
      let isLarge = byteCount - fragment.start + Int64(shaped.count) > Self.maximumFragmentBytes
      let isFull = !fragment.hasSpace(in: headSpace) || !journal.hasSpace(for: 2)
      if isLong || isLarge || isFull { try closeFragment() }
    }
    if fragment == nil {
      let images = tracks[0].lastTicks.map { $0 - tracks[0].firstTicks } ?? 0
      try openFragment(atTicks: track == 0 ? time : images)
    }
    let check = try write(shaped)
    let sample = StoredSample(
      track: track, position: byteCount, byteCount: shaped.count, ticks: time,
      duration: duration, isKeyFrame: isKeyFrame, check: check)
    fragment?.append(sample)
    byteCount += Int64(shaped.count)
    tracks[track].lastTicks = ticks
    journal.hold(sample)
    // A picture's goes to the file with its frame's, which is noted next.
    if track != 0 { try settle() }
    disk.note(writtenBytes: byteCount)
  }

  /// Writes a sample behind the file's end, in pieces that the processor still holds when they are
  /// checked; answers with the check.
  private func write(_ sample: UnsafeRawBufferPointer) throws(SystemError) -> UInt64 {
    var check = SampleCheck(of: sample, at: byteCount)
    for start in stride(from: 0, to: sample.count, by: Self.pieceBytes) {
      let end = min(sample.count, start + Self.pieceBytes)
      let piece = UnsafeRawBufferPointer(rebasing: sample[start..<end])
      try file.write(piece, at: byteCount + Int64(start))
      check.add(upTo: end)
    }
    return check.finish()
  }

  private static let pieceBytes = 1 << 18

  /// Notes a frame that arrived, whether or not it became a sample.
  ///
  /// - Throws: `SystemError` for "write to".
  package mutating func note(_ frame: FrameObservation) throws(SystemError) {
    guard let fragment else {
      early.append(frame)
      return
    }
    if !journal.hasSpace(for: 1) {
      try closeFragment()
      try openFragment(atTicks: fragment.ticks)
    }
    journal.hold(frame)
    unsettledFrames += 1
    if unsettledFrames > layout.unsettledFrames { try settle() }
  }

  /// Writes the records that wait: of what was stored and noted until now, nothing is lost when the
  /// program is killed.
  ///
  /// - Throws: `SystemError` for "write to".
  package mutating func settle() throws(SystemError) {
    unsettledFrames = 0
    try journal.flush(to: file)
  }

  /// Sets how long the last sample of a track lasts, in ticks.
  package mutating func endLast(ofTrack track: Int, duration: Int64) {
    guard let last = tracks[track].lastTicks else { return }
    fragment?.endLast(ofTrack: track, atTicks: last - tracks[track].firstTicks + duration)
  }

  /// Closes the last fragment; nothing is written afterwards.
  ///
  /// - Throws: `SystemError` for "write to": the fragment is then lost.
  package mutating func finish() throws(SystemError) {
    defer { disk.stop() }
    if fragment != nil { try closeFragment() }
    disk.stop()
    // A sample that found no room may have been written in part.
    file.truncate(to: byteCount)
    // Whoever opens the file again is not told of it.
    try disk.check()
  }

  /// Bytes kept for the `moof` of a fragment and what readers skip behind it.
  private var headSpace: Int {
    MovieFragment.maximumHeadBytes(
      trackCount: tracks.count, sampleCount: layout.samplesPerFragment)
  }

  /// Takes room for the head, which readers skip until it is written, and for the journal.
  private mutating func openFragment(atTicks ticks: Int64) throws(SystemError) {
    let capacity = 2 * layout.samplesPerFragment + early.count
    fragmentCount += 1
    var head = BoxBytes()
    head.free(headSpace)
    FragmentJournal.write(
      capacity: capacity, number: fragmentCount, fragmentStart: byteCount,
      syncedBytes: disk.syncedBytes, into: &head)
    // A box of size 0 goes to the end of the file, wherever that is by then.
    head.append(UInt32(0))
    head.append(BoxType.media)
    try file.write(head.bytes, at: byteCount)
    fragment = MovieFragment(start: byteCount, ticks: ticks, trackCount: tracks.count)
    journal = FragmentJournal(start: byteCount + Int64(headSpace), capacity: capacity)
    byteCount += Int64(head.bytes.count)
    for frame in early { journal.hold(frame) }
    early = []
    try settle()
  }

  private mutating func closeFragment() throws(SystemError) {
    guard let closing = fragment.take() else { return }
    try settle()
    let head = closing.head(number: fragmentCount, space: headSpace)
    try file.writeFrontLast(head, at: closing.start)
    let mediaStart =
      journal.start + Int64(FragmentJournal.byteCount(capacity: journal.capacity))
    var size = BoxBytes()
    size.append(UInt32(clamping: byteCount - mediaStart))
    try file.write(size.bytes, at: mediaStart)
  }

  /// Refuses what the boxes cannot hold.
  private func check(
    _ bytes: UnsafeRawBufferPointer, track: Int, ticks: Int64
  ) throws(SystemError) {
    let last = tracks[track].lastTicks
    let (step, overflow) = ticks.subtractingReportingOverflow(last ?? tracks[track].firstTicks)
    guard !overflow, last == nil ? step == 0 : step > 0, step <= Int64(Int32.max),
      (1...Int(Int32.max) / 2).contains(bytes.count)
    else {
      throw SystemError(
        "store a frame of \(bytes.count) bytes at \(ticks) (\(step) after the one before) in",
        file.path, EINVAL)
    }
  }
}
