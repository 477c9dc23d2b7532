// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore

/// A decoder for the packets of one track.
package struct Decoder: ~Copyable {
  private let context: UnsafeMutablePointer<AVCodecContext>
  private let subject: String
  /// Whether a packet may contain the two fields of an H.264 frame.
  private let hasFields: Bool
  private let unitLengthSize: Int?
  /// Whether YUV frames above standard definition that have no matrix tag are tagged as BT.709, as
  /// players assume.
  package var guessesMatrix = false

  /// Opens a decoder.
  ///
  /// - Parameters:
  ///   - parameters: The track's codec parameters.
  ///   - subject: The file or track that errors name.
  ///   - timeBase: The duration in seconds of a tick of the packet times. libavcodec needs it to
  ///     shift the time of an audio frame whose first samples it skips.
  ///   - threadCount: The maximum number of decoding threads; 0 lets libavcodec choose.
  ///   - reduction: The number of times that width and height are halved during decoding. Only a
  ///     few codecs support this; MJPEG supports up to 3.
  /// - Throws: `CallFailure` with the operation "find" if there is no decoder, else "open".
  package init(
    parameters: CodecParameters, subject: String, timeBase: Rational? = nil, threadCount: Int = 0,
    reduction: Int = 0
  ) throws(CallFailure) {
    let codecID = parameters.pointer.pointee.codec_id
    guard let codec = avcodec_find_decoder(codecID) else {
      throw CallFailure(
        "find a decoder for \(parameters.codecName) in", subject,
        code: CFFmpeg_DECODER_NOT_FOUND)
    }
    guard let context = avcodec_alloc_context3(codec) else {
      throw CallFailure("allocate", "a decoder", code: CFFmpeg_ENOMEM)
    }
    var opened: UnsafeMutablePointer<AVCodecContext>? = context
    do {
      try CallFailure.check(
        avcodec_parameters_to_context(context, parameters.pointer), "set up the decoder for",
        subject)
      if let timeBase, let above = Int32(exactly: timeBase.numerator),
        let below = Int32(exactly: timeBase.denominator)
      {
        context.pointee.pkt_timebase = AVRational(num: above, den: below)
      }
      context.pointee.thread_count = Int32(clamping: threadCount)
      context.pointee.lowres = Int32(clamping: reduction)
      try CallFailure.checkData(
        result: LibAVLog.during { avcodec_open2(context, codec, nil) }, "open the decoder for",
        subject)
    } catch {
      avcodec_free_context(&opened)
      throw error
    }
    self.context = context
    self.subject = subject
    hasFields =
      codecID == AV_CODEC_ID_H264 && context.pointee.field_order != AV_FIELD_PROGRESSIVE
    unitLengthSize = parameters.unitLengthSize
  }

  deinit {
    var gone: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&gone)
  }

  /// Sends a packet, or nil at the end of the stream.
  ///
  /// Afterwards, call ``nextFrame()`` until it returns nil.
  ///
  /// - Throws: `CallFailure` with the operation "decode" if the packet is too damaged.
  package mutating func send(_ packet: Packet?) throws(CallFailure) {
    // In a packet of two fields, libavcodec applies the scaling matrices of the first field to both.
    guard hasFields, let packet, let offset = packet.parameterChange(unitLengthSize) else {
      return try sendWhole(packet)
    }
    let (first, second) = try packet.split(at: offset)
    try sendWhole(first)
    try sendWhole(second)
  }

  private mutating func sendWhole(_ packet: Packet?) throws(CallFailure) {
    let result = LibAVLog.during { avcodec_send_packet(context, packet?.pointer) }
    if result == CFFmpeg_EOF && packet == nil { return }
    try CallFailure.checkData(result: result, "decode", subject)
  }

  /// Whether a packet is skipped if no other frame references its frame.
  ///
  /// The setting (`skip_frame`) applies to packets that are sent afterwards. For codecs that do not
  /// state which frames are referenced, all packets are decoded.
  package var skipsUnreferenced: Bool {
    get { context.pointee.skip_frame == AVDISCARD_NONREF }
    nonmutating set {
      context.pointee.skip_frame = newValue ? AVDISCARD_NONREF : AVDISCARD_DEFAULT
    }
  }

  /// Skips the loop filter and the IDCT to decode faster.
  ///
  /// The pixels are then wrong, so use this only to find out the order of the frames.
  package func skipPixels() {
    context.pointee.skip_loop_filter = AVDISCARD_ALL
    context.pointee.skip_idct = AVDISCARD_ALL
  }

  /// Discards all buffered packets and frames, before a seek.
  package mutating func flush() { avcodec_flush_buffers(context) }

  /// Returns the next frame.
  ///
  /// Returns nil if more packets are needed, or at the end of the stream.
  ///
  /// - Throws: `CallFailure` with the operation "decode".
  package mutating func nextFrame() throws(CallFailure) -> MediaFrame? {
    let frame = try MediaFrame()
    let result = LibAVLog.during { avcodec_receive_frame(context, frame.pointer) }
    if result == CFFmpeg_EAGAIN || result == CFFmpeg_EOF { return nil }
    try CallFailure.checkData(result: result, "decode", subject)
    if guessesMatrix { frame.guessMatrix() }
    return frame
  }
}
