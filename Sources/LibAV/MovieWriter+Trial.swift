// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMediaCore

extension MovieWriter {
  /// Whether a container has a specific tag for a codec.
  ///
  /// For audio codecs without a specific tag, the MOV muxer writes a Microsoft tag and omits the
  /// codec's headers. No decoder can decode such a track. The result is false for Speex, too: it
  /// has a tag, but the muxer omits its headers.
  package static func hasTag(_ parameters: CodecParameters, container: String) -> Bool {
    guard parameters.codecName != "speex",
      let tags = av_guess_format(container, nil, nil)?.pointee.codec_tag
    else { return false }
    var tag: UInt32 = 0
    return av_codec_get_tag2(tags, parameters.codecID, &tag) != 0
  }

  /// Whether a container supports a track.
  ///
  /// The test muxes the track into memory.
  ///
  /// `avformat_query_codec` is not enough, because it accepts codecs that the muxer rejects later,
  /// such as VP8 and Opus in MOV.
  ///
  /// - Parameters:
  ///   - parameters: The codec parameters of the track.
  ///   - timescale: The number of ticks per second for the track's times.
  ///   - packet: A packet of the track, for codecs whose packets the muxer parses. Nil tests only
  ///     the header.
  ///   - container: `mov` or `mp4`.
  /// - Returns: True if the muxer accepts the track, false if it rejects the track.
  package static func accepts(
    _ parameters: CodecParameters, timescale: Int32, packet: Packet? = nil, container: String
  ) -> Bool {
    // The muxer writes other uncompressed formats with a tag that stands for another format.
    guard parameters.codecID != AV_CODEC_ID_RAWVIDEO || parameters.pixelFormat.hasTagInMOV else {
      return false
    }
    do throws(LibAVError) {
      let settings = Settings(container: container, movieTimescale: timescale)
      var writer = try MovieWriter(indexing: "memory.\(container)", upTo: 0, settings: settings)
      let track = try writer.addTrack(parameters, timescale: timescale)
      try writer.begin()
      if let packet { try writer.write(packet, track: track, pts: 0, dts: 0, duration: 1) }
      return true
    } catch { return false }
  }
}
