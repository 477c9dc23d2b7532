// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Writes an animated image that repeats forever.
///
/// A GIF is written by libavformat. A WebP encoder returns the whole file as one packet, in which
/// this writer corrects the duration of the last frame.
package struct AnimatedImageWriter: ~Copyable {
  private let format: AnimatedImageFormat
  private let path: String
  /// The muxer of libavformat; nil for WebP.
  private let context: UnsafeMutablePointer<AVFormatContext>?
  private let scratch: UnsafeMutablePointer<AVPacket>
  private var lastTime: Int64 = 0
  private var image: [UInt8] = []

  /// Opens an existing file for writing.
  ///
  /// - Throws: `CallFailure` with the operation "create" or "write the header of".
  package init(
    path: String, format: AnimatedImageFormat, parameters: CodecParameters
  ) throws(CallFailure) {
    guard let packet = av_packet_alloc() else {
      throw CallFailure("create", path, code: CFFmpeg_ENOMEM)
    }
    var made: UnsafeMutablePointer<AVFormatContext>?
    do throws(CallFailure) {
      if format == .gif { try Self.open(&made, path, parameters) }
    } catch {
      if let made {
        avio_closep(&made.pointee.pb)
        avformat_free_context(made)
      }
      var gone: UnsafeMutablePointer<AVPacket>? = packet
      av_packet_free(&gone)
      throw error
    }
    self.format = format
    self.path = path
    context = made
    scratch = packet
  }

  private static func open(
    _ made: inout UnsafeMutablePointer<AVFormatContext>?, _ path: String,
    _ parameters: CodecParameters
  ) throws(CallFailure) {
    try CallFailure.check(
      avformat_alloc_output_context2(&made, nil, "gif", path.systemPath), "create", path)
    guard let context = made, let stream = avformat_new_stream(context, nil) else {
      throw CallFailure("create", path, code: CFFmpeg_ENOMEM)
    }
    let result = LibAVLog.during {
      avio_open(&context.pointee.pb, ("file:" + path).systemPath, AVIO_FLAG_WRITE)
    }
    try CallFailure.check(result: result, "create", path)
    try CallFailure.check(
      avcodec_parameters_copy(stream.pointee.codecpar, parameters.pointer), "create", path)
    stream.pointee.codecpar.pointee.codec_tag = 0
    stream.pointee.time_base = AVRational(num: 1, den: AnimatedImageFormat.gif.timescale)
    try CallFailure.check(avformat_write_header(context, nil), "write the header of", path)
  }

  deinit {
    if let context {
      avio_closep(&context.pointee.pb)
      avformat_free_context(context)
    }
    var gone: UnsafeMutablePointer<AVPacket>? = scratch
    av_packet_free(&gone)
  }

  /// Writes a packet whose frame appears at the time `ticks`, in ticks of the format.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  package mutating func write(_ packet: Packet, at ticks: Int64) throws(CallFailure) {
    guard let context else {
      image += packet.withBytes { [UInt8]($0) }
      return
    }
    lastTime = ticks
    try CallFailure.check(av_packet_ref(scratch, packet.pointer), "write to", path)
    defer { av_packet_unref(scratch) }
    scratch.pointee.stream_index = 0
    scratch.pointee.pts = ticks
    scratch.pointee.dts = ticks
    scratch.pointee.duration = 0
    try CallFailure.check(av_write_frame(context, scratch), "write to", path)
  }

  /// Completes the file, whose last frame is shown until `end`.
  ///
  /// - Throws: `CallFailure` with the operation "finish", "write to" or "close".
  package mutating func finish(at end: Int64) throws(CallFailure) {
    guard let context else {
      WebPDurations.end(&image, at: end)
      let bytes = image
      try RandomAccessFile(opening: path).write(bytes, at: 0)
      return
    }
    av_opt_set_int(context.pointee.priv_data, "final_delay", end - lastTime, 0)
    try CallFailure.check(av_write_trailer(context), "finish", path)
    avio_flush(context.pointee.pb)
    if let io = context.pointee.pb, io.pointee.error < 0 {
      throw CallFailure("write to", path, code: io.pointee.error)
    }
    try CallFailure.check(avio_closep(&context.pointee.pb), "close", path)
  }
}

/// Reads and changes the durations of frames in a WebP file.
package enum WebPDurations {
  /// The byte offset of each frame's duration, which is stored in three bytes.
  private static func offsets(in file: [UInt8]) -> [Int] {
    var found: [Int] = []
    // The file begins with `RIFF`, its size and `WEBP`. Chunks follow: a name, a size, and an even
    // number of bytes.
    var start = 12
    while start + 8 <= file.count {
      let size = (0..<4).reduce(0) { $0 | Int(file[start + 4 + $1]) << (8 * $1) }
      if file[start..<start + 4].elementsEqual("ANMF".utf8), start + 23 <= file.count {
        found.append(start + 20)
      }
      start += 8 + size + size % 2
    }
    return found
  }

  /// Returns the duration of each frame in milliseconds; empty for an image that is not animated.
  package static func milliseconds(in file: [UInt8]) -> [Int] {
    offsets(in: file).map { at in
      (0..<3).reduce(0) { $0 | Int(file[at + $1]) << (8 * $1) }
    }
  }

  /// Sets the duration of the last frame so that the animation ends at a time.
  ///
  /// The encoder knows only when each frame begins, so it guesses the duration of the last frame.
  static func end(_ file: inout [UInt8], at milliseconds: Int64) {
    let known = Self.milliseconds(in: file)
    guard let at = offsets(in: file).last else { return }
    let begin = known.dropLast().reduce(0, +)
    let duration = min(max(Int(clamping: milliseconds) - begin, 0), 0xFF_FFFF)
    for byte in 0..<3 { file[at + byte] = UInt8(truncatingIfNeeded: duration >> (8 * byte)) }
  }
}

/// The file formats of animated images.
package enum AnimatedImageFormat: String, Hashable, Sendable {
  case gif
  case webp

  /// The format that a file name extension selects.
  ///
  /// Nil for any other extension, and without an extension.
  package init?(path: String) {
    guard let extent = path.fileExtension else { return nil }
    self.init(rawValue: extent)
  }

  /// FFmpeg's name of the encoder for this format.
  package var encoderName: String {
    switch self {
    case .gif: "gif"
    case .webp: "libwebp_anim"
    }
  }

  /// The number of ticks per second for the times in the file.
  package var timescale: Int32 {
    switch self {
    case .gif: 100
    case .webp: 1_000
    }
  }

  /// The highest frame rate at which browsers play an animation at its real speed.
  ///
  /// Browsers show frames of 10 ms or less for 100 ms.
  package var highestFrameRate: Int64 {
    switch self {
    case .gif: 50
    case .webp: 90
    }
  }

  /// Whether the linked FFmpeg contains the encoder for this format.
  package var isSupported: Bool { avcodec_find_encoder_by_name(encoderName) != nil }
}
