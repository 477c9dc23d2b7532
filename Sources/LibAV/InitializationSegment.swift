// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
package import OvercrankMovieFormat

/// The initialization segment of a fragmented MOV file: `ftyp` and `moov`.
package struct InitializationSegment {
  /// The first sample of a track.
  ///
  /// The header depends on the time of this sample and sometimes on its bytes.
  package struct First {
    /// The decode time in ticks of the track.
    ///
    /// The time is negative for audio with encoder priming and for reordered video.
    package let ticks: Int64
    /// The presentation time in ticks of the track.
    package let presentationTicks: Int64
    /// The packet that contains the sample.
    ///
    /// For some codecs, the header needs data that only the packet contains.
    package let packet: Packet

    package init(ticks: Int64, presentationTicks: Int64? = nil, packet: Packet) {
      self.ticks = ticks
      self.presentationTicks = presentationTicks ?? ticks
      self.packet = packet
    }

    /// Creates a first sample from placeholder bytes, when the real sample is not available or not
    /// needed.
    ///
    /// - Throws: `LibAVError` if memory is unavailable.
    package init(ticks: Int64, placeholder: [UInt8]) throws(LibAVError) {
      let packet = placeholder.withUnsafeBytes { bytes in
        Result { () throws(LibAVError) in
          try Packet(copying: bytes, pts: ticks, dts: ticks, duration: 1, isKeyFrame: true)
        }
      }
      self.init(ticks: ticks, packet: try packet.get())
    }
  }

  package struct Track {
    package let parameters: CodecParameters
    /// The number of ticks per second for the track's times.
    package let timescale: Int32
    package let first: First
    /// The nine numbers of the display matrix; empty for none.
    package var displayMatrix: [Int32] = []
    /// The part of each frame that players should show; nil for the whole frame.
    package var cleanAperture: CleanApertureBox.Size?

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

  /// The tracks in the form that the fragment writer needs.
  package var layouts: [FragmentedMovieWriter.Track] {
    tracks.map {
      FragmentedMovieWriter.Track(
        encoding: SampleEncoding($0.parameters), firstTicks: $0.first.ticks)
    }
  }

  /// Returns the boxes before the first fragment: `ftyp` and `moov`.
  ///
  /// - Throws: `LibAVError` if the container does not support a track.
  package func bytes(path: String) throws(LibAVError) -> [UInt8] {
    var settings = settings
    settings.fragmentMicroseconds = Int64(Int32.max)
    var writer = try MovieWriter(indexing: path, upTo: 0, settings: settings)
    for track in tracks {
      _ = try writer.addTrack(
        track.parameters, timescale: track.timescale, displayMatrix: track.displayMatrix)
    }
    try writer.begin()
    for (index, track) in tracks.enumerated() {
      try writer.write(
        track.first.packet, track: index, pts: track.first.presentationTicks,
        dts: track.first.ticks,
        duration: 1)
    }
    // The muxer also writes a first fragment. That fragment is dropped, because
    // `FragmentedMovieWriter` writes the fragments of the file.
    var all = try writer.finishIndex()
    for (index, track) in tracks.enumerated() {
      if let aperture = track.cleanAperture {
        try MovieWriter.write(aperture, into: &all, track: index, path: path)
      }
    }
    let head = Box.list(in: all, from: 0, to: all.count).prefix { $0.type != BoxType.fragment }
    guard let end = head.last.map({ Int($0.end) }) else {
      throw LibAVError("write the header of", path, code: -22)
    }
    return Array(all[..<end])
  }
}
