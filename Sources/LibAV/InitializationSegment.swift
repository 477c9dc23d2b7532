// SPDX-License-Identifier: Apache-2.0

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
    var end = 0
    while end + 8 <= all.count, !all[(end + 4)..<(end + 8)].elementsEqual("moof".utf8) {
      let size = all[end..<(end + 4)].reduce(0) { $0 << 8 | Int($1) }
      guard size >= 8 else { break }
      end += size
    }
    guard end > 0, end <= all.count else {
      throw LibAVError("write the header of", path, code: -22)
    }
    return Array(all[..<end])
  }
}

extension InitializationSegment {
  /// What a file begins with before anything is known of its tracks: a movie without any, so that
  /// a file that is to grow can be opened from the start.
  package static let placeholder: [UInt8] = {
    let brand: UInt32 = 0x7174_2020  // "qt  "
    var file = BoxBytes()
    file.box(0x6674_7970) { box in  // ftyp
      for number in [brand, 0x200, brand] { box.append(number) }
    }
    file.box(BoxType.movie) { box in
      box.fullBox(0x6D76_6864, version: 0, flags: 0) { box in  // mvhd
        // Two times, the timescale, the duration, the speed, the loudness.
        for number in [0, 0, 1_000_000, 0, 0x1_0000] as [UInt32] { box.append(number) }
        box.append(UInt16(0x100))
        box.append(bytes: Array(repeating: 0, count: 10))
        for number in [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000] as [UInt32] {
          box.append(number)
        }
        box.append(bytes: Array(repeating: 0, count: 24))
        box.append(UInt32(1))
      }
    }
    return file.bytes
  }()
}
