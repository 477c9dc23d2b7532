// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankLinuxSystem
package import OvercrankMediaCore
package import OvercrankMovieFormat

/// libavformat's muxer for one track of a MOV or MP4 file, which writes into memory.
///
/// It describes the track for ``MovieFileWriter``, and gives packets the form that the container requires,
/// such as NAL units with lengths instead of start codes, or AAC without ADTS headers.
package final class TrackMuxer {
  /// The format of a track.
  package struct Format {
    package let parameters: CodecParameters
    package let container: MovieContainer
    /// The number of ticks per second for the times of packets.
    package let timescale: Int32
    /// Tags of the track, such as `language`.
    ///
    /// If the container has no code for the language, it is omitted.
    package var metadata: [String: String] = [:]
    /// The nine numbers of the display matrix; empty for none.
    package var displayMatrix: [Int32] = []
    /// Side data for all frames.
    ///
    /// Kinds that the container does not support are omitted.
    package var sideData: [TrackSideData] = []

    package init(_ parameters: CodecParameters, in container: MovieContainer, timescale: Int32) {
      (self.parameters, self.container, self.timescale) = (parameters, container, timescale)
    }
  }

  /// A packet as the file stores it.
  struct Stored {
    /// The bytes, which are valid until the next packet is stored; empty if they follow with it.
    let bytes: UnsafeRawBufferPointer
    /// The number of samples in a block of uncompressed audio; otherwise 1.
    let count: Int
  }

  private let path: String
  private let format: Format
  private let context: UnsafeMutablePointer<AVFormatContext>
  private let stream: UnsafeMutablePointer<AVStream>
  private let scratch: UnsafeMutablePointer<AVPacket>
  /// Whether a packet was stored.
  var hasPackets: Bool { packetCount > 0 }
  private var packetCount = 0
  /// The number of ticks per second for the times of the track in the file.
  var timescale: Int32 { stream.pointee.time_base.den }

  /// Starts a track.
  ///
  /// - Parameters:
  ///   - format: The format of the track.
  ///   - path: The name of the file for errors.
  ///   - isFragmented: Whether the track is described without its packets.
  /// - Throws: `CallFailure` with the operation "write the header of", for example when the container does
  ///   not support the codec.
  init(_ format: Format, path: String, isFragmented: Bool = false) throws(CallFailure) {
    var made: UnsafeMutablePointer<AVFormatContext>?
    let name = format.container.rawValue
    try CallFailure.check(
      avformat_alloc_output_context2(&made, nil, name, path.systemPath), "create", path)
    guard let context = made else { throw CallFailure("create", path, code: CFFmpeg_ENOMEM) }
    guard let stream = avformat_new_stream(context, nil), let packet = av_packet_alloc() else {
      avformat_free_context(context)
      throw CallFailure("create", path, code: CFFmpeg_ENOMEM)
    }
    (self.path, self.format, self.context, self.stream, scratch) = (
      path, format, context, stream, packet
    )
    try describe()
    try begin(isFragmented: isFragmented)
  }

  deinit {
    var bytes: UnsafeMutablePointer<UInt8>?
    if let output = context.pointee.pb { avio_close_dyn_buf(output, &bytes) }
    av_free(bytes)
    context.pointee.pb = nil
    avformat_free_context(context)
    var packet: UnsafeMutablePointer<AVPacket>? = scratch
    av_packet_free(&packet)
  }

  private func describe() throws(CallFailure) {
    let name = format.container.rawValue
    try CallFailure.check(
      avcodec_parameters_copy(stream.pointee.codecpar, format.parameters.pointer),
      "add a track to", path)
    stream.pointee.codecpar.pointee.codec_tag = chooseTag(for: format.parameters, name)
    // libavformat rejects a track whose pixel aspect ratio differs from that of its codec parameters.
    stream.pointee.sample_aspect_ratio = stream.pointee.codecpar.pointee.sample_aspect_ratio
    stream.pointee.time_base = AVRational(num: 1, den: format.timescale)
    for (key, value) in format.metadata {
      let stored = key == "language" ? TrackLanguage.stored(value, in: name) : value
      if let stored { av_dict_set(&stream.pointee.metadata, key, stored, 0) }
    }
    if format.displayMatrix.count == 9,
      let data = av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, 36)
    {
      format.displayMatrix.withUnsafeBytes { matrix in
        if let start = matrix.baseAddress {
          UnsafeMutableRawPointer(data).copyMemory(from: start, byteCount: 36)
        }
      }
    }
    for data in format.sideData where data.isStorable(in: name) {
      data.add(to: stream)
      // libavformat writes the boxes for some kinds of side data only in "unofficial" compliance mode.
      context.pointee.strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL
    }
  }

  private func begin(isFragmented: Bool) throws(CallFailure) {
    try CallFailure.check(avio_open_dyn_buf(&context.pointee.pb), "create", path)
    context.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
    // In direct mode, bytes of packets are not buffered a second time.
    context.pointee.pb.pointee.direct = 1
    var options: OpaquePointer?
    defer { av_dict_free(&options) }
    var flags: [String] = []
    // The ICC profile is written instead of the color tags. The color tags are not lost, because codecs
    // such as H.264 and HEVC store them in their own headers.
    if format.sideData.contains(where: \.isColorProfile) { flags.append("prefer_icc") }
    // Some descriptions depend on the first packet, so the header is written only after it.
    if isFragmented { flags += ["empty_moov", "delay_moov"] }
    if !flags.isEmpty { av_dict_set(&options, "movflags", flags.joined(separator: "+"), 0) }
    av_dict_set_int(&options, "movie_timescale", Int64(format.timescale), 0)
    if stream.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO {
      av_dict_set_int(&options, "video_track_timescale", Int64(format.timescale), 0)
    }
    try CallFailure.check(avformat_write_header(context, &options), "write the header of", path)
    avio_flush(context.pointee.pb)
    if stream.pointee.codecpar.pointee.codec_tag == CodecParameters.y800 {
      // libavformat would invert the frames if the format is gray, and declare a palette if the bits per
      // sample are 8. Both values are therefore cleared.
      stream.pointee.codecpar.pointee.format = AV_PIX_FMT_NONE.rawValue
      stream.pointee.codecpar.pointee.bits_per_coded_sample = 0
    }
    guard stream.pointee.time_base.num == 1, stream.pointee.time_base.den > 0 else {
      throw CallFailure("write the header of", path, code: CFFmpeg_EINVAL)
    }
  }

  /// The codec tag to use instead of libavformat's default, or 0 if the default is suitable.
  private func chooseTag(for parameters: CodecParameters, _ container: String) -> UInt32 {
    // libavformat would choose hev1, which some players reject. All parameter sets are in the sample
    // description, so hvc1 is equally valid.
    if parameters.isHVC1 { return CodecParameters.hvc1 }
    // A tag such as that of ProRes names a variant of the codec. As in the program ffmpeg, it is kept if
    // the container has it, or none for the codec. The muxer chooses the tags of these three codecs by
    // their pixels.
    if parameters.isIntraOnly,
      ![AV_CODEC_ID_RAWVIDEO, AV_CODEC_ID_MJPEG, AV_CODEC_ID_DVVIDEO].contains(parameters.codecID),
      let tags = av_guess_format(container, nil, nil)?.pointee.codec_tag
    {
      let tag = parameters.pointer.pointee.codec_tag
      var other: UInt32 = 0
      if tag != 0,
        av_codec_get_id(tags, tag) == parameters.codecID
          || av_codec_get_tag2(tags, parameters.codecID, &other) == 0
      {
        return tag
      }
    }
    guard parameters.isPlainGray, container == "mov" else { return 0 }
    // QuickTime's own 8-bit gray format stores black as 255, and many readers treat its samples as palette
    // indices. Y800 stores black as 0, and readers treat it as gray. libavformat writes Y800 only in
    // "unofficial" compliance mode.
    context.pointee.strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL
    return CodecParameters.y800
  }

  /// Stores a packet with the given times, in ticks of ``timescale``.
  ///
  /// - Throws: `CallFailure` with the operation "write to" if the packet is refused.
  func store(
    _ packet: Packet, pts: Int64, dts: Int64, duration: Int64
  ) throws(CallFailure) -> Stored {
    guard let output = context.pointee.pb else {
      throw CallFailure("write to", path, code: CFFmpeg_EINVAL)
    }
    try CallFailure.check(av_packet_ref(scratch, packet.pointer), "write to", path)
    defer { av_packet_unref(scratch) }
    scratch.pointee.stream_index = stream.pointee.index
    (scratch.pointee.pts, scratch.pointee.dts) = (pts, dts)
    scratch.pointee.duration = duration
    scratch.pointee.pos = -1
    avio_seek(output, 0, SEEK_SET)
    try CallFailure.check(av_write_frame(context, scratch), "write to", path)
    packetCount += 1
    let count = Int(avio_seek(output, 0, SEEK_CUR))
    var bytes: UnsafeMutablePointer<UInt8>?
    guard avio_get_dyn_buf(output, &bytes) >= count else {
      throw CallFailure("write to", path, code: CFFmpeg_ENOMEM)
    }
    return Stored(
      bytes: UnsafeRawBufferPointer(start: bytes, count: count), count: sampleCount(of: count))
  }

  /// The number of samples in a packet of `byteCount` bytes.
  ///
  /// It is above 1 only for blocks of uncompressed audio and of some ADPCM codecs.
  private func sampleCount(of byteCount: Int) -> Int {
    let codec = stream.pointee.codecpar.pointee
    guard codec.codec_type == AVMEDIA_TYPE_AUDIO else { return 1 }
    if [AV_CODEC_ID_ADPCM_MS, AV_CODEC_ID_ADPCM_IMA_WAV].contains(codec.codec_id) {
      return Int(codec.frame_size)
    }
    guard let size = format.parameters.uncompressedSampleBytes else { return 1 }
    return byteCount / size
  }

  /// Ends the track, and describes it and its samples.
  func finish() throws(CallFailure) -> DescribedTrack {
    avio_seek(context.pointee.pb, 0, SEEK_SET)
    try CallFailure.check(av_write_trailer(context), "describe a track of", path)
    var start: UnsafeMutablePointer<UInt8>?
    let count = avio_get_dyn_buf(context.pointee.pb, &start)
    let bytes = Array(UnsafeBufferPointer(start: start, count: Int(count)))
    let index = Box.list(in: bytes, from: 0, to: bytes.count).first { $0.type == BoxType.movie }
    guard let box = index?.first(BoxType.track, in: bytes),
      var track = MovieTrack(box, in: bytes)
    else { throw CallFailure("describe a track of", path, code: CFFmpeg_EINVAL) }
    track.isMade = true
    if format.container == .mov, ColorBox.isNeeded(for: format.parameters) {
      let color = ColorBox.bytes(.init(format.parameters))
      guard track.descriptions.count == 1, track.descriptions[0].setVideoBox(color, ColorBox.type)
      else { throw CallFailure("write the color range into", path, code: CFFmpeg_EINVAL) }
    }
    for box in format.sideData.compactMap(\.dolbyVisionBox) where format.container == .mov {
      guard track.descriptions.count == 1,
        track.descriptions[0].setVideoBox(box.bytes, box.type)
      else {
        throw CallFailure("write the Dolby Vision of", path, code: CFFmpeg_EINVAL)
      }
    }
    return DescribedTrack(track: track, marks: SyncMarks(box, in: bytes, format.parameters))
  }

  /// Describes a track without its packets.
  ///
  /// `first` is its first packet, which some descriptions depend on, or one that the muxer accepts
  /// instead of it.
  package static func describe(
    _ format: Format, first: Packet, path: String
  ) throws(CallFailure) -> MovieTrack {
    let muxer = try TrackMuxer(format, path: path, isFragmented: true)
    _ = try muxer.store(first, pts: 0, dts: 0, duration: 1)
    return try muxer.finish().track
  }
}

