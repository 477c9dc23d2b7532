// SPDX-License-Identifier: Apache-2.0
import LibAV
import MediaTiming

/// Turns a recording that was written in fragments into a plain movie of the same packets.
enum PlainMovie {
  /// Rewrites the file beside itself, then lets the new one take its name.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - pictureEnd: Where the last picture ends, in ticks of its track.
  ///   - soundEnd: Where the sound ends, in samples: the last block may hold more than belongs.
  ///   - metadata: The tags of the plain file.
  /// - Returns: The number of packets of pictures in the plain file.
  /// - Throws: `LibAVError` or `MovieFile.CreationError`; the file in fragments is then left as
  ///   it was, and can be played.
  static func rewrite(
    _ path: String, pictureEnd: Int64, soundEnd: Int64, metadata: [String: String]
  ) throws -> Int64 {
    var source = try Demuxer(opening: path)
    var file = try MovieFile(creating: path, overwrites: true, grows: false)
    var settings = MovieWriter.Settings(container: "mov", movieTimescale: 1_000_000)
    settings.metadata = metadata
    var writer = try MovieWriter(path: file.writtenPath, settings: settings)
    var tracks: [Int: Track] = [:]
    for track in source.tracks where track.kind != .other {
      guard let timescale = Int32(exactly: track.timeBase.denominator) else { continue }
      tracks[track.index] = Track(
        target: try writer.addTrack(
          track.parameters, timescale: timescale, metadata: track.metadata),
        isVideo: track.kind == .video, end: track.kind == .video ? pictureEnd : soundEnd)
    }
    try writer.begin()
    var pictures: Int64 = 0
    // The packets of a fragmented track need not carry their duration, so one always waits.
    while let packet = try source.nextPacket() {
      guard let track = tracks[packet.trackIndex] else { continue }
      if let before = track.waiting, let next = packet.dts, let time = before.dts {
        try writer.write(before, track, duration: next - time)
      }
      if track.isVideo { pictures += 1 }
      tracks[packet.trackIndex]?.waiting = packet
    }
    for track in tracks.values.sorted(by: { $0.target < $1.target }) {
      guard let last = track.waiting, let time = last.pts else { continue }
      try writer.write(last, track, duration: max(1, track.end - time))
    }
    try writer.finish()
    try file.finish()
    return pictures
  }

  /// How many pictures can be read from a file, up to where it breaks off.
  static func readablePictures(_ path: String) -> Int64 {
    guard var source = try? Demuxer(opening: path),
      let track = source.tracks.first(where: { $0.kind == .video })
    else { return 0 }
    var count: Int64 = 0
    // A file that cannot be read further has been read as far as it goes.
    while let packet = try? source.nextPacket() {
      if packet.trackIndex == track.index, !packet.isCorrupt { count += 1 }
    }
    return count
  }

  fileprivate struct Track {
    let target: Int
    let isVideo: Bool
    let end: Int64
    var waiting: Packet?
  }
}

extension MovieWriter {
  fileprivate mutating func write(
    _ packet: Packet, _ track: PlainMovie.Track, duration: Int64
  ) throws(LibAVError) {
    guard let pts = packet.pts, let dts = packet.dts else { return }
    try write(packet, track: track.target, pts: pts, dts: dts, duration: duration)
  }
}
