// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankFrameAccounting
package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Writes a fragmented movie that is playable while it grows.
///
/// Each sample is written once, directly to its final offset.
///
/// libavformat would buffer each fragment in memory, and copy every frame two more times. Space for
/// each `moof` box is written before the samples of its fragment. Closing a fragment therefore needs
/// no more disk space, and works even on a full disk.
package struct FragmentedMovieWriter: ~Copyable {
  /// The duration and the capacity of fragments.
  package struct Layout {
    /// The fragment duration, in ticks of the first track.
    package var fragmentTicks: Int64
    /// The maximum number of samples in a fragment, over all tracks.
    ///
    /// A fragment ends early if there are more samples.
    package var samplesPerFragment: Int
    /// The maximum number of frames whose journal records are collected before they are written
    /// together.
    ///
    /// ``FragmentedMovieWriter/flush()`` writes the collected records at once.
    package var unflushedFrames = 0
    /// Whether video samples are decoded in another order than they are shown (B-frames).
    package var isReordered = false

    package init(fragmentTicks: Int64, samplesPerFragment: Int, unflushedFrames: Int = 0) {
      self.fragmentTicks = fragmentTicks
      self.samplesPerFragment = samplesPerFragment
      self.unflushedFrames = unflushedFrames
    }
  }

  /// The maximum duration of a sample, in ticks of its track.
  ///
  /// Boxes store the duration in 32 bits, which some readers interpret as a signed number.
  package static let maximumSampleTicks = Int64(Int32.max)

  /// A track of the file.
  package struct Track {
    package fileprivate(set) var description: MovieTrack
    let encoding: SampleEncoding
    /// The times of the first sample, or earlier ones.
    ///
    /// The decoding time becomes zero in the file. It is negative for audio with encoder priming and for
    /// reordered video.
    let first: FirstSample
    // A property that is computed for each sample would copy the track.
    fileprivate let isVideo: Bool
    fileprivate var lastTicks: Int64?

    package init(_ description: MovieTrack, encoding: SampleEncoding, first: FirstSample) {
      (self.description, self.encoding, self.first) = (description, encoding, first)
      isVideo = description.kind == .video
    }
  }

  private let file: RandomAccessFile
  private let disk: DiskSync
  private let layout: Layout
  private var tracks: [Track]
  private var fragment: MovieFragment?
  private var journal = FragmentJournal()
  /// The number of frames whose journal records are not written yet.
  private var unflushedFrames = 0
  /// Frames that arrived before the first fragment was opened.
  ///
  /// Their records are written to the journal of the first fragment.
  private var early: [FrameObservation] = []
  private var fragmentCount: UInt32 = 0
  private var scratch: ScratchBytes
  /// The number of bytes written to the file so far.
  package private(set) var byteCount: Int64

  /// The maximum size of a fragment in bytes.
  ///
  /// Offsets inside a fragment are stored in 31 bits.
  private static let maximumFragmentBytes: Int64 = 1 << 30

  private static let sectorBytes = 512

  /// Writes the head, `ftyp` and `moov`, over an existing file that contains a movie without tracks.
  ///
  /// - Parameters:
  ///   - open: The file. Nothing else may write to it.
  ///   - index: The container and the tags.
  ///   - tracks: The tracks; the first one is video, unless the file has audio alone. Only the first one of each kind is enabled, so that
  ///     players do not play several at once.
  ///   - layout: The length and the capacity of fragments.
  ///   - reservesSpace: Whether disk space is reserved beyond the end of the file.
  /// - Throws: `CallFailure` if the file cannot be written.
  package init(
    _ open: OpenFile, index: MovieIndex, tracks: [Track], layout: Layout,
    reservesSpace: Bool = true
  ) throws(CallFailure) {
    var tracks = tracks
    var handlers: Set<UInt32> = []
    for number in tracks.indices
    where !handlers.insert(tracks[number].description.handler).inserted {
      tracks[number].description.flags &= ~1
    }
    let head =
      index.fileType(for: tracks.map(\.description), isFragmented: true)
      + index.fragmentedBytes(tracks.map { ($0.description, $0.first) })
    let file = RandomAccessFile(open)
    // A reader may open the file at any moment, so the header must never be visible in part. The
    // first sector is therefore written last, because a disk writes a sector atomically.
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

  /// Appends a sample, which lasts until the next sample of its track.
  ///
  /// - Parameters:
  ///   - bytes: The encoded sample.
  ///   - track: The index of the track.
  ///   - ticks: The decoding time.
  ///   - presentationOffset: The time in ticks from decoding to presentation, zero or above. It may
  ///     be above zero only if the layout is reordered.
  ///   - duration: The duration in ticks that applies if no further sample follows.
  ///   - isKeyFrame: Whether decoding may start at this sample.
  ///   - isDroppable: Whether no other sample depends on this one.
  /// - Throws: `CallFailure` for times that do not increase or are too far apart, and for a full
  ///   disk. Earlier samples stay in the file.
  package mutating func append(
    _ bytes: UnsafeRawBufferPointer, track: Int, ticks: Int64, presentationOffset: Int64 = 0,
    duration: Int64, isKeyFrame: Bool, isDroppable: Bool = false
  ) throws(CallFailure) {
    // A rejected sample must leave no bytes in the file, so all checks come before the first write.
    try disk.check()
    let encoding = tracks[track].encoding
    let shaped = encoding.shape(bytes, in: &scratch)
    try check(shaped, track: track, ticks: ticks)
    let time = ticks - tracks[track].first.ticks
    fragment?.endLast(ofTrack: track, atTicks: time)
    if let fragment {
      let isLong = track == 0 && time - fragment.ticks >= layout.fragmentTicks
      let isLarge = byteCount - fragment.start + Int64(shaped.count) > Self.maximumFragmentBytes
      let isFull = !fragment.hasSpace(in: headSpace) || !journal.hasSpace(for: 2)
      if isLong || isLarge || isFull { try closeFragment() }
    }
    if fragment == nil {
      let images = tracks[0].lastTicks.map { $0 - tracks[0].first.ticks } ?? 0
      try openFragment(atTicks: track == 0 ? time : images)
    }
    let check = try write(shaped)
    let sample = StoredSample(
      track: track, position: byteCount, byteCount: shaped.count, ticks: time,
      presentationOffset: presentationOffset, duration: duration, isKeyFrame: isKeyFrame,
      isDroppable: isDroppable, check: check)
    fragment?.append(sample)
    byteCount += Int64(shaped.count)
    tracks[track].lastTicks = ticks
    journal.hold(sample)
    // The record of a sample of the first video track is written later, together with the record of its
    // frame.
    if track != 0 || !tracks[track].isVideo { try flush() }
    disk.note(writtenBytes: byteCount)
  }

  /// Appends data that belongs to no track, such as encoded metadata values.
  ///
  /// Only the journal lists this data, so readers of the growing file skip it; see
  /// ``RecordedFragment/attachments``.
  ///
  /// - Parameters:
  ///   - bytes: The data, not empty.
  ///   - ticks: The time to which the data belongs, in ticks of the first track.
  /// - Returns: False if no sample was appended yet; nothing is written in this case.
  /// - Throws: `CallFailure` with the operation "write to".
  package mutating func attach(_ bytes: [UInt8], ticks: Int64) throws(CallFailure) -> Bool {
    guard let open = fragment, !bytes.isEmpty else { return false }
    try disk.check()
    if !journal.hasSpace(for: 1) {
      try closeFragment()
      try openFragment(atTicks: open.ticks)
    }
    let check = try bytes.span.withUnsafeBytes { (bytes) throws(CallFailure) in try write(bytes) }
    journal.hold(
      StoredSample(
        track: StoredSample.attachment, position: byteCount, byteCount: bytes.count, ticks: ticks,
        duration: 0, isKeyFrame: true, check: check))
    byteCount += Int64(bytes.count)
    try flush()
    disk.note(writtenBytes: byteCount)
    return true
  }

  /// Writes a sample at the end of the file, and returns the sample's ``SampleCheck``.
  ///
  /// The sample is written in small pieces. The checksum of each piece is computed directly after
  /// the write, while the piece is still in the CPU cache. A piece ends at the end of a page of the
  /// file, because the kernel must clear a new page that is only partly written.
  private func write(_ sample: UnsafeRawBufferPointer) throws(CallFailure) -> UInt64 {
    var check = SampleCheck(of: sample, at: byteCount)
    var start = 0
    while start < sample.count {
      let position = byteCount + Int64(start)
      let intoPage = Int(position % RandomAccessFile.pageBytes)
      let end = min(sample.count, start + Self.pieceBytes - intoPage)
      try file.write(UnsafeRawBufferPointer(rebasing: sample[start..<end]), at: position)
      check.add(upTo: end)
      start = end
    }
    return check.finish()
  }

  private static let pieceBytes = 1 << 17

  /// Records an arrived frame in the journal, whether or not the frame became a sample.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  package mutating func note(_ frame: FrameObservation) throws(CallFailure) {
    guard let fragment else {
      early.append(frame)
      return
    }
    if !journal.hasSpace(for: 1) {
      try closeFragment()
      try openFragment(atTicks: fragment.ticks)
    }
    journal.hold(frame)
    unflushedFrames += 1
    if unflushedFrames > layout.unflushedFrames { try flush() }
  }

  /// Writes the queued journal records.
  ///
  /// If the process is killed later, a recovery finds all samples and records so far.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  package mutating func flush() throws(CallFailure) {
    unflushedFrames = 0
    try journal.flush(to: file)
  }

  /// Sets the duration of a track's last sample, in ticks.
  package mutating func endLast(ofTrack track: Int, duration: Int64) {
    guard let last = tracks[track].lastTicks else { return }
    fragment?.endLast(ofTrack: track, atTicks: last - tracks[track].first.ticks + duration)
  }

  /// Closes the last fragment, after which no other method may be called.
  ///
  /// The samples so far are then playable.
  ///
  /// - Throws: `CallFailure` with the operation "write to"; the last fragment is then lost.
  package mutating func finish() throws(CallFailure) {
    defer { disk.stop() }
    if fragment != nil { try closeFragment() }
    disk.stop()
    // If the disk became full, a sample may have been written in part. That part is removed.
    file.truncate(to: byteCount)
    // The sync errors of this descriptor must be thrown here, because the file may be opened again
    // later, and a new descriptor does not report them.
    try disk.check()
  }

  /// The space for the `moof` box of a fragment and the padding after that box, in bytes.
  private var headSpace: Int {
    MovieFragment.maximumHeadBytes(
      trackCount: tracks.count, sampleCount: layout.samplesPerFragment,
      isReordered: layout.isReordered)
  }

  /// Writes the start of a fragment: a `free` box in place of the later `moof` box, an empty
  /// journal, and an `mdat` header without a size.
  private mutating func openFragment(atTicks ticks: Int64) throws(CallFailure) {
    let capacity = 2 * layout.samplesPerFragment + early.count
    fragmentCount += 1
    let journalStart = byteCount + Int64(headSpace)
    var head = BoxBytes(capacity: headSpace + FragmentJournal.byteCount(capacity: capacity) + 8)
    head.free(headSpace)
    FragmentJournal.write(
      capacity: capacity, number: fragmentCount, fragmentStart: byteCount,
      syncedBytes: disk.syncedBytes, into: &head)
    // A size of 0 means that the `mdat` box extends to the end of the file.
    head.append(UInt32(0))
    head.append(BoxType.media)
    try file.write(head.bytes, at: byteCount)
    fragment = MovieFragment(
      start: byteCount, ticks: ticks, trackCount: tracks.count, isReordered: layout.isReordered)
    journal.begin(at: journalStart, capacity: capacity)
    byteCount += Int64(head.bytes.count)
    for frame in early { journal.hold(frame) }
    early = []
    try flush()
  }

  private mutating func closeFragment() throws(CallFailure) {
    guard let closing = fragment.take() else { return }
    try flush()
    let head = closing.head(number: fragmentCount, space: headSpace)
    try file.writeFrontLast(head, at: closing.start)
    let mediaStart =
      journal.start + Int64(FragmentJournal.byteCount(capacity: journal.capacity))
    var size = BoxBytes()
    size.append(UInt32(clamping: byteCount - mediaStart))
    try file.write(size.bytes, at: mediaStart)
  }

  /// Throws an error if the boxes cannot represent the size or the time of a sample.
  private func check(
    _ bytes: UnsafeRawBufferPointer, track: Int, ticks: Int64
  ) throws(CallFailure) {
    let last = tracks[track].lastTicks
    let (step, overflow) = ticks.subtractingReportingOverflow(last ?? tracks[track].first.ticks)
    guard !overflow, last == nil ? step >= 0 : step > 0, step <= Self.maximumSampleTicks,
      (1...Int(Int32.max) / 2).contains(bytes.count)
    else {
      throw CallFailure(
        "store a frame of \(bytes.count) bytes at \(ticks) (\(step) after the one before) in",
        file.path, EINVAL)
    }
  }
}
