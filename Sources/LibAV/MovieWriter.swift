// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// A muxer for MOV and MP4 files, shared by recording and export.
///
/// Times are stored exactly as given, in ticks of each track. An error is thrown for times that do
/// not increase or are more than 2^31 ticks apart. libavformat would abort the program at such
/// times.
package struct MovieWriter: ~Copyable {
  /// The container, layout and metadata of the file.
  package struct Settings: Sendable {
    /// The container of the file: `mov` or `mp4`.
    package var container: String
    /// The number of ticks per second for the durations in the movie header.
    package var movieTimescale: Int32
    /// The duration of a fragment in microseconds.
    ///
    /// Nil for a file without fragments.
    ///
    /// With fragments, the index at the start of the file contains no packets.
    package var fragmentMicroseconds: Int64?
    /// The maximum number of packets in an index at the start of the file, where space is reserved
    /// for it.
    ///
    /// No data is moved when the index is written at the end, but further packets are rejected.
    ///
    /// Nil puts the index at the end of the file.
    package var frontIndexCount: Int?
    /// The metadata tags of the file.
    ///
    /// Every key is stored as given here (`use_metadata_tags`).
    package var metadata: [String: String] = [:]
    /// The chapters in ascending order, which must not overlap, in ticks of ``chapterTimescale``.
    package var chapters: [(title: String, start: Int64, end: Int64)] = []
    package var chapterTimescale: Int32 = 1_000

    package init(container: String, movieTimescale: Int32) {
      self.container = container
      self.movieTimescale = movieTimescale
    }
  }

  struct Track {
    let stream: UnsafeMutablePointer<AVStream>
    let timeBase: AVRational
    var lastDecodeTicks: Int64?
    /// The presentation time and the decoding time of the first packet that was written.
    var first: (pts: Int64, dts: Int64)?
    /// The range of time from the earliest presentation time to the latest end of a packet, in
    /// ticks.
    var shown: Range<Int64>?
  }

  package let path: String
  let settings: Settings
  /// The capture frame rate for the tag of Android cameras.
  ///
  /// Nil if the file has no such tag.
  let captureRate: Float?
  let context: UnsafeMutablePointer<AVFormatContext>
  var tracks: [Track] = []
  private var packetCount = 0
  var hasColorProfile = false
  /// The track whose full range can be stored only in a `colr` box, which this writer adds.
  ///
  /// Nil if there is no such track.
  var fullRangeTrack: (index: Int, parameters: CodecParameters)?
  private(set) var hasHeader = false
  var hasTrailer = false
  let scratch: UnsafeMutablePointer<AVPacket>
  /// The sink of the muxer's output, and the byte offset of the index in the file.
  ///
  /// Nil for a writer that writes a whole file instead of an index only.
  let index: (sink: IndexSink, start: Int64)?
  /// The sink of a writer that copies packets of source files; nil for other writers.
  let copying: CopyingSink?
  var copyEnd: CopyEnd?
  var expectedCopyBytes: Int64 = 0
  /// Whether the file has gaps between packets.
  var hasGaps = false

  /// Opens an existing file for writing.
  ///
  /// - Parameters:
  ///   - path: The path of the file. It must be empty if there are sources.
  ///   - settings: The layout of the file.
  ///   - sources: The files from which packets are copied by
  ///     ``copy(_:of:track:pts:dts:duration:runBytes:)``. Packets are then stored in the order of
  ///     the calls; without sources, the muxer sorts packets of different tracks by decode time.
  /// - Throws: `LibAVError` with the operation "create", or "open" for a file with sources.
  package init(
    path: String, settings: Settings, copying sources: [StoredMedia] = []
  ) throws(LibAVError) {
    let sink = try LibAVError.converting { () throws(SystemError) -> CopyingSink? in
      sources.isEmpty ? nil : try CopyingSink(path, sources)
    }
    try self.init(path: path, settings: settings, index: nil, copying: sink)
  }

  /// Prepares a new index for a file that already contains its packets, up to the offset `end`.
  ///
  /// ``addIndexEntry(_:like:placeholder:track:duration:)`` adds packets. The file is not modified.
  ///
  /// - Throws: `LibAVError` with the operation "create".
  package init(indexing path: String, upTo end: Int64, settings: Settings) throws(LibAVError) {
    try self.init(path: path, settings: settings, index: (IndexSink(start: end), end))
  }

  private init(
    path: String, settings: Settings, index: (sink: IndexSink, start: Int64)?,
    copying: CopyingSink? = nil
  ) throws(LibAVError) {
    var made: UnsafeMutablePointer<AVFormatContext>?
    try LibAVError.check(
      avformat_alloc_output_context2(&made, nil, settings.container, path.systemPath), "create",
      path)
    guard let context = made else { throw LibAVError("create", path, code: CFFmpeg_ENOMEM) }
    guard let packet = av_packet_alloc() else {
      avformat_free_context(context)
      throw LibAVError("create", path, code: CFFmpeg_ENOMEM)
    }
    var result: Int32 = 0
    if let sink = index?.sink ?? copying {
      context.pointee.pb = LibAVLog.during { sink.makeContext() }
      context.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
      if context.pointee.pb == nil { result = CFFmpeg_ENOMEM }
    } else {
      result = LibAVLog.during {
        avio_open(&context.pointee.pb, ("file:" + path).systemPath, AVIO_FLAG_WRITE)
      }
    }
    guard result >= 0 else {
      avformat_free_context(context)
      var gone: UnsafeMutablePointer<AVPacket>? = packet
      av_packet_free(&gone)
      throw LibAVError("create", path, code: result, logLine: LibAVLog.takeLine())
    }
    let captureRate = settings.metadata[MovieTags.captureRate].flatMap(MovieTags.rate)
    for (key, value) in settings.metadata.sorted(by: { $0.key < $1.key }) {
      let isRate = key == MovieTags.captureRate && captureRate != nil
      av_dict_set(
        &context.pointee.metadata, key, isRate ? MovieTags.placeholder : value, 0)
    }
    self.captureRate = captureRate
    if !settings.chapters.isEmpty { Self.addChapters(settings, to: context) }
    self.path = path
    self.settings = settings
    self.context = context
    self.index = index
    self.copying = copying
    scratch = packet
  }

  /// Replaces a metadata value before the movie is finished.
  ///
  /// The new text must not be longer than the old one, because the space for it is reserved.
  package mutating func replaceMetadata(_ key: String, with text: String) {
    guard !hasTrailer, let old = settings.metadata[key], text.utf8.count <= old.utf8.count else {
      return
    }
    av_dict_set(&context.pointee.metadata, key, text, 0)
  }

  /// Adds the chapters to the muxer's context.
  ///
  /// libavformat frees the chapters together with the context.
  private static func addChapters(
    _ settings: Settings, to context: UnsafeMutablePointer<AVFormatContext>
  ) {
    let count = settings.chapters.count
    guard let list = av_calloc(count, MemoryLayout<UnsafeMutablePointer<AVChapter>?>.stride)
    else { return }
    let entries = list.bindMemory(to: UnsafeMutablePointer<AVChapter>?.self, capacity: count)
    context.pointee.chapters = entries
    for (number, chapter) in settings.chapters.enumerated() {
      guard let memory = av_mallocz(MemoryLayout<AVChapter>.size) else { return }
      let entry = memory.bindMemory(to: AVChapter.self, capacity: 1)
      entry.pointee.id = Int64(number)
      entry.pointee.time_base = AVRational(num: 1, den: settings.chapterTimescale)
      entry.pointee.start = chapter.start
      entry.pointee.end = chapter.end
      av_dict_set(&entry.pointee.metadata, "title", chapter.title, 0)
      entries[number] = entry
      context.pointee.nb_chapters = UInt32(clamping: number + 1)
    }
  }

  deinit {
    if index != nil || copying != nil {
      MuxerSink.free(&context.pointee.pb)
    } else {
      // A file with fragments is valid even without a trailer. `deinit` cannot report an error, so
      // an error of closing the file is ignored.
      avio_closep(&context.pointee.pb)
    }
    avformat_free_context(context)
    var gone: UnsafeMutablePointer<AVPacket>? = scratch
    av_packet_free(&gone)
  }

  /// Writes the header.
  ///
  /// Call this before packets are written.
  ///
  /// - Throws: `LibAVError` with the operation "write the header of", for example when the
  ///   container does not support a codec.
  package mutating func begin() throws(LibAVError) {
    var options: OpaquePointer?
    defer { av_dict_free(&options) }
    var flags = ["use_metadata_tags"]
    // With `prefer_icc`, the ICC profile is written instead of the color tags. The color tags are
    // not lost, because codecs such as H.264 and HEVC store them in their own headers.
    if hasColorProfile { flags.append("prefer_icc") }
    if let fragment = settings.fragmentMicroseconds {
      // The header must contain the audio edit list, which depends on the first packets. The header
      // is therefore written only after these packets.
      flags += ["empty_moov", "delay_moov", "default_base_moof"]
      av_dict_set_int(&options, "frag_duration", fragment, 0)
    } else if let count = settings.frontIndexCount {
      // `moov_size` is the space to reserve for the index. Each packet needs at most 48 bytes in
      // the index: time, offset, size, chunk position, key frame flag, and the entry of its own
      // chunk. A metadata tag may be stored twice, with a long key.
      let tags = settings.metadata.reduce(0) {
        $0 + 64 + 2 * ($1.key.utf8.count + $1.value.utf8.count)
      }
      let headers = tracks.reduce(0) {
        $0 + 4096 + 2 * Int(max(0, $1.stream.pointee.codecpar.pointee.extradata_size))
      }
      // Chapters are stored twice, as a list and as a text track.
      let chapters = settings.chapters.reduce(0) { $0 + 128 + 2 * $1.title.utf8.count }
      av_dict_set_int(
        &options, "moov_size", Int64(count * 48 + tags + chapters + headers + 16_384), 0)
    }
    av_dict_set(&options, "movflags", flags.joined(separator: "+"), 0)
    av_dict_set_int(&options, "movie_timescale", Int64(settings.movieTimescale), 0)
    if let video = tracks.first(where: {
      $0.stream.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO
    }) {
      av_dict_set_int(&options, "video_track_timescale", Int64(video.timeBase.den), 0)
    }
    try LibAVError.check(
      avformat_write_header(context, &options), "write the header of", path)
    hasHeader = true
    for track in tracks
    where track.stream.pointee.codecpar.pointee.codec_tag == CodecParameters.y800 {
      // libavformat would invert the frames if the format is gray, and declare a palette if the
      // bits per sample are 8. Both values are therefore cleared.
      track.stream.pointee.codecpar.pointee.format = AV_PIX_FMT_NONE.rawValue
      track.stream.pointee.codecpar.pointee.bits_per_coded_sample = 0
    }
    let unknown = readDictionary(options).keys.sorted().joined(separator: ", ")
    guard unknown.isEmpty else {
      throw LibAVError("set the options \(unknown) of", path, code: CFFmpeg_EINVAL)
    }
    for track in tracks where track.stream.pointee.time_base.num <= 0 {
      throw LibAVError("write the header of", path, code: CFFmpeg_EINVAL)
    }
  }

  /// Writes a packet with the given times, in ticks of its track.
  ///
  /// - Throws: `LibAVError`. The operation is "write to" for an error of libavformat, such as a
  ///   full disk. It begins with "store a frame" if the decode times do not increase, if a
  ///   difference of times does not fit 31 bits, or if the presentation time is before the decode
  ///   time.
  package mutating func write(
    _ packet: Packet, track: Int, pts: Int64, dts: Int64, duration: Int64
  ) throws(LibAVError) {
    try check(track, pts: pts, dts: dts, duration: duration, byteCount: packet.byteCount)
    try LibAVError.check(av_packet_ref(scratch, packet.pointer), "write to", path)
    defer { av_packet_unref(scratch) }
    stamp(track, pts: pts, dts: dts, duration: duration)
    let result = LibAVLog.during {
      copying == nil
        ? av_interleaved_write_frame(context, scratch) : av_write_frame(context, scratch)
    }
    if let failure = copying?.failure { throw failure }
    try LibAVError.check(result, "write to", path)
    note(track, pts: pts, dts: dts, duration: duration)
    try checkOutput()
  }

  /// Records the times of a written packet.
  mutating func note(_ track: Int, pts: Int64, dts: Int64, duration: Int64) {
    let known = tracks[track].shown ?? pts..<pts
    tracks[track].first = tracks[track].first ?? (pts, dts)
    tracks[track].shown =
      min(known.lowerBound, pts)..<max(known.upperBound, pts &+ duration)
  }

  /// Throws an error for a packet that would fail an assertion of libavformat.
  mutating func check(
    _ track: Int, pts: Int64, dts: Int64, duration: Int64, byteCount: Int
  ) throws(LibAVError) {
    guard hasHeader, tracks.indices.contains(track) else {
      throw LibAVError("write before the header of", path, code: CFFmpeg_EINVAL)
    }
    let (delta, overflow) = dts.subtractingReportingOverflow(tracks[track].lastDecodeTicks ?? dts)
    let isFirst = tracks[track].lastDecodeTicks == nil
    let (offset, offsetOverflow) = pts.subtractingReportingOverflow(dts)
    // These limits come from the boxes `stts` and `ctts`. Beyond the limit of `stts`, an assertion
    // of libavformat fails. Beyond the limit of `ctts`, libavformat returns an error.
    guard !overflow, isFirst || delta > 0, delta <= Int64(Int32.max), !offsetOverflow,
      offset >= 0, offset <= Int64(Int32.max), (0...Int64(Int32.max)).contains(duration),
      byteCount > 0, packetCount < settings.frontIndexCount ?? .max
    else {
      throw LibAVError(
        "store a frame at \(pts) (decoded at \(dts), \(delta) after the one before) in", path,
        code: CFFmpeg_EINVAL)
    }
    tracks[track].lastDecodeTicks = dts
    packetCount += 1
  }

  func stamp(_ track: Int, pts: Int64, dts: Int64, duration: Int64) {
    let stream = tracks[track].stream
    scratch.pointee.stream_index = stream.pointee.index
    scratch.pointee.pts = pts
    scratch.pointee.dts = dts
    scratch.pointee.duration = duration
    scratch.pointee.pos = -1
    av_packet_rescale_ts(scratch, tracks[track].timeBase, stream.pointee.time_base)
  }

  /// Writes the index and closes the file.
  ///
  /// - Throws: `LibAVError` with the operation "finish". The file may then lack its index.
  package mutating func finish() throws(LibAVError) {
    guard hasHeader, !hasTrailer else { return }
    hasTrailer = true
    let mediaEnd = byteCount()
    let result = LibAVLog.during { av_write_trailer(context) }
    if let failure = copying?.failure { throw failure }
    try LibAVError.check(result, "finish", path)
    avio_flush(context.pointee.pb)
    if let failure = copying?.failure { throw failure }
    try checkOutput()
    if let copying {
      try finishCopying(copying, mediaEnd: mediaEnd)
    } else {
      try LibAVError.check(avio_closep(&context.pointee.pb), "close", path)
    }
    try completeHead()
  }

  /// The number of bytes written to the file so far.
  package mutating func byteCount() -> Int64 {
    guard let io = context.pointee.pb else { return 0 }
    return max(0, avio_seek(io, 0, SEEK_CUR))
  }

  /// Throws an error if an I/O error occurred.
  ///
  /// libavformat does not return every I/O error.
  private func checkOutput() throws(LibAVError) {
    if let io = context.pointee.pb, io.pointee.error < 0 {
      throw LibAVError("write to", path, code: io.pointee.error)
    }
  }
}
