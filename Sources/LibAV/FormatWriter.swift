// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Writes a file with one stream by a muxer of libavformat.
package struct FormatWriter: ~Copyable {
  private let path: String
  private let context: UnsafeMutablePointer<AVFormatContext>
  private let scratch: UnsafeMutablePointer<AVPacket>

  /// Opens an existing file, empties it, and writes the header.
  ///
  /// Each packet reaches the file with its call.
  ///
  /// - Parameters:
  ///   - path: The path of the file, for messages too.
  ///   - descriptor: An open descriptor of the file, which is then opened by it and not by its name; nil
  ///     to open it by name.
  ///   - muxer: The name of the muxer, such as `gif` or `wav`.
  ///   - parameters: The codec parameters of the stream.
  ///   - timescale: The number of ticks per second for the times of packets.
  ///   - options: Options of the muxer.
  ///   - metadata: Tags of the file.
  /// - Throws: `CallFailure` with the operation "create" or "write the header of", also if the muxer does
  ///   not support the codec.
  package init(
    path: String, descriptor: Int32? = nil, muxer: String, parameters: CodecParameters,
    timescale: Int32,
    options: [String: String] = [:], metadata: [String: String] = [:]
  ) throws(CallFailure) {
    var made: UnsafeMutablePointer<AVFormatContext>?
    var packet = av_packet_alloc()
    do throws(CallFailure) {
      try CallFailure.check(
        avformat_alloc_output_context2(&made, nil, muxer, path.systemPath), "create", path)
      guard let context = made, let stream = avformat_new_stream(context, nil), let scratch = packet
      else { throw CallFailure("create", path, code: CFFmpeg_ENOMEM) }
      let name = descriptor.map { "/proc/self/fd/\($0)" } ?? path
      let result = LibAVLog.during {
        avio_open(&context.pointee.pb, ("file:" + name).systemPath, AVIO_FLAG_WRITE)
      }
      try CallFailure.check(result: result, "create", path)
      try CallFailure.check(
        avcodec_parameters_copy(stream.pointee.codecpar, parameters.pointer), "create", path)
      stream.pointee.codecpar.pointee.codec_tag = 0
      stream.pointee.time_base = AVRational(num: 1, den: timescale)
      context.pointee.flush_packets = 1
      for (key, value) in metadata { av_dict_set(&context.pointee.metadata, key, value, 0) }
      for (key, value) in options {
        av_opt_set(context.pointee.priv_data, key, value, 0)
      }
      let header = LibAVLog.during { avformat_write_header(context, nil) }
      try CallFailure.check(result: header, "write the header of", path)
      (self.path, self.context, self.scratch) = (path, context, scratch)
    } catch {
      if let made {
        avio_closep(&made.pointee.pb)
        avformat_free_context(made)
      }
      av_packet_free(&packet)
      throw error
    }
  }

  deinit {
    avio_closep(&context.pointee.pb)
    avformat_free_context(context)
    var gone: UnsafeMutablePointer<AVPacket>? = scratch
    av_packet_free(&gone)
  }

  /// Sets a number that the muxer reads when the file is finished.
  package func setOption(_ name: String, to value: Int64) {
    av_opt_set_int(context.pointee.priv_data, name, value, 0)
  }

  /// Writes a packet.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  package mutating func write(
    _ packet: Packet, at ticks: Int64, duration: Int64 = 0
  ) throws(CallFailure) {
    try CallFailure.check(av_packet_ref(scratch, packet.pointer), "write to", path)
    defer { av_packet_unref(scratch) }
    scratch.pointee.stream_index = 0
    scratch.pointee.pts = ticks
    scratch.pointee.dts = ticks
    scratch.pointee.duration = duration
    try CallFailure.check(av_write_frame(context, scratch), "write to", path)
    try check()
  }

  /// Completes the file.
  ///
  /// - Throws: `CallFailure` with the operation "finish", "write to" or "close".
  package mutating func finish() throws(CallFailure) {
    try CallFailure.check(av_write_trailer(context), "finish", path)
    avio_flush(context.pointee.pb)
    try check()
    try CallFailure.check(avio_closep(&context.pointee.pb), "close", path)
  }

  /// Throws the error of an earlier write, which libavformat reports only here.
  private func check() throws(CallFailure) {
    if let io = context.pointee.pb, io.pointee.error < 0 {
      throw CallFailure("write to", path, code: io.pointee.error)
    }
  }
}