/// A track that ``TrackMuxer`` has described.
struct DescribedTrack {
  var track: MovieTrack
  /// The samples at which decoding may start, if the muxer finds them itself; otherwise nil.
  let marks: SyncMarks?
}

/// The marks of samples at which decoding may start, which the muxer finds in the packets of some codecs.
struct SyncMarks {
  let keyFrames: Set<Int>
  /// The samples that start an open GOP.
  let partial: Set<Int>

  /// Reads the marks of a `trak` box; nil for a codec whose packets are not parsed.
  fileprivate init?(_ track: Box, in bytes: [UInt8], _ parameters: CodecParameters) {
    guard
      [AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_VC1, AV_CODEC_ID_TRUEHD].contains(parameters.codecID),
      let table = track.sampleTable(in: bytes),
      let list = table.first(BoxType.syncSamples, in: bytes)
    else { return nil }
    func numbers(_ list: Box) -> Set<Int> {
      let count = list.number(4, in: bytes) ?? 0
      return Set(
        (0..<Int(count)).compactMap { list.number(8 + 4 * $0, in: bytes).map { Int($0) - 1 } })
    }
    keyFrames = numbers(list)
    partial = table.first(BoxType.partialSyncSamples, in: bytes).map(numbers) ?? []
  }
}

extension CodecParameters {
  /// Whether ``TrackMuxer`` stores the packets of a MOV or MP4 file as they are.
  ///
  /// It rewrites H.264 and HEVC byte streams, as in AVC-Intra, and AAC with ADTS headers. The description of
  /// their file does not fit the rewritten packets.
  package var isStoredUnchanged: Bool {
    switch codecID {
    case AV_CODEC_ID_H264, AV_CODEC_ID_HEVC: unitLengthSize != nil
    case AV_CODEC_ID_AAC: !extradata.isEmpty
    default: true
    }
  }

