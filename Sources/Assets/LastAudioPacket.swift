// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Measures the last packet of an audio track in a file that does not state the packet's duration.
enum LastAudioPacket {
  /// Decodes the end of a track, and returns the number of samples in its last packet.
  ///
  /// Some containers state the duration of a packet only by the start of the next one.
  ///
  /// - Parameters:
  ///   - index: The index of the file.
  ///   - track: The track.
  ///   - ticks: The time of the last packet, in ticks of the track.
  /// - Returns: The number of samples per channel; nil if the packet cannot be decoded.
  static func sampleCount(of index: AssetIndex, _ track: TrackFormat, at ticks: Int64) -> Int64? {
    // If the packet cannot be decoded, it counts as empty.
    try? decodedCount(index, track, ticks)
  }

  private static func decodedCount(
    _ index: AssetIndex, _ track: TrackFormat, _ ticks: Int64
  ) throws(CallFailure) -> Int64? {
    var demuxer = try Demuxer(opening: index.path)
    demuxer.corrections = index.corrections
    // If the container cannot seek, the error is ignored, and reading begins at the start of the
    // file.
    try? demuxer.seek(track: track.index, toPacketBefore: ticks)
    var last: [Packet] = []
    while let packet = try demuxer.nextPacket() {
      guard packet.trackIndex == track.index, !packet.isCorrupt else { continue }
      last = last.suffix(1) + [packet]
    }
    var decoder = try Decoder(
      parameters: track.parameters, subject: index.path, timeBase: track.timeBase, threadCount: 1)
    // Some decoders need the packet before the last one. Only the samples decoded from the last
    // packet are counted.
    var count: Int64 = 0
    for packet in last {
      count = 0
      try decoder.send(packet)
      while let frame = try decoder.nextFrame() {
        count += Int64(frame.samples()?.first?.count ?? 0)
      }
    }
    try decoder.send(nil)
    while let frame = try decoder.nextFrame() { count += Int64(frame.samples()?.first?.count ?? 0) }
    return count > 0 ? count : nil
  }
}
