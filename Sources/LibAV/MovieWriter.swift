// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankLinuxSystem
package import OvercrankMediaCore
package import OvercrankMovieFormat

/// Writes packets of libavcodec and libavformat to a MOV or MP4 file.
///
/// ``TrackMuxer`` describes each track and shapes its packets, and ``MovieFileWriter`` writes the file.
/// Packets are stored in the order of the calls.
package struct MovieWriter: ~Copyable {
  /// The container, layout and metadata of the file.
  package struct Settings: Sendable {
    package var container: MovieContainer
    /// The number of ticks per second for the durations in the movie header.
    package var movieTimescale: Int32
    /// The maximum number of packets in an index at the start of the file, where space is reserved for it.
    ///
    /// Nil puts the index at the end of the file.
    package var frontIndexCount: Int?
    /// The metadata tags of the file.
    package var metadata: [String: String] = [:]
    /// The chapters in ascending order, which must not overlap, in ticks of ``chapterTimescale``.
    package var chapters: [(title: String, start: Int64, end: Int64)] = []
    package var chapterTimescale: Int32 = 1_000

    package init(container: MovieContainer, movieTimescale: Int32) {
      (self.container, self.movieTimescale) = (container, movieTimescale)
    }
  }

  private struct Track {
    let muxer: TrackMuxer
    let format: TrackMuxer.Format
    /// The sample descriptions of the source, which replace that of the muxer; empty for none.
    let descriptions: [SampleDescription]
    let references: [MovieTrack.Reference]
    let endTicks: Int64?
    /// The time of an earlier packet that the muxer stores together with the next one.
    var pending: (dts: Int64, duration: Int64)?
    /// The decode time of the last packet that the muxer was given, in its ticks.
    var lastTicks: Int64?
  }

  package let path: String
  private let settings: Settings
  private let file: OpenFile
  private var tracks: [Track] = []
  /// The tracks that are copied sample by sample, which follow the others in the file.
  private var copiedTracks: [MovieTrack] = []
  private let sources: [OpenFile]
  private var movie: MovieFileWriter?

  /// Opens an existing file for writing.
  ///
  /// - Parameters:
  ///   - path: The path of the file, which must be empty.
  ///   - settings: The layout of the file.
  ///   - sources: The files from which packets are copied by
  ///     ``copy(_:from:track:pts:dts:duration:runBytes:)``.
  /// - Throws: `CallFailure` with the operation "open".
  package init(
    path: String, settings: Settings, copying sources: [OpenFile] = []
  ) throws(CallFailure) {
    file = try RandomAccessFile(opening: path).file
    (self.path, self.settings, self.sources) = (path, settings, sources)
  }

  /// Adds a track, before ``begin()``.
  ///
  /// - Parameters:
  ///   - parameters: The codec parameters.
  ///   - timescale: The number of ticks per second for the track's times.
  ///   - metadata: Tags of the track, such as `language`.
  ///   - displayMatrix: The nine numbers of the display matrix; empty for none.
  ///   - sideData: Side data for all frames. Kinds that the container does not support are omitted.
  ///   - descriptions: The sample descriptions of a source in the same container, which are stored
  ///     unchanged. Without them, one is made from the parameters.
  ///   - references: References to other tracks by their index in this file.
  ///   - endTicks: The time at which an edit list ends the track, in ticks; nil to end with the last packet.
  /// - Returns: The index of the track.
  /// - Throws: `CallFailure` if the container does not support the codec, or if memory is unavailable.
  package mutating func addTrack(
    _ parameters: CodecParameters, timescale: Int32, metadata: [String: String] = [:],
    displayMatrix: [Int32] = [], sideData: [TrackSideData] = [],
    descriptions: [SampleDescription] = [], references: [MovieTrack.Reference] = [],
    endTicks: Int64? = nil
  ) throws(CallFailure) -> Int {
    var format = TrackMuxer.Format(parameters, in: settings.container, timescale: timescale)
    (format.metadata, format.displayMatrix, format.sideData) = (metadata, displayMatrix, sideData)
    let muxer = try TrackMuxer(format, path: path)
    tracks.append(
      Track(
        muxer: muxer, format: format, descriptions: descriptions, references: references,
        endTicks: endTicks.map { av_rescale($0, Int64(muxer.timescale), Int64(timescale)) }))
    return tracks.count - 1
  }

  /// Adds a track whose samples are written by ``append(_:_:)``, after all tracks of packets.
  ///
  /// - Returns: The index of the track.
  package mutating func addTrack(copying track: MovieTrack) -> Int {
    copiedTracks.append(track)
    return tracks.count + copiedTracks.count - 1
  }

  /// Starts the file.
  ///
  /// Call this before packets are written.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  package mutating func begin() throws(CallFailure) {
    var index = MovieIndex(settings.container, timescale: settings.movieTimescale)
    index.tags = settings.metadata
    var layout = MovieFileWriter.Settings(index: index)
    layout.chapters = settings.chapters.map {
      MovieIndex.Chapter(
        title: $0.title,
        start: av_rescale(
          $0.start, Int64(settings.movieTimescale), Int64(settings.chapterTimescale)),
        end: av_rescale($0.end, Int64(settings.movieTimescale), Int64(settings.chapterTimescale)))
    }
    if let count = settings.frontIndexCount { layout.frontIndexBytes = frontIndexBytes(count) }
    let described =
      tracks.map { track in
        var unfinished = MovieTrack(unfinished: track.format, timescale: track.muxer.timescale)
        (unfinished.references, unfinished.endTicks) = (track.references, track.endTicks)
        return unfinished
      } + copiedTracks
    let (file, sources) = (file, sources)
    movie = try MovieFileWriter(file, tracks: described, settings: layout, copying: sources)
  }

  /// The space to reserve for the index of `count` packets, in bytes.
  private func frontIndexBytes(_ count: Int) -> Int {
    // Each packet needs at most 48 bytes in the index: time, offset, size, chunk position, key frame flag,
    // and the entry of its own chunk.
    let tags = settings.metadata.reduce(0) { $0 + 64 + $1.key.utf8.count + $1.value.utf8.count }
    let headers = tracks.reduce(0) { sum, track in
      sum + 4_096 + 2 * track.format.parameters.extradata.count
        + track.descriptions.reduce(0) { $0 + $1.bytes.count }
    }
    let copied = copiedTracks.reduce(0) { sum, track in
      sum + 4_096 + track.extras.count + track.mediaHeader.count
        + track.descriptions.reduce(0) { $0 + $1.bytes.count }
    }
    // Chapters are stored twice, as a list and as a text track.
    let chapters = settings.chapters.reduce(0) { $0 + 128 + 2 * $1.title.utf8.count }
    return count * 48 + tags + chapters + headers + copied + 16_384
  }

  /// Writes a packet with the given times, in ticks of its track.
  ///
  /// `description` is the index of the packet's sample description among those of the track.
  ///
  /// - Throws: `CallFailure`. The operation is "write to" if the packet is refused or the disk is full. It
  ///   begins with "store a frame" if the packet is empty, if the decode times do not increase, if a difference of times does not
  ///   fit 31 bits, or if the presentation time is before the decode time.
  package mutating func write(
    _ packet: Packet, track: Int, pts: Int64, dts: Int64, duration: Int64, description: Int = 0
  ) throws(CallFailure) {
    var sample = try sample(track, pts: pts, dts: dts, duration: duration)
    // libavformat accepts an empty packet and writes nothing, and its message about times names no time.
    guard packet.byteCount > 0, tracks[track].lastTicks.map({ $0 < sample.ticks }) ?? true else {
      throw storeFailure(pts: pts, dts: dts)
    }
    tracks[track].lastTicks = sample.ticks
    sample.isKeyFrame = packet.isKeyFrame
    sample.isDroppable = packet.isDroppable
    sample.description = description
    let stored = try tracks[track].muxer.store(
      packet, pts: sample.ticks &+ sample.presentationOffset, dts: sample.ticks,
      duration: sample.duration)
    let pending = tracks[track].pending
    guard !stored.bytes.isEmpty else {
      tracks[track].pending = (
        pending?.dts ?? sample.ticks, (pending?.duration ?? 0) &+ sample.duration
      )
      return
    }
    // A block of E-AC-3 may consist of several packets, and begins with the first one. Other packets are
    // parts of a frame, which is decoded with the last one.
    if let pending, tracks[track].format.parameters.codecID == AV_CODEC_ID_EAC3 {
      (sample.ticks, sample.presentationOffset) = (pending.dts, 0)
      sample.duration &+= pending.duration
    }
    tracks[track].pending = nil
    sample.count = stored.count
    try movie?.append(stored.bytes, sample)
  }

  /// Writes a sample of a track that is copied sample by sample, with times in ticks of that track.
  ///
  /// - Throws: `CallFailure` as ``write(_:track:pts:dts:duration:description:)`` does.
  package mutating func append(
    _ bytes: [UInt8], _ sample: MovieFileWriter.Sample
  ) throws(CallFailure) {
    try bytes.span.withUnsafeBytes { (bytes) throws(CallFailure) in
      try movie?.append(bytes, sample)
    }
  }

  /// Copies a packet from a source file without reading the packet.
  ///
  /// Use this only for codecs whose packets the container stores unchanged.
  ///
  /// `location` is the packet's location in the source, and `source` the index of the source among those of
  /// ``init(path:settings:copying:)``. `runBytes` returns the number of bytes in this packet and the
  /// following contiguous packets of the source, at least up to ``RangeCopier/shareableRunBytes``.
  ///
  /// - Throws: `CallFailure` as ``write(_:track:pts:dts:duration:description:)`` does, and with the
  ///   operation "read" or "read all packets of" for an error of the source. An error may concern an
  ///   earlier packet.
  package mutating func copy(
    _ location: PacketLocation, from source: Int, track: Int, pts: Int64, dts: Int64,
    duration: Int64, description: Int = 0, runBytes: () -> Int64
  ) throws(CallFailure) {
    var sample = try sample(track, pts: pts, dts: dts, duration: duration)
    sample.isKeyFrame = location.isKeyFrame
    sample.description = description
    do throws(CallFailure) {
      try movie?.copy(
        location.byteCount, sample, from: source, at: location.position, runBytes: runBytes)
    } catch { throw Self.failure(error) }
  }

  /// The sample of a packet with times in ticks of the track that the caller added.
  private func sample(
    _ track: Int, pts: Int64, dts: Int64, duration: Int64
  ) throws(CallFailure) -> MovieFileWriter.Sample {
    guard movie != nil, tracks.indices.contains(track) else {
      throw CallFailure("write before the header of", path, code: CFFmpeg_EINVAL)
    }
    let (given, stored) = (tracks[track].format.timescale, tracks[track].muxer.timescale)
    func ticks(_ time: Int64) -> Int64 {
      given == stored ? time : av_rescale(time, Int64(stored), Int64(given))
    }
    let (offset, overflow) = pts.subtractingReportingOverflow(dts)
    guard !overflow, (0...Int64(Int32.max)).contains(offset),
      (0...Int64(Int32.max)).contains(duration)
    else { throw storeFailure(pts: pts, dts: dts) }
    var sample = MovieFileWriter.Sample(
      track: track, ticks: ticks(dts), duration: ticks(duration), isKeyFrame: false)
    sample.presentationOffset = ticks(pts) &- sample.ticks
    return sample
  }

  private func storeFailure(pts: Int64, dts: Int64) -> CallFailure {
    CallFailure("store a frame at \(pts) (decoded at \(dts)) in", path, code: CFFmpeg_EINVAL)
  }

  /// Writes the index, and closes the file.
  ///
  /// - Throws: `CallFailure`. The file may then lack its index.
  package mutating func finish() throws(CallFailure) {
    for (number, track) in tracks.enumerated() {
      let described = try describe(track)
      movie?.describe(number, as: described.track)
      if let marks = described.marks {
        movie?.mark(number, keyFrames: marks.keyFrames, partial: marks.partial)
      }
    }
    do throws(CallFailure) { try movie?.finish() } catch { throw Self.failure(error) }
    movie = nil
  }

  /// The description of a track, with the sample descriptions of its source if it has any.
  private func describe(_ track: Track) throws(CallFailure) -> DescribedTrack {
    var described: DescribedTrack
    if track.muxer.hasPackets {
      described = try track.muxer.finish()
    } else {
      // All packets were copied from file to file, so the muxer has seen none.
      let packet = try Packet(copying: [UInt8](repeating: 0, count: 16))
      described = DescribedTrack(
        track: try TrackMuxer.describe(track.format, first: packet, path: path), marks: nil)
    }
    if !track.descriptions.isEmpty {
      let made = described.track.descriptions.first
      described.track.descriptions = track.descriptions
      // A source may state the pixel aspect ratio in its first frames alone.
      if let made, described.track.kind == .video {
        described.track.descriptions[0].addPixelAspect(of: made)
      }
      described.track.isMade = false
    }
    return described
  }

  /// Converts the error of a file operation; a source that ends too early is invalid.
  private static func failure(_ error: CallFailure) -> CallFailure {
    error.operation == "read all packets of"
      ? CallFailure(error.operation, error.subject, code: CFFmpeg_INVALIDDATA) : error
  }
}