  /// The number of bytes of a sample of uncompressed audio, for all channels; nil for other codecs.
  var uncompressedSampleBytes: Int? {
    guard pointer.pointee.codec_type == AVMEDIA_TYPE_AUDIO, pointer.pointee.frame_size <= 1 else {
      return nil
    }
    let size = Int(av_get_bits_per_sample(codecID)) / 8 * channelCount
    return size > 0 ? size : nil
  }
}

extension ColorBox {
  /// Whether a track needs a `colr` box: its samples have full range, which the codec's own headers
  /// cannot state.
  static func isNeeded(for parameters: CodecParameters) -> Bool {
    parameters.codecID == AV_CODEC_ID_FFV1
      && parameters.pointer.pointee.color_range == AVCOL_RANGE_JPEG
      && !parameters.pixelFormat.isFullRange
  }
}

extension ColorBox.CodePoints {
  /// Creates the color description of a track.
  init(_ parameters: CodecParameters) {
    let codec = parameters.pointer.pointee
    self.init(
      primaries: UInt16(truncatingIfNeeded: codec.color_primaries.rawValue),
      transfer: UInt16(truncatingIfNeeded: codec.color_trc.rawValue),
      matrix: UInt16(truncatingIfNeeded: codec.color_space.rawValue))
  }
}

