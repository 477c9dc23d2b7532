// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Writes a plain MOV or MP4 file: samples in the order of the calls, and an index of them.
///
/// Times are stored exactly as given, in ticks of each track. An error is thrown for times that do not
/// increase or do not fit the boxes.
package struct MovieFileWriter: ~Copyable {
  /// The layout and the contents of the file besides its tracks.
  package struct Settings: Sendable {
    package var index: MovieIndex
    /// The size of the space for the index at the start of the file, in bytes.
    ///
    /// An index that does not fit is written at the end. Nil puts the index at the end, too.
    package var frontIndexBytes: Int?
    /// The chapters in ascending order, without overlap, in ticks of the movie.
    ///
    /// They are stored as a text track, to which QuickTime's players refer.
    package var chapters: [MovieIndex.Chapter] = []

    package init(index: MovieIndex) { self.index = index }
  }

  /// The times and properties of a sample that is appended.
  package struct Sample {
    package var track: Int
    package var ticks: Int64
    package var presentationOffset: Int64 = 0
    package var duration: Int64
    /// The number of samples in a block of uncompressed audio; otherwise 1.
    package var count = 1
    package var description = 0
    package var isKeyFrame: Bool
    package var isDroppable = false

    package init(track: Int, ticks: Int64, duration: Int64, isKeyFrame: Bool) {
      (self.track, self.ticks, self.duration) = (track, ticks, duration)
      self.isKeyFrame = isKeyFrame
    }
  }

  private struct Track {
    var track: MovieTrack
    var samples = SampleTable()
  }

  private let file: RandomAccessFile
  private var settings: Settings
  private var tracks: [Track]
  private var output: RangeCopier
  /// The byte offset of the `mdat` box, before which 8 bytes are left for a long size.
  private var mediaStart: Int64 = 0
  private var headEnd: Int64 = 0

  /// Starts a file.
  ///
  /// - Parameters:
  ///   - open: An empty file. Nothing else may write to it.
  ///   - tracks: The tracks.
  ///   - settings: The layout of the file.
  ///   - sources: The files from which samples are copied by ``copy(_:_:from:at:runBytes:)``.
  /// - Throws: `CallFailure` with the operation "write to".
  package init(
    _ open: OpenFile, tracks: [MovieTrack], settings: Settings, copying sources: [OpenFile] = []
  ) throws(CallFailure) {
    file = RandomAccessFile(open)
    self.settings = settings
    output = RangeCopier(to: open, from: sources)
    self.tracks = tracks.map { Track(track: $0) }
    try output.append(settings.index.fileType(for: tracks, isFragmented: false))
    headEnd = output.byteCount
    if let space = settings.frontIndexBytes { try output.skip(space) }
    var head = BoxBytes()
    // If the media needs a size of 64 bits, its header takes the place of this box.
    head.box(settings.index.container == .mov ? BoxType.wide : BoxType.free) { _ in }
    mediaStart = output.byteCount + 8
    head.box(BoxType.media) { _ in }
    try output.append(head.bytes)
    try addChapters()
  }

  /// The number of bytes written to the file so far.
  package var byteCount: Int64 { output.byteCount }

  /// Replaces the description of a track, except for its end and its references to other tracks, before the
  /// file is finished.
  package mutating func describe(_ number: Int, as track: MovieTrack) {
    let (references, end) = (tracks[number].track.references, tracks[number].track.endTicks)
    tracks[number].track = track
    tracks[number].track.endTicks = end
    tracks[number].track.references += references
  }

  /// Replaces the marks of a track's samples at which decoding may start, as indices from 0.
  package mutating func mark(_ track: Int, keyFrames: Set<Int>, partial: Set<Int>) {
    let old = tracks[track].samples.samples
    var samples = SampleTable()
    for (index, var sample) in old.enumerated() {
      sample.isKeyFrame = keyFrames.contains(index)
      sample.isPartialSync = partial.contains(index)
      samples.append(sample)
    }
    tracks[track].samples = samples
  }

  /// Appends a sample.
  ///
  /// - Throws: `CallFailure` with the operation "write to", or for times that do not increase or do not
  ///   fit the boxes; nothing is written then.
  package mutating func append(
    _ bytes: UnsafeRawBufferPointer, _ sample: Sample
  ) throws(CallFailure) {
    let stored = try stored(sample, byteCount: bytes.count)
    try output.append(bytes)
    tracks[sample.track].samples.append(stored)
  }

  /// Appends a sample that is copied from a source, inside the kernel where possible.
  ///
  /// - Parameters:
  ///   - byteCount: The size of the sample.
  ///   - sample: Its times and properties.
  ///   - source: The index of the source.
  ///   - start: The offset of the sample in the source.
  ///   - runBytes: Returns the number of bytes in this sample and the following ones that are contiguous
  ///     in the source and in this file, at least up to ``RangeCopier/shareableRunBytes``.
  /// - Throws: `CallFailure` as ``append(_:_:)`` does, and with the operation "read" or "read all
  ///   packets of" for an error of the source. An error may concern an earlier sample.
  package mutating func copy(
    _ byteCount: Int, _ sample: Sample, from source: Int, at start: Int64, runBytes: () -> Int64
  ) throws(CallFailure) {
    try output.align(source, start, runBytes: runBytes)
    let stored = try stored(sample, byteCount: byteCount)
    try output.copy(Int64(byteCount), from: source, at: start)
    tracks[sample.track].samples.append(stored)
  }

  /// Describes a sample that is written next, or throws an error if the boxes cannot describe it.
  private func stored(
    _ sample: Sample, byteCount: Int
  ) throws(CallFailure) -> SampleTable.Sample {
    let last = tracks[sample.track].samples.samples.last?.ticks
    let (step, overflow) = sample.ticks.subtractingReportingOverflow(last ?? sample.ticks)
    guard !overflow, last == nil || step > 0, step <= Int64(Int32.max),
      let offset = Int32(exactly: sample.presentationOffset), offset >= 0,
      let duration = Int32(exactly: sample.duration), duration >= 0,
      let count = Int32(exactly: byteCount), count > 0, sample.ticks.magnitude < UInt64(1) << 62
    else {
      throw CallFailure(
        "store a frame at \(sample.ticks &+ sample.presentationOffset) (decoded at \(sample.ticks), "
          + "\(step) after the one before) in", file.path, EINVAL)
    }
    var stored = SampleTable.Sample(
      position: output.byteCount, byteCount: count, ticks: sample.ticks, duration: duration,
      isKeyFrame: sample.isKeyFrame)
    stored.presentationOffset = offset
    stored.count = Int32(clamping: max(1, sample.count))
    stored.description = UInt16(clamping: sample.description)
    stored.isDroppable = sample.isDroppable
    return stored
  }

  /// Writes the index.
  ///
  /// - Throws: `CallFailure` with the operation "write to", "read" or "close". The file may then lack
  ///   its index.
  package mutating func finish() throws(CallFailure) {
    try output.flush()
    let mediaEnd = output.byteCount
    let index = settings.index.bytes(tracks.map { ($0.track, $0.samples) })
    var indexStart = mediaEnd
    if let space = settings.frontIndexBytes {
      // An index that does not fit is written at the end.
      let used = index.count + 8 <= space ? index.count : 0
      if used > 0 { indexStart = headEnd }
      var rest = BoxBytes()
      rest.append(UInt32(clamping: space - used))
      rest.append(BoxType.free)
      try file.write(rest.bytes, at: headEnd + Int64(used))
    }
    try file.write(index, at: indexStart)
    var head = BoxBytes()
    if let size = UInt32(exactly: mediaEnd - mediaStart) {
      head.append(size)
      try file.write(head.bytes, at: mediaStart)
    } else {
      head.append(UInt32(1))  // A size of 1 means that a 64-bit size follows the type.
      head.append(BoxType.media)
      head.append(mediaEnd - mediaStart + 8)
      try file.write(head.bytes, at: mediaStart - 8)
    }
    try output.close()
  }

  /// Adds the text track of the chapters, to which the other tracks refer.
  private mutating func addChapters() throws(CallFailure) {
    guard !settings.chapters.isEmpty else { return }
    let number = tracks.count
    // A track with the images of chapters is named beside the titles, and names none itself.
    let images = Set(
      tracks.flatMap(\.track.references).filter { $0.type == MovieTrack.Reference.chapters }
        .flatMap(\.tracks))
    for index in tracks.indices
    where tracks[index].track.kind != .other && !images.contains(index) {
      tracks[index].track.references.append(MovieTrack.Reference.chapters, number)
    }
    let movie = settings.index.timescale
    let timescale = ChapterTrack.timescale(of: settings.chapters, movie)
    tracks.append(Track(track: ChapterTrack.description(timescale: timescale)))
    settings.index.chapterList = settings.chapters.map {
      ($0.title, MovieIndex.rescale($0.start, from: movie, to: 1_000_000, .toNearest))
    }
    var next = Int64.min
    for chapter in settings.chapters {
      let bytes = ChapterTrack.sample(chapter.title)
      func ticks(_ time: Int64) -> Int64 {
        MovieIndex.rescale(time, from: movie, to: timescale, .toNearest)
      }
      // A chapter that would share the tick of the one before it begins a tick later.
      let start = max(next, ticks(chapter.start))
      let duration = min(max(1, ticks(chapter.end) &- start), Int64(Int32.max))
      let sample = Sample(track: number, ticks: start, duration: duration, isKeyFrame: true)
      next = start &+ 1
      try bytes.span.withUnsafeBytes { (bytes) throws(CallFailure) in try append(bytes, sample) }
    }
  }
}