extension MovieWriter {
  /// Whether a container has a specific tag for a codec.
  ///
  /// For audio codecs without a specific tag, the MOV muxer writes a Microsoft tag and omits the codec's
  /// headers. No decoder can decode such a track. The result is false for Speex, too: it has a tag, but
  /// the muxer omits its headers.
  package static func hasTag(_ parameters: CodecParameters, container: String) -> Bool {
    guard parameters.codecName != "speex",
      let tags = av_guess_format(container, nil, nil)?.pointee.codec_tag
    else { return false }
    var tag: UInt32 = 0
    return av_codec_get_tag2(tags, parameters.codecID, &tag) != 0
  }

  /// Whether a container supports a track.
  ///
  /// The track is muxed into memory. `avformat_query_codec` is not enough, because it accepts codecs that
  /// the muxer rejects later, such as VP8 and Opus in MOV.
  ///
  /// - Parameters:
  ///   - parameters: The codec parameters of the track.
  ///   - timescale: The number of ticks per second for the track's times.
  ///   - packet: A packet of the track, for codecs whose packets the muxer parses. Nil tests only the
  ///     header.
  ///   - container: The container.
  /// - Returns: True if the muxer accepts the track, false if it rejects the track.
  package static func accepts(
    _ parameters: CodecParameters, timescale: Int32, packet: Packet? = nil,
    container: MovieContainer
  ) -> Bool {
    // The muxer writes other uncompressed formats with a tag that stands for another format.
    guard parameters.codecID != AV_CODEC_ID_RAWVIDEO || parameters.pixelFormat.hasTagInMOV else {
      return false
    }
    do throws(CallFailure) {
      let format = TrackMuxer.Format(parameters, in: container, timescale: timescale)
      let muxer = try TrackMuxer(format, path: "memory.\(container.rawValue)")
      if let packet { _ = try muxer.store(packet, pts: 0, dts: 0, duration: 1) }
      return true
    } catch { return false }
  }
}