extension FragmentedMovieWriter.Track {
  /// Describes a track for a recording.
  ///
  /// - Parameters:
  ///   - format: The format of the track.
  ///   - first: The times of the first sample in ticks.
  ///   - packet: The first packet, which some descriptions depend on, or one that the muxer accepts
  ///     instead of it.
  ///   - cleanAperture: The part of each frame that players should show; nil for the whole frame.
  ///   - path: The path of the file.
  /// - Throws: `CallFailure` if the container does not support the track.
  package init(
    _ format: TrackMuxer.Format, first: FirstSample, packet: Packet,
    cleanAperture: CleanApertureBox.Size? = nil, path: String
  ) throws(CallFailure) {
    var track = try TrackMuxer.describe(format, first: packet, path: path)
    if let cleanAperture {
      let box = CleanApertureBox.bytes(cleanAperture)
      guard track.descriptions.count == 1,
        track.descriptions[0].setVideoBox(box, CleanApertureBox.type)
      else { throw CallFailure("write the clean aperture of", path, code: CFFmpeg_EINVAL) }
    }
    self.init(track, encoding: SampleEncoding(format.parameters), first: first)
  }
}

extension SampleEncoding {
  /// Chooses the sample encoding that MOV requires for a track.
  package init(_ parameters: CodecParameters) {
    switch parameters.codecName {
    case "h264" where !parameters.isLengthPrefixed: self = .lengthPrefixed
    case "rawvideo" where parameters.pixelFormat == .rgb24 && parameters.width % 2 != 0:
      self = .evenRows(of: parameters.width * 3)
    default: self = .asItIs
    }
  }
}
