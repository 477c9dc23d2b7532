// SPDX-License-Identifier: Apache-2.0

package import CFFmpeg
package import OvercrankMediaCore

/// The kind of media in a track.
package enum TrackKind: Sendable { case video, audio, other }

/// A copy of `AVCodecParameters` that may outlive the file or the codec.
package final class CodecParameters: @unchecked Sendable {
  // The parameters are written only in the initializers, so threads may share them.
  let pointer: UnsafeMutablePointer<AVCodecParameters>

  /// Allocates parameters without values.
  private init() throws(CallFailure) {
    guard let made = avcodec_parameters_alloc() else {
      throw CallFailure("allocate", "codec parameters", code: CFFmpeg_ENOMEM)
    }
    pointer = made
  }

  convenience init(copying other: UnsafePointer<AVCodecParameters>) throws(CallFailure) {
    try self.init()
    try CallFailure.check(avcodec_parameters_copy(pointer, other), "copy", "codec parameters")
  }

  /// Copies the codec parameters of a track in a file.
  ///
  /// The container and the bitstream may state different pixel aspect ratios. The ratio in the
  /// container is used, as in players (`av_guess_sample_aspect_ratio`).
  convenience init(of stream: UnsafeMutablePointer<AVStream>) throws(CallFailure) {
    try self.init(copying: stream.pointee.codecpar)
    pointer.pointee.sample_aspect_ratio = av_guess_sample_aspect_ratio(nil, stream, nil)
  }

  /// Returns a copy without the bit rate, which the muxer then calculates.
  package func withoutBitRate() throws(CallFailure) -> CodecParameters {
    let copy = try CodecParameters(copying: pointer)
    copy.pointer.pointee.bit_rate = 0
    return copy
  }

  /// Creates codec parameters for a compressed camera format.
  package convenience init(
    videoCodec: String, width: Int, height: Int, extradata: [UInt8] = []
  ) throws(CallFailure) {
    guard let descriptor = avcodec_descriptor_get_by_name(videoCodec) else {
      throw CallFailure("find", "the codec \(videoCodec)", code: CFFmpeg_EINVAL)
    }
    try self.init()
    pointer.pointee.codec_type = AVMEDIA_TYPE_VIDEO
    pointer.pointee.codec_id = descriptor.pointee.id
    pointer.pointee.width = Int32(clamping: width)
    pointer.pointee.height = Int32(clamping: height)
    try set(extradata)
  }

  /// Creates codec parameters for compressed audio.
  ///
  /// - Throws: `CallFailure` for a codec that libav does not know or that is not for audio.
  package convenience init(
    audioCodec: String, sampleRate: Int, channelCount: Int, frameSize: Int, extradata: [UInt8]
  ) throws(CallFailure) {
    guard let descriptor = avcodec_descriptor_get_by_name(audioCodec),
      descriptor.pointee.type == AVMEDIA_TYPE_AUDIO
    else { throw CallFailure("find", "the audio codec \(audioCodec)", code: CFFmpeg_EINVAL) }
    try self.init()
    pointer.pointee.codec_type = AVMEDIA_TYPE_AUDIO
    pointer.pointee.codec_id = descriptor.pointee.id
    pointer.pointee.sample_rate = Int32(clamping: sampleRate)
    av_channel_layout_default(&pointer.pointee.ch_layout, Int32(clamping: channelCount))
    pointer.pointee.frame_size = Int32(clamping: frameSize)
    try set(extradata)
  }

  /// Creates a copy with other codec headers.
  package convenience init(_ other: CodecParameters, extradata: [UInt8]) throws(CallFailure) {
    try self.init(copying: other.pointer)
    av_freep(&pointer.pointee.extradata)
    pointer.pointee.extradata_size = 0
    try set(extradata)
  }

  /// Sets the codec headers, if the parameters have none yet.
  private func set(_ extradata: [UInt8]) throws(CallFailure) {
    guard !extradata.isEmpty else { return }
    let padded = extradata.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
    guard let memory = av_mallocz(padded) else {
      throw CallFailure("allocate", "codec parameters", code: CFFmpeg_ENOMEM)
    }
    extradata.withUnsafeBytes { bytes in
      if let start = bytes.baseAddress {
        memory.copyMemory(from: start, byteCount: bytes.count)
      }
    }
    pointer.pointee.extradata = memory.assumingMemoryBound(to: UInt8.self)
    pointer.pointee.extradata_size = Int32(clamping: extradata.count)
  }

  deinit {
    var parameters: UnsafeMutablePointer<AVCodecParameters>? = pointer
    avcodec_parameters_free(&parameters)
  }

  /// FFmpeg's name of the codec, such as `mjpeg`, `h264` or `aac`.
  package var codecName: String { String(cString: avcodec_get_name(pointer.pointee.codec_id)) }
  package var codecID: AVCodecID { pointer.pointee.codec_id }
  package var pixelFormat: AVPixelFormat { AVPixelFormat(pointer.pointee.format) }
  package var width: Int { Int(pointer.pointee.width) }
  package var height: Int { Int(pointer.pointee.height) }
  package var sampleRate: Int { Int(pointer.pointee.sample_rate) }
  package var channelCount: Int { Int(pointer.pointee.ch_layout.nb_channels) }
  /// The number of samples that the encoder inserts before the first audio sample (encoder
  /// priming).
  package var initialPadding: Int { Int(pointer.pointee.initial_padding) }
  /// The pixel aspect ratio; nil if the file states none.
  package var pixelAspect: Encoder.PixelAspect? {
    let aspect = pointer.pointee.sample_aspect_ratio
    guard aspect.num > 0, aspect.den > 0 else { return nil }
    return Encoder.PixelAspect(width: aspect.num, height: aspect.den)
  }
  /// Whether frames are decoded in another order than they are shown, as with B-frames.
  package var isReordered: Bool { pointer.pointee.video_delay > 0 }
  /// Whether H.264 is stored with length prefixes and `avcC` headers.
  ///
  /// Otherwise it is stored as an Annex B byte stream.
  package var isLengthPrefixed: Bool {
    pointer.pointee.extradata_size > 0 && pointer.pointee.extradata?.pointee == 1
  }
  /// The size of the length prefix of a NAL unit in bytes (H.264, HEVC); nil for a byte stream.
  package var unitLengthSize: Int? {
    // The size field is byte 4 of avcC and byte 21 of hvcC, counted from 0.
    let position = codecID == AV_CODEC_ID_HEVC ? 21 : 4
    guard let data = pointer.pointee.extradata, pointer.pointee.extradata_size > position,
      data[0] == 1
    else { return nil }
    return Int(data[position] & 3) + 1
  }
  /// The codec tag of HEVC whose parameter sets are all stored in the track.
  static let hvc1: UInt32 = 0x3163_7668
  /// Whether the track is HEVC whose parameter sets are all stored in the track.
  var isHVC1: Bool {
    codecID == AV_CODEC_ID_HEVC
      && (unitLengthSize != nil || pointer.pointee.codec_tag == Self.hvc1)
  }
  /// The codec tag of uncompressed 8-bit gray in which 0 is black.
  static let y800: UInt32 = 0x3030_3859
  /// Whether the track is uncompressed 8-bit gray.
  var isPlainGray: Bool { codecID == AV_CODEC_ID_RAWVIDEO && pixelFormat == .gray8 }
  /// The codec headers that the track stores.
  ///
  /// Empty if the packets contain them.
  package var extradata: [UInt8] {
    let size = Int(max(0, pointer.pointee.extradata_size))
    return Array(UnsafeBufferPointer(start: pointer.pointee.extradata, count: size))
  }
  /// Whether samples have full range rather than video range.
  package var isFullRange: Bool {
    pointer.pointee.color_range == AVCOL_RANGE_JPEG || pixelFormat.isFullRange
  }
  /// FFmpeg's names of the color primaries, the transfer function and the YCbCr matrix.
  ///
  /// Each is nil if the file states none.
  package var colorNames: (primaries: String?, transfer: String?, matrix: String?) {
    func name(_ text: UnsafePointer<CChar>?, _ isStated: Bool) -> String? {
      isStated ? text.map { String(cString: $0) } : nil
    }
    let codec = pointer.pointee
    return (
      name(
        av_color_primaries_name(codec.color_primaries),
        codec.color_primaries != AVCOL_PRI_UNSPECIFIED),
      name(av_color_transfer_name(codec.color_trc), codec.color_trc != AVCOL_TRC_UNSPECIFIED),
      name(av_color_space_name(codec.color_space), codec.color_space != AVCOL_SPC_UNSPECIFIED)
    )
  }
  /// The bit rate in bits per second that the headers state, or that libavformat adds up from them.
  ///
  /// Nil if it is unknown.
  package var bitRate: Int64? {
    pointer.pointee.bit_rate > 0 ? pointer.pointee.bit_rate : nil
  }
  /// Whether a frame may consist of two fields captured at different times.
  package var isInterlaced: Bool {
    pointer.pointee.field_order != AV_FIELD_UNKNOWN
      && pointer.pointee.field_order != AV_FIELD_PROGRESSIVE
  }
  /// Whether libavcodec has a decoder for the codec.
  package var hasDecoder: Bool { avcodec_find_decoder(pointer.pointee.codec_id) != nil }
  /// Whether every frame can be decoded alone, as with MJPEG, FFV1 and uncompressed video.
  package var isIntraOnly: Bool {
    // libavcodec does not declare that of these two.
    if [AV_CODEC_ID_PNG, AV_CODEC_ID_CFHD].contains(codecID) { return true }
    guard let descriptor = avcodec_descriptor_get(pointer.pointee.codec_id) else { return false }
    return descriptor.pointee.props & AV_CODEC_PROP_INTRA_ONLY != 0
  }

  /// Whether packets with these parameters and packets with other parameters can share a track.
  ///
  /// Codec, size, pixel format and codec headers must be equal.
  package func decodesLike(_ other: CodecParameters) -> Bool {
    codecID == other.codecID && width == other.width && height == other.height
      && pointer.pointee.format == other.pointer.pointee.format
      && extradata == other.extradata
  }
}