extension MovieTrack {
  /// A track whose description is completed at the end of the file.
  ///
  /// Its sample description states only what the type of the file depends on.
  fileprivate init(unfinished format: TrackMuxer.Format, timescale: Int32) {
    let parameters = format.parameters
    let isVideo = parameters.pointer.pointee.codec_type == AVMEDIA_TYPE_VIDEO
    let type: UInt32 =
      switch parameters.codecID {
      case AV_CODEC_ID_H264: 0x6176_6331  // avc1
      case AV_CODEC_ID_AV1: 0x6176_3031  // av01
      case AV_CODEC_ID_AC3: 0x6163_2D33  // ac-3
      case AV_CODEC_ID_EAC3: 0x6563_2D33  // ec-3
      case AV_CODEC_ID_TRUEHD: 0x6D6C_7061  // mlpa
      default: 0
      }
    var entry = BoxBytes()
    entry.box(type) { box in
      guard format.sideData.contains(where: \.isDolbyVision) else { return }
      box.append(bytes: Array(repeating: 0, count: 78))
      box.box(0x6476_6343) { _ in }  // dvcC
    }
    self.init(
      handler: isVideo ? 0x7669_6465 : 0x736F_756E, name: "", timescale: timescale, language: 0,
      mediaHeader: [], descriptions: [SampleDescription(entry.bytes)])
  }
}
