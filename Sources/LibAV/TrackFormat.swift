// SPDX-License-Identifier: Apache-2.0

package import CFFmpeg
package import OvercrankMediaCore

/// What kind of media a track carries.
package enum TrackKind: Sendable { case video, audio, other }

/// A copy of `AVCodecParameters`, which outlives the file or codec it was read from.
package final class CodecParameters: @unchecked Sendable {
  // Written in the initialiser only.
  let pointer: UnsafeMutablePointer<AVCodecParameters>

  init(copying other: UnsafePointer<AVCodecParameters>) throws(LibAVError) {
    guard let copy = avcodec_parameters_alloc() else {
      throw LibAVError("allocate", "codec parameters", code: CFFmpeg_ENOMEM)
    }
    pointer = copy
    try LibAVError.check(avcodec_parameters_copy(copy, other), "copy", "codec parameters")
  }

  /// Copies the parameters of a track of a file.
  ///
  /// The pixel aspect ratio is the container's where it has one, since players prefer it to the
  /// bitstream's (`av_guess_sample_aspect_ratio`).
  convenience init(of stream: UnsafeMutablePointer<AVStream>) throws(LibAVError) {
    try self.init(copying: stream.pointee.codecpar)
    pointer.pointee.sample_aspect_ratio = av_guess_sample_aspect_ratio(nil, stream, nil)
  }

  /// Makes the parameters of a compressed camera format.
  package init(
    videoCodec: String, width: Int, height: Int, extradata: [UInt8] = []
  ) throws(LibAVError) {
    guard let copy = avcodec_parameters_alloc() else {
      throw LibAVError("allocate", "codec parameters", code: CFFmpeg_ENOMEM)
    }
    pointer = copy
    guard let descriptor = avcodec_descriptor_get_by_name(videoCodec) else {
      throw LibAVError("find", "the codec \(videoCodec)", code: CFFmpeg_EINVAL)
    }
    copy.pointee.codec_type = AVMEDIA_TYPE_VIDEO
    copy.pointee.codec_id = descriptor.pointee.id
    copy.pointee.width = Int32(clamping: width)
    copy.pointee.height = Int32(clamping: height)
    try set(extradata)
  }

  /// Makes the same parameters with other headers.
  package init(_ other: CodecParameters, extradata: [UInt8]) throws(LibAVError) {
    guard let copy = avcodec_parameters_alloc() else {
      throw LibAVError("allocate", "codec parameters", code: CFFmpeg_ENOMEM)
    }
    pointer = copy
    try LibAVError.check(
      avcodec_parameters_copy(copy, other.pointer), "copy", "codec parameters")
    av_freep(&copy.pointee.extradata)
    copy.pointee.extradata_size = 0
    try set(extradata)
  }

  /// Sets the headers of parameters that have none.
  private func set(_ extradata: [UInt8]) throws(LibAVError) {
    guard !extradata.isEmpty else { return }
    let padded = extradata.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
    guard let memory = av_mallocz(padded) else {
      throw LibAVError("allocate", "codec parameters", code: CFFmpeg_ENOMEM)
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

  /// FFmpeg's name of the codec: `mjpeg`, `h264`, `aac`.
  package var codecName: String { String(cString: avcodec_get_name(pointer.pointee.codec_id)) }
  package var codecID: AVCodecID { pointer.pointee.codec_id }
  package var pixelFormat: AVPixelFormat { AVPixelFormat(pointer.pointee.format) }
  package var width: Int { Int(pointer.pointee.width) }
  package var height: Int { Int(pointer.pointee.height) }
  package var sampleRate: Int { Int(pointer.pointee.sample_rate) }
  package var channelCount: Int { Int(pointer.pointee.ch_layout.nb_channels) }
  /// Samples that an encoder puts before the first of its sound.
  package var initialPadding: Int { Int(pointer.pointee.initial_padding) }
  /// How wide a pixel is for its height; nil where the file does not say.
  package var pixelAspect: Encoder.PixelAspect? {
    let aspect = pointer.pointee.sample_aspect_ratio
    guard aspect.num > 0, aspect.den > 0 else { return nil }
    return Encoder.PixelAspect(width: aspect.num, height: aspect.den)
  }
  /// Whether pictures are stored in another order than they are shown (B-frames).
  package var isReordered: Bool { pointer.pointee.video_delay > 0 }
  /// Whether H.264 is stored with lengths and one set of headers (`avcC`) rather than as the
  /// byte stream of Annex B, whose headers begin with a start code.
  package var isLengthPrefixed: Bool {
    pointer.pointee.extradata_size > 0 && pointer.pointee.extradata?.pointee == 1
  }
  /// How many bytes give the length of each unit of H.264 or HEVC; nil for a byte stream.
  package var unitLengthSize: Int? {
    // avcC has it in the fifth byte, hvcC in the twenty-second.
    let position = codecID == AV_CODEC_ID_HEVC ? 21 : 4
    guard let data = pointer.pointee.extradata, pointer.pointee.extradata_size > position,
      data[0] == 1
    else { return nil }
    return Int(data[position] & 3) + 1
  }
  /// The tag of HEVC whose headers stand beside the track.
  static let hvc1: UInt32 = 0x3163_7668
  /// Whether it is HEVC with all headers beside the track.
  var isHVC1: Bool {
    codecID == AV_CODEC_ID_HEVC
      && (unitLengthSize != nil || pointer.pointee.codec_tag == Self.hvc1)
  }
  /// The tag of uncompressed grey that is stored as it is, with black at 0.
  static let y800: UInt32 = 0x3030_3859
  /// Whether it is uncompressed grey of 8 bits.
  var isPlainGray: Bool { codecID == AV_CODEC_ID_RAWVIDEO && pixelFormat == .gray8 }
  /// The headers that stand beside the track; none where its packets bring all.
  package var extradata: [UInt8] {
    let size = Int(max(0, pointer.pointee.extradata_size))
    return Array(UnsafeBufferPointer(start: pointer.pointee.extradata, count: size))
  }
  /// Whether samples use all values, rather than those of television.
  package var isFullRange: Bool {
    pointer.pointee.color_range == AVCOL_RANGE_JPEG || pixelFormat.isFullRange
  }
  /// Whether a picture may hold two fields, each of another time.
  package var isInterlaced: Bool {
    pointer.pointee.field_order != AV_FIELD_UNKNOWN
      && pointer.pointee.field_order != AV_FIELD_PROGRESSIVE
  }
  /// Whether libav has a decoder for it.
  package var hasDecoder: Bool { avcodec_find_decoder(pointer.pointee.codec_id) != nil }
  /// Whether every picture stands by itself (MJPEG, FFV1, uncompressed).
  package var isIntraOnly: Bool {
    guard let descriptor = avcodec_descriptor_get(pointer.pointee.codec_id) else { return false }
    return descriptor.pointee.props & AV_CODEC_PROP_INTRA_ONLY != 0
  }

  /// Whether packets of the other kind can follow in one track: codec, size, pixels and headers
  /// are the same.
  package func decodesLike(_ other: CodecParameters) -> Bool {
    codecID == other.codecID && width == other.width && height == other.height
      && pointer.pointee.format == other.pointer.pointee.format
      && extradata == other.extradata
  }
}

/// What a file says of one of its tracks, copied out so that it outlives the file.
package struct TrackFormat: Sendable {
  /// The place in the file, from 0, which its packets carry.
  package let index: Int
  package let kind: TrackKind
  package let parameters: CodecParameters
  /// Seconds per tick, above zero.
  package let timeBase: Rational
  /// The number of samples that the file's headers name; 0 where they name none.
  package let indexedCount: Int
  /// The rate the file states, frames over duration; nil where it states none.
  package let averageFrameRate: FrameRate?
  /// The rate libav believes all times can be told in; nil where it has none.
  package let nominalFrameRate: FrameRate?
  /// Degrees by which a player turns the picture clockwise: 0, 90, 180, 270.
  package let rotation: Int
  /// The nine numbers of the display matrix, or none.
  package let displayMatrix: [Int32]
  /// The track's tags.
  package let metadata: [String: String]
  /// What the file says of the pictures beside their packets, without the display matrix.
  package let sideData: [TrackSideData]
  /// What a track that is neither pictures nor sound to us is called, such as `timecode track`;
  /// nil for one that only holds the names of chapters.
  package let otherName: String?

  init(_ stream: UnsafeMutablePointer<AVStream>) throws(LibAVError) {
    let base = stream.pointee.time_base
    guard base.num > 0, base.den > 0,
      let timeBase = Rational(Int128(base.num), over: Int128(base.den)).ifValid
    else { throw LibAVError("read", "the time base of a track", code: CFFmpeg_INVALIDDATA) }
    index = Int(stream.pointee.index)
    self.timeBase = timeBase
    parameters = try CodecParameters(of: stream)
    kind =
      switch stream.pointee.codecpar.pointee.codec_type {
      // A cover picture is a track to libav and no movie to anyone else.
      case AVMEDIA_TYPE_VIDEO
      where stream.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC == 0:
        .video
      case AVMEDIA_TYPE_AUDIO: .audio
      default: .other
      }
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
      rotation = degrees.isFinite ? ((Int(degrees.rounded()) % 360) + 360) % 360 : 0
    } else {
      displayMatrix = []
      rotation = 0
    }
  }
}

extension TrackFormat {
  /// By the codec's tag: libav gives these tracks no codec of their own.
  private static func otherName(_ parameters: AVCodecParameters) -> String? {
    let tag = (0..<4).map {
      Character(Unicode.Scalar(UInt8(parameters.codec_tag >> ($0 * 8) & 0xFF)))
    }
    let name = String(cString: avcodec_get_name(parameters.codec_id))
    switch parameters.codec_type {
    case AVMEDIA_TYPE_VIDEO: return "video track (\(name))"
    case AVMEDIA_TYPE_AUDIO: return "sound track (\(name))"
    case AVMEDIA_TYPE_SUBTITLE: return "subtitle track (\(name))"
    case AVMEDIA_TYPE_DATA
    where parameters.codec_id == AV_CODEC_ID_BIN_DATA && tag == Array("text"):
      return nil
    case AVMEDIA_TYPE_DATA where tag == Array("tmcd"): return "timecode track"
    default:
      let words = tag.allSatisfy { $0.isLetter || $0.isNumber } ? String(tag) : name
      return "data track (\(words))"
    }
  }
}

extension FrameRate {
  /// The rate of an `AVRational`, or nil where it is none.
  fileprivate init?(_ rational: AVRational) {
    guard rational.num > 0, rational.den > 0,
      let rate = FrameRate(
        exactly: Rational(Int128(rational.num), over: Int128(rational.den)))
    else { return nil }
    self = rate
  }
}

/// The entries of a libav dictionary.
func readDictionary(_ dictionary: OpaquePointer?) -> [String: String] {
  var result: [String: String] = [:]
  var entry: UnsafeMutablePointer<AVDictionaryEntry>?
  while let next = av_dict_get(dictionary, "", entry, AV_DICT_IGNORE_SUFFIX) {
    result[String(cString: next.pointee.key)] = String(cString: next.pointee.value)
    entry = next
  }
  return result
}
