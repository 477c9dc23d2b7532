// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore

/// A bitstream filter of libavcodec, such as `h264_mp4toannexb`.
package struct BitstreamFilter: ~Copyable {
  private let context: UnsafeMutablePointer<AVBSFContext>
  private let name: String

  /// Creates a filter for a track.
  ///
  /// - Throws: `CallFailure` with the operation "find" or "set up".
  package init(named name: String, parameters: CodecParameters) throws(CallFailure) {
    guard let filter = av_bsf_get_by_name(name) else {
      throw CallFailure("find", "the filter \(name)", code: CFFmpeg_EINVAL)
    }
    var made: UnsafeMutablePointer<AVBSFContext>?
    try CallFailure.check(av_bsf_alloc(filter, &made), "set up the filter", name)
    guard let context = made else {
      throw CallFailure("set up the filter", name, code: CFFmpeg_ENOMEM)
    }
    do throws(CallFailure) {
      try CallFailure.check(
        avcodec_parameters_copy(context.pointee.par_in, parameters.pointer),
        "set up the filter", name)
      context.pointee.time_base_in = AVRational(num: 1, den: 1_000_000)
      try CallFailure.check(av_bsf_init(context), "set up the filter", name)
    } catch {
      av_bsf_free(&made)
      throw error
    }
    self.context = context
    self.name = name
  }

  deinit {
    var gone: UnsafeMutablePointer<AVBSFContext>? = context
    av_bsf_free(&gone)
  }

  /// Filters a packet.
  ///
  /// Use this only with a filter that returns exactly one packet for each input packet.
  ///
  /// - Throws: `CallFailure` with the operation "filter" if the packet is damaged, or if the filter
  ///   returns no packet.
  package mutating func filter(_ packet: Packet) throws(CallFailure) -> Packet {
    guard let input = av_packet_clone(packet.pointer), let output = av_packet_alloc() else {
      throw CallFailure("filter", "a packet with \(name)", code: CFFmpeg_ENOMEM)
    }
    let owned = Packet(owning: input)
    let result = Packet(owning: output)
    try CallFailure.check(
      av_bsf_send_packet(context, owned.pointer), "filter", "a packet with \(name)")
    try CallFailure.check(
      av_bsf_receive_packet(context, output), "filter", "a packet with \(name)")
    return result
  }

  /// The codec headers that `extract_extradata` found in the packet; empty if it found none.
  package static func extradata(of packet: Packet) -> [UInt8] {
    var size = 0
    guard let data = av_packet_get_side_data(packet.pointer, AV_PKT_DATA_NEW_EXTRADATA, &size)
    else { return [] }
    return Array(UnsafeBufferPointer(start: data, count: size))
  }
}