/// The text track with the titles of chapters (QuickTime File Format, "Chapter lists").
private enum ChapterTrack {
  private static let text: UInt32 = 0x7465_7874  // text

  /// The number of ticks per second for the times of chapters.
  ///
  /// It is that of the movie, unless a chapter lasts longer than its ticks can state.
  static func timescale(of chapters: [MovieIndex.Chapter], _ movie: Int32) -> Int32 {
    let ends = chapters.dropFirst().map(\.start) + [chapters.last?.end ?? 0]
    let longest = zip(chapters, ends).map { $1 &- $0.start }.max() ?? 0
    return [movie, 1_000].first {
      MovieIndex.rescale(longest, from: movie, to: $0, .up) < Int64(Int32.max)
    } ?? 1
  }

  static func description(timescale: Int32) -> MovieTrack {
    var entry = BoxBytes()
    entry.box(text) { box in
      box.append(UInt64(1))  // reserved bytes, and the first data reference
      box.append(UInt32(1))  // the display flags
      // The justification, the color, the box and the range of characters.
      box.append(bytes: Array(repeating: 0, count: 6 + 8 + 4))
      box.append(UInt16(1))  // the font
      box.append(bytes: Array(repeating: 0, count: 6))  // style, size, color
      box.box(0x6674_6162) { box in  // ftab
        for number in [1, 1] as [UInt16] { box.append(number) }
        box.append(UInt8(0))
      }
    }
    var header = BoxBytes()
    header.box(BoxType.baseHeader) { box in
      MovieTrack.writeBaseInformation(into: &box)
      // A matrix, without which QuickTime shows no chapters.
      box.box(text) { box in
        box.append(UInt16(1))
        for value in [0, 0, 0, 1, 0, 0, 0, 0x4000] as [UInt32] { box.append(value) }
        box.append(UInt16(0))
      }
    }
    var track = MovieTrack(
      handler: text, name: "SubtitleHandler", timescale: timescale, language: 0,
      mediaHeader: header.bytes, descriptions: [SampleDescription(entry.bytes)])
    track.flags = 2
    return track
  }

  static func sample(_ title: String) -> [UInt8] {
    var sample = BoxBytes()
    let text = Array(title.utf8.prefix(Int(UInt16.max)))
    sample.append(UInt16(text.count))
    sample.append(bytes: text)
    sample.box(0x656E_6364) { $0.append(UInt32(0x100)) }  // encd, UTF-8
    return sample.bytes
  }
}
