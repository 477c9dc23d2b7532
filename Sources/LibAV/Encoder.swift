// SPDX-License-Identifier: Apache-2.0

package import CFFmpeg
package import OvercrankMediaCore

/// An encoder for the packets of one track.
package struct Encoder: ~Copyable {
  private let context: UnsafeMutablePointer<AVCodecContext>
  private let subject: String
  /// The codec parameters to store in the file.
  package let parameters: CodecParameters
  /// The number of samples per channel that an audio frame must have.
  ///
  /// It is 0 if any number is allowed.
  package let frameSize: Int

  /// The settings of a video encoder.
  package struct VideoSettings: Sendable {
    /// FFmpeg's name of the encoder: `mjpeg`, `libx264`, `ffv1`, `rawvideo` or `png`.
    package var codec: String
    package var width: Int
    package var height: Int
    package var pixelFormat: AVPixelFormat
    package var isFullRange = false
    /// The number of ticks per second for the times of frames and packets.
    package var timescale: Int32
    /// The expected frame rate.
    ///
    /// It only guides rate control, and does not change the times of frames.
    package var frameRate: FrameRate?
    /// The greatest distance between key frames, in frames.
    ///
    /// Nil selects the codec's default.
    package var keyFrameInterval: Int?
    /// The codec's private options in FFmpeg, by name.
    package var options: [String: String] = [:]
    /// The quantizer for JPEG, from 2 (best) to 31.
    ///
    /// Nil for other codecs.
    package var quantizer: Int?
    package var threadCount = 0
    /// Whether the encoder may reorder frames (B-frames).
    package var hasReorderedFrames = true
    package var colors: ColorTags?
    /// The pixel aspect ratio in lowest terms.
    ///
    /// Nil if pixels are square or the ratio is unknown.
    package var pixelAspect: PixelAspect?

    package init(
      codec: String, width: Int, height: Int, pixelFormat: AVPixelFormat, timescale: Int32
    ) {
      (self.codec, self.width, self.height) = (codec, width, height)
      (self.pixelFormat, self.timescale) = (pixelFormat, timescale)
    }
  }

  /// The pixel aspect ratio: the width of a pixel relative to its height.
  package struct PixelAspect: Hashable, Sendable {
    let width: Int32
    let height: Int32

    /// The two terms of the pixel aspect ratio as `Int`.
    package var ratio: (width: Int, height: Int) { (Int(width), Int(height)) }
    /// The pixel aspect ratio after a rotation of the frame by 90°.
    package var transposed: PixelAspect { PixelAspect(width: height, height: width) }
  }

  /// The color tags of a track.
  package struct ColorTags: Sendable {
    let primaries: AVColorPrimaries
    let transfer: AVColorTransferCharacteristic
    let space: AVColorSpace
    let chromaLocation: AVChromaLocation

    /// Creates the color tags for a track's frames after their conversion to the pixel format in
    /// which they are stored.
    package init(_ parameters: CodecParameters, storedAs format: AVPixelFormat) {
      primaries = parameters.pointer.pointee.color_primaries
      transfer = parameters.pointer.pointee.color_trc
      chromaLocation = parameters.pointer.pointee.chroma_location
      let space = parameters.pointer.pointee.color_space
      // RGB sources are converted to YUV with BT.601 coefficients, as in `Scaler`, so the tag must
      // be BT.601.
      self.space =
        format.isRGB
        ? AVCOL_SPC_RGB
        : space == AVCOL_SPC_RGB || parameters.pixelFormat.isRGB ? AVCOL_SPC_SMPTE170M : space
    }

    private init(
      space: AVColorSpace, primaries: AVColorPrimaries = AVCOL_PRI_UNSPECIFIED,
      transfer: AVColorTransferCharacteristic = AVCOL_TRC_UNSPECIFIED
    ) {
      (self.primaries, self.transfer, self.space) = (primaries, transfer, space)
      chromaLocation = AVCHROMA_LOC_UNSPECIFIED
    }

    /// The color tags of a camera's YUV frames with a matrix; nil for an unknown matrix.
    ///
    /// Cameras have the primaries of sRGB, which are those of BT.709. libavformat writes no tags into a
    /// movie if one of them is unknown.
    package init?(_ matrix: MediaFrame.Matrix?) {
      let space: AVColorSpace
      switch matrix {
      case .bt601: space = AVCOL_SPC_SMPTE170M
      case .bt709: space = AVCOL_SPC_BT709
      case .other, nil: return nil
      }
      self.init(space: space, primaries: AVCOL_PRI_BT709, transfer: AVCOL_TRC_BT709)
    }

    /// The color tags of YUV frames that `Scaler` converted from untagged RGB frames.
    package static let convertedFromRGB = ColorTags(space: AVCOL_SPC_SMPTE170M)
  }

  /// Opens a video encoder.
  ///
  /// - Throws: `CallFailure` with the operation "find" or "open" if libavcodec rejects the
  ///   settings.
  package init(video settings: VideoSettings) throws(CallFailure) {
    try self.init(codec: settings.codec, options: settings.options) { context in
      context.pointee.width = Int32(clamping: settings.width)
      context.pointee.height = Int32(clamping: settings.height)
      context.pointee.pix_fmt = settings.pixelFormat
      context.pointee.color_range =
        settings.isFullRange ? AVCOL_RANGE_JPEG : AVCOL_RANGE_UNSPECIFIED
      context.pointee.time_base = AVRational(num: 1, den: settings.timescale)
      if let rate = settings.frameRate {
        context.pointee.framerate = AVRational(num: rate.numerator, den: rate.denominator)
      }
      if let interval = settings.keyFrameInterval {
        context.pointee.gop_size = Int32(clamping: interval)
      }
      if !settings.hasReorderedFrames { context.pointee.max_b_frames = 0 }
      if let quantizer = settings.quantizer {
        context.pointee.flags |= AV_CODEC_FLAG_QSCALE
        context.pointee.global_quality = Int32(clamping: quantizer) * FF_QP2LAMBDA
      }
      if let colors = settings.colors {
        context.pointee.color_primaries = colors.primaries
        context.pointee.color_trc = colors.transfer
        context.pointee.colorspace = colors.space
        context.pointee.chroma_sample_location = colors.chromaLocation
      }
      if let aspect = settings.pixelAspect {
        context.pointee.sample_aspect_ratio = AVRational(num: aspect.width, den: aspect.height)
      }
      context.pointee.thread_count = Int32(clamping: settings.threadCount)
    }
  }

  /// Opens an audio encoder.
  ///
  /// The times of frames and packets are in samples.
  ///
  /// `codec` is the name of a libavcodec encoder, such as `aac` or `pcm_s16le`. The error for an
  /// unknown name has the operation "find". The error for settings that the encoder rejects has the
  /// operation "open".
  package init(
    audioCodec codec: String, sampleRate: Int, channelCount: Int
  ) throws(CallFailure) {
    try self.init(codec: codec, options: [:]) { context in
      context.pointee.sample_rate = Int32(clamping: sampleRate)
      av_channel_layout_default(&context.pointee.ch_layout, Int32(clamping: channelCount))
      context.pointee.sample_fmt =
        context.pointee.codec.pointee.sample_fmts?.pointee ?? AV_SAMPLE_FMT_FLTP
      context.pointee.time_base = AVRational(num: 1, den: Int32(clamping: sampleRate))
      if codec == "aac" {
        context.pointee.bit_rate = Int64(96_000 * max(1, channelCount))
      }
    }
  }

  private init(
    codec name: String, options: [String: String],
    configure: (UnsafeMutablePointer<AVCodecContext>) -> Void
  ) throws(CallFailure) {
    guard let codec = avcodec_find_encoder_by_name(name) else {
      throw CallFailure("find", "the encoder \(name)", code: CFFmpeg_ENCODER_NOT_FOUND)
    }
    guard let context = avcodec_alloc_context3(codec) else {
      throw CallFailure("allocate", "an encoder", code: CFFmpeg_ENOMEM)
    }
    configure(context)
    // MOV and MP4 store the codec headers once for each track, so key frames must not contain them.
    context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
    var dictionary: OpaquePointer?
    for (key, value) in options { av_dict_set(&dictionary, key, value, 0) }
    let result = LibAVLog.during { avcodec_open2(context, codec, &dictionary) }
    let unknown = readDictionary(dictionary).keys.sorted().joined(separator: ", ")
    av_dict_free(&dictionary)
    var opened: UnsafeMutablePointer<AVCodecContext>? = context
    do throws(CallFailure) {
      try CallFailure.check(result: result, "open the encoder", name)
      guard unknown.isEmpty else {
        throw CallFailure("set the options \(unknown) of", name, code: CFFmpeg_EINVAL)
      }
      parameters = try CodecParameters(encoder: context)
    } catch {
      avcodec_free_context(&opened)
      throw error
    }
    frameSize = Int(context.pointee.frame_size)
    self.context = context
    subject = name
  }

  deinit {
    var gone: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&gone)
  }

  /// Sends a frame with a time in ticks, or nil at the end of the stream.
  ///
  /// - Throws: `CallFailure` with the operation "encode".
  package mutating func send(
    _ frame: MediaFrame?, at ticks: Int64 = 0, asKeyFrame: Bool = false
  ) throws(CallFailure) {
    if let frame {
      // The caller may send the same frame again with another time. The time is therefore set on a
      // new reference, not on the frame itself.
      let reference = try MediaFrame()
      try CallFailure.check(av_frame_ref(reference.pointer, frame.pointer), "encode", subject)
      reference.pointer.pointee.pts = ticks
      reference.pointer.pointee.pict_type =
        asKeyFrame ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
      reference.pointer.pointee.quality = context.pointee.global_quality
      try CallFailure.check(
        avcodec_send_frame(context, reference.pointer), "encode with", subject)
    } else {
      let result = LibAVLog.during { avcodec_send_frame(context, nil) }
      if result == CFFmpeg_EOF { return }
      try CallFailure.check(result: result, "finish encoding with", subject)
    }
  }

  /// Sends a block of audio: an array of samples for each channel, from -1 to 1.
  ///
  /// - Throws: `CallFailure` with the operation "encode".
  package mutating func send(
    audio channels: [[Float]], at sample: Int64
  ) throws(CallFailure) {
    let block = try MediaFrame.audio(
      channels, sampleRate: Int(context.pointee.sample_rate), format: context.pointee.sample_fmt)
    try send(block, at: sample)
  }

  /// The pixel format of an encoder to which a source format can be converted with the least loss.
  ///
  /// A loss of the alpha channel is considered only if `keepsAlpha` is true. Nil if the encoder
  /// lists no pixel formats.
  package static func nearestPixelFormat(
    to source: AVPixelFormat, forCodec name: String, keepsAlpha: Bool = false
  ) -> AVPixelFormat? {
    guard let codec = avcodec_find_encoder_by_name(name), let formats = codec.pointee.pix_fmts
    else { return nil }
    var loss: Int32 = 0
    let best = avcodec_find_best_pix_fmt_of_list(
      formats, source, keepsAlpha && source.hasAlpha ? 1 : 0, &loss)
    return best == AV_PIX_FMT_NONE ? nil : best
  }

  /// Returns the next packet.
  ///
  /// Returns nil if more frames are needed, or at the end of the stream.
  ///
  /// - Throws: `CallFailure` with the operation "encode".
  package mutating func nextPacket() throws(CallFailure) -> Packet? {
    guard let packet = av_packet_alloc() else {
      throw CallFailure("allocate", "a packet", code: CFFmpeg_ENOMEM)
    }
    let owned = Packet(owning: packet)
    let result = LibAVLog.during { avcodec_receive_packet(context, packet) }
    if result == CFFmpeg_EAGAIN || result == CFFmpeg_EOF { return nil }
    try CallFailure.check(result: result, "encode with", subject)
    return owned
  }
}