/// The description of a track, copied so that it outlives the file.
package struct TrackFormat: Sendable {
  /// The index of the track in the file, from 0.
  ///
  /// Packets of the track have this `trackIndex`.
  package let index: Int
  package let kind: TrackKind
  /// Whether the file marks the track for playback by default, or as enabled.
  ///
  /// False for all tracks of containers without such marks.
  package let isDefault: Bool
  package let parameters: CodecParameters
  /// The duration of a tick in seconds, above zero.
  package let timeBase: Rational
  /// The number of samples that the headers state; 0 if they state none.
  package let indexedCount: Int
  /// The average frame rate that the file states; nil if it states none.
  package let averageFrameRate: FrameRate?
  /// FFmpeg's `r_frame_rate`: the lowest rate that represents all frame times; nil if unknown.
  package let nominalFrameRate: FrameRate?
  /// The clockwise rotation for display, in degrees: 0, 90, 180 or 270.
  ///
  /// If frames are also mirrored, the mirroring left to right follows the rotation.
  package let rotation: Int
  /// The nine numbers of the display matrix; empty for none.
  package let displayMatrix: [Int32]
  /// The track's metadata.
  package let metadata: [String: String]
  /// The side data for all frames, except the display matrix.
  package let sideData: [TrackSideData]
  /// A description for messages about tracks that are not used, such as `timecode track`.
  ///
  /// Nil for the text track of chapters.
  package let otherName: String?

  init(_ stream: UnsafeMutablePointer<AVStream>) throws(CallFailure) {
    let base = stream.pointee.time_base
    guard base.num > 0, base.den > 0,
      let timeBase = Rational(Int128(base.num), over: Int128(base.den)).ifValid
    else { throw CallFailure("read", "the time base of a track", code: CFFmpeg_INVALIDDATA) }
    index = Int(stream.pointee.index)
    self.timeBase = timeBase
    parameters = try CodecParameters(of: stream)
    kind =
      switch stream.pointee.codecpar.pointee.codec_type {
      // libavformat presents a cover image as a video track. A cover image is excluded here.
      case AVMEDIA_TYPE_VIDEO
      where stream.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC == 0:
        .video
      case AVMEDIA_TYPE_AUDIO: .audio
      default: .other
      }
    isDefault = stream.pointee.disposition & AV_DISPOSITION_DEFAULT != 0
    indexedCount = Int(clamping: stream.pointee.nb_frames)
    averageFrameRate = FrameRate(stream.pointee.avg_frame_rate)
    nominalFrameRate = FrameRate(stream.pointee.r_frame_rate)
    metadata = readDictionary(stream.pointee.metadata)
    sideData = TrackSideData.all(of: stream)
    otherName = Self.otherName(stream.pointee.codecpar.pointee)
    var matrixSize = 0
    if let data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &matrixSize),
      matrixSize >= 36
    {
      let matrix = UnsafeRawPointer(data).assumingMemoryBound(to: Int32.self)
      displayMatrix = (0..<9).map { matrix[$0] }
      let degrees = -av_display_rotation_get(matrix)
      let angle = degrees.isFinite ? ((Int(degrees.rounded()) % 360) + 360) % 360 : 0
      rotation = FrameRotation(displayMatrix: displayMatrix)?.clockwiseDegrees ?? angle
    } else {
      displayMatrix = []
      rotation = 0
    }
  }
}

