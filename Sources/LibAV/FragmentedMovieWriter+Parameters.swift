// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore
package import OvercrankMovieFormat

extension FragmentedMovieWriter.Track {
  /// Describes a track for a recording.
  ///
  /// - Parameters:
  ///   - format: The format of the track.
  ///   - first: The times of the first sample in ticks.
  ///   - packet: The first packet, which some descriptions depend on, or one that the muxer accepts
  ///     instead of it.
  ///   - cleanAperture: The part of each frame that players should show; nil for the whole frame.
  ///   - path: The path of the file.
  /// - Throws: `CallFailure` if the container does not support the track.
  package init(
    _ format: TrackMuxer.Format, first: FirstSample, packet: Packet,
    cleanAperture: CleanApertureBox.Size? = nil, path: String
  ) throws(CallFailure) {
    var track = try TrackMuxer.describe(format, first: packet, path: path)
    if let cleanAperture {
      let box = CleanApertureBox.bytes(cleanAperture)
      guard track.descriptions.count == 1,
        track.descriptions[0].setVideoBox(box, CleanApertureBox.type)
      else { throw CallFailure("write the clean aperture of", path, code: CFFmpeg_EINVAL) }
    }
    self.init(track, encoding: SampleEncoding(format.parameters), first: first)
  }
}