extension CodecParameters {
  /// Creates the codec parameters of an encoder that is already open.
  fileprivate convenience init(
    encoder context: UnsafeMutablePointer<AVCodecContext>
  ) throws(CallFailure) {
    var scratch = avcodec_parameters_alloc()
    defer { avcodec_parameters_free(&scratch) }
    guard let parameters = scratch else {
      throw CallFailure("allocate", "codec parameters", code: CFFmpeg_ENOMEM)
    }
    try CallFailure.check(
      avcodec_parameters_from_context(parameters, context), "read", "an encoder's parameters")
    // For HEVC in MOV and MP4, the codec tag hvc1 declares that parameter sets are stored once for
    // the track and not in the frames.
    if parameters.pointee.codec_id == AV_CODEC_ID_HEVC, parameters.pointee.extradata_size > 0 {
      parameters.pointee.codec_tag = CodecParameters.hvc1
    }
    try self.init(copying: parameters)
  }
}

extension TransferFunction {
  /// Creates the transfer function that a track's color tags describe.
  package init(_ colors: Encoder.ColorTags) {
    let curve: Curve =
      switch colors.transfer {
      case AVCOL_TRC_GAMMA22: .power(2.2)
      case AVCOL_TRC_GAMMA28: .power(2.8)
      case AVCOL_TRC_LINEAR: .power(1)
      case AVCOL_TRC_IEC61966_2_1: .sRGB
      case AVCOL_TRC_SMPTE2084: .pq
      case AVCOL_TRC_ARIB_STD_B67: .hlg
      default: .bt709
      }
    // The coefficients of video without a matrix tag are those of BT.601, as in libswscale.
    let (red, blue) =
      switch colors.space {
      case AVCOL_SPC_BT709: (0.2126, 0.0722)
      case AVCOL_SPC_BT2020_NCL, AVCOL_SPC_BT2020_CL: (0.2627, 0.0593)
      case AVCOL_SPC_SMPTE240M: (0.212, 0.087)
      case AVCOL_SPC_FCC: (0.30, 0.11)
      default: (0.299, 0.114)
      }
    self.init(curve: curve, red: red, blue: blue)
  }
}