extension TrackFormat {
  /// Returns the description of a track for messages; nil for the text track of chapters.
  ///
  /// libavformat assigns no codec to timecode and other data tracks, so they are described by their
  /// codec tag.
  private static func otherName(_ parameters: AVCodecParameters) -> String? {
    let tag = (0..<4).map {
      Character(Unicode.Scalar(UInt8(parameters.codec_tag >> ($0 * 8) & 0xFF)))
    }
    let name = String(cString: avcodec_get_name(parameters.codec_id))
    switch parameters.codec_type {
    case AVMEDIA_TYPE_VIDEO: return "video track (\(name))"
    case AVMEDIA_TYPE_AUDIO: return "audio track (\(name))"
    case AVMEDIA_TYPE_SUBTITLE: return "subtitle track (\(name))"
    case AVMEDIA_TYPE_DATA
    where parameters.codec_id == AV_CODEC_ID_BIN_DATA && tag == Array("text"):
      return nil
    case AVMEDIA_TYPE_DATA where tag == Array("tmcd"): return "timecode track"
    default:
      let label = tag.allSatisfy { $0.isLetter || $0.isNumber } ? String(tag) : name
      return "data track (\(label))"
    }
  }
}

extension Sequence<TrackFormat> {
  /// The track that players choose: the first one that is marked as default or enabled.
  ///
  /// If no track is marked, it is the first track. Nil if there are no tracks.
  package func preferred(where fits: (TrackFormat) -> Bool) -> TrackFormat? {
    var first: TrackFormat?
    for track in self where fits(track) {
      if track.isDefault { return track }
      first = first ?? track
    }
    return first
  }
}

extension FrameRate {
  /// Creates a frame rate from an `AVRational`; nil unless the value is above zero.
  fileprivate init?(_ rational: AVRational) {
    guard rational.num > 0, rational.den > 0,
      let rate = FrameRate(
        exactly: Rational(Int128(rational.num), over: Int128(rational.den)))
    else { return nil }
    self = rate
  }
}

/// Returns the entries of an `AVDictionary`.
func readDictionary(_ dictionary: OpaquePointer?) -> [String: String] {
  var result: [String: String] = [:]
  var entry: UnsafeMutablePointer<AVDictionaryEntry>?
  while let next = av_dict_get(dictionary, "", entry, AV_DICT_IGNORE_SUFFIX) {
    result[String(cString: next.pointee.key)] = String(cString: next.pointee.value)
    entry = next
  }
  return result
}
