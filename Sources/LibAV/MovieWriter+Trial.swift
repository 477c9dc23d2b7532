// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

extension MovieWriter {
  /// Whether a container supports a track.
  ///
  /// To test this, the track is muxed into memory.
  ///
  /// `avformat_query_codec` is not enough, because it accepts codecs that the muxer rejects later,
  /// such as VP8 and Opus in MOV.
  ///
  /// - Parameters:
  ///   - parameters: The codec parameters of the track.
  ///   - timescale: Ticks per second of the track's times.
  ///   - packet: A packet of the track, for codecs whose packets the muxer parses. Nil tests only
  ///     the header.
  ///   - container: `mov` or `mp4`.
  /// - Returns: True if the muxer accepts the track, false if it rejects the track.
  package static func accepts(
    _ parameters: CodecParameters, timescale: Int32, packet: Packet? = nil, container: String
  ) -> Bool {
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
