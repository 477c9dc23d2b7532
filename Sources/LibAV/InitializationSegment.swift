// SPDX-License-Identifier: Apache-2.0

package import OvercrankMovieFormat

/// What a MOV file in fragments begins with: all that is known before its first fragment.
package struct InitializationSegment {
  /// The first sample of a track, since the head follows from some of it.
  package struct First {
    /// When it is decoded and shown; sound begins before 0 where its encoder needs a start.
    package let ticks: Int64
    /// Its bytes, where the codec's headers are not all that the head must say.
    package let packet: Packet

    package init(ticks: Int64, packet: Packet) {
      self.ticks = ticks
      self.packet = packet
    }
  }

  package struct Track {
    package let parameters: CodecParameters
    /// Ticks per second of its times.
    package let timescale: Int32
    package let first: First

    package init(_ parameters: CodecParameters, timescale: Int32, first: First) {
      self.parameters = parameters
      self.timescale = timescale
      self.first = first
    }
  }

  package let tracks: [Track]
  private let settings: MovieWriter.Settings

  package init(tracks: [Track], settings: MovieWriter.Settings) {
    self.tracks = tracks
    self.settings = settings
  }

  /// The tracks as the writer of fragments needs them.
  package var layouts: [FragmentedMovieWriter.Track] {
    tracks.map {
      FragmentedMovieWriter.Track(
        encoding: SampleEncoding($0.parameters), firstTicks: $0.first.ticks)
    }
  }

  /// The boxes before the first fragment: `ftyp` and `moov`.
  ///
  /// - Throws: `LibAVError` where the container cannot hold a track.
  package func bytes(path: String) throws(LibAVError) -> [UInt8] {
    var settings = settings
    settings.fragmentMicroseconds = Int64(Int32.max)
    var writer = try MovieWriter(indexing: path, upTo: 0, settings: settings)
    for track in tracks { _ = try writer.addTrack(track.parameters, timescale: track.timescale) }
    try writer.begin()
    for (index, track) in tracks.enumerated() {
      try writer.write(
        track.first.packet, track: index, pts: track.first.ticks, dts: track.first.ticks,
        duration: 1)
    }
    // Of what it made the fragment is not wanted.
    let all = try writer.finishIndex()
    let head = Box.list(in: all, from: 0, to: all.count).prefix { $0.type != BoxType.fragment }
    guard let end = head.last.map({ Int($0.end) }) else {
      throw LibAVError("write the header of", path, code: -22)
    }
    return Array(all[..<end])
  }
}
