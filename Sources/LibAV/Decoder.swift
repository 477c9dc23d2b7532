// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore

/// Turns the packets of one track into frames.
package struct Decoder: ~Copyable {
  private let context: UnsafeMutablePointer<AVCodecContext>
  private let subject: String

  /// Opens the decoder for a track.
  ///
  /// - Parameters:
  ///   - parameters: The track's codec.
  ///   - subject: The file or track that errors name.
  ///   - timeBase: Seconds per tick of the packets' times; libav needs it to move the time of a
  ///     block of sound whose first samples are left out.
  ///   - threadCount: How many threads may decode at once; 0 lets libav choose.
  /// - Throws: `LibAVError` for "find" or "open" when there is no such decoder.
  package init(
    parameters: CodecParameters, subject: String, timeBase: Rational? = nil, threadCount: Int = 0
  ) throws(LibAVError) {
    let codecID = parameters.pointer.pointee.codec_id
    guard let codec = avcodec_find_decoder(codecID) else {
      throw LibAVError(
        "find a decoder for \(parameters.codecName) in", subject,
        code: CFFmpeg_DECODER_NOT_FOUND)
    }
    guard let context = avcodec_alloc_context3(codec) else {
      throw LibAVError("allocate", "a decoder", code: CFFmpeg_ENOMEM)
    }
    var opened: UnsafeMutablePointer<AVCodecContext>? = context
    do {
      try LibAVError.check(
        avcodec_parameters_to_context(context, parameters.pointer), "set up the decoder for",
        subject)
      if let timeBase, let above = Int32(exactly: timeBase.numerator),
        let below = Int32(exactly: timeBase.denominator)
      {
        context.pointee.pkt_timebase = AVRational(num: above, den: below)
      }
      context.pointee.thread_count = Int32(clamping: threadCount)
      try LibAVError.checkData(
        result: LibAVLog.during { avcodec_open2(context, codec, nil) }, "open the decoder for",
        subject)
    } catch {
      avcodec_free_context(&opened)
      throw error
    }
    self.context = context
    self.subject = subject
  }

  deinit {
    var gone: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&gone)
  }

  /// Gives the decoder a packet, or nil for "no more"; then take frames until there is none.
  ///
  /// - Throws: `LibAVError` for "decode" when the packet is damaged beyond use.
  package mutating func send(_ packet: Packet?) throws(LibAVError) {
    let result = LibAVLog.during { avcodec_send_packet(context, packet?.pointer) }
    if result == CFFmpeg_EOF && packet == nil { return }
    try LibAVError.checkData(result: result, "decode", subject)
  }

  /// Whether packets sent from here on are left out where no other picture needs theirs.
  ///
  /// The corresponding field is `skip_frame`; codecs that cannot tell decode all the same.
  package var skipsUnreferenced: Bool {
    get { context.pointee.skip_frame == AVDISCARD_NONREF }
    nonmutating set {
      context.pointee.skip_frame = newValue ? AVDISCARD_NONREF : AVDISCARD_DEFAULT
    }
  }

  /// Leaves out what only makes pixels exact, for those who want the order of frames alone.
  package func skipPixels() {
    context.pointee.skip_loop_filter = AVDISCARD_ALL
    context.pointee.skip_idct = AVDISCARD_ALL
  }

  /// Forgets everything that was sent, to go on somewhere else in the track.
  package mutating func flush() { avcodec_flush_buffers(context) }

  /// The next frame, or nil when the decoder wants more packets or has given all.
  ///
  /// - Throws: `LibAVError` for "decode".
  package mutating func nextFrame() throws(LibAVError) -> MediaFrame? {
    let frame = try MediaFrame()
    let result = LibAVLog.during { avcodec_receive_frame(context, frame.pointer) }
    if result == CFFmpeg_EAGAIN || result == CFFmpeg_EOF { return nil }
    try LibAVError.checkData(result: result, "decode", subject)
    return frame
  }
}
