// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

extension MovieWriter {
  /// Whether a container can hold a track, as a trial in memory shows.
  ///
  /// libavformat's own answer, `avformat_query_codec`, is yes for codecs that its muxer refuses
  /// later: VP8 and Opus in MOV.
  ///
  /// - Parameters:
  ///   - parameters: The track.
  ///   - timescale: Ticks per second of its times.
  ///   - packet: One of its packets, for codecs whose packets the muxer must understand; nil to try
  ///     the header alone.
  ///   - container: `mov` or `mp4`.
  /// - Returns: False where the muxer refuses it.
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
