// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankLibAV
package import OvercrankLinuxSystem
import OvercrankMovieFormat

/// The byte locations of an asset's video packets in its file.
package struct PacketLayout {
  /// The asset's file, opened for reading.
  package let file: OpenFile
  /// The locations and the flags of the packets, in decode order.
  package let locations: [PacketLocation]

  /// Reads the layout from the index of a MOV or MP4 file, without reading the packets.
  ///
  /// Returns nil if a muxer must read the packets. A muxer must read them if they have properties
  /// that the index does not show, if it changes packets of this codec, or if the file's index
  /// differs from the asset's.
  package init?(_ asset: Asset) {
    guard asset.container == "mov", let track = asset.videoTrack,
      track.format.parameters.isCopiedUnread, let tables = SampleTables(of: asset.path)
    else { return nil }
    let opened = open(asset.path.systemPath, O_RDONLY | O_CLOEXEC)
    guard opened >= 0 else { return nil }
    let file = OpenFile(adopting: opened, path: asset.path)
    let index = track.format.index
    guard let demuxer = try? Demuxer(reopening: file, probes: false),
      demuxer.tracks.count == tables.plainTracks.count, tables.plainTracks.indices.contains(index),
      tables.plainTracks[index]
    else { return nil }
    let locations = demuxer.locations(ofTrack: index)
    let frames = track.frames
    guard locations.count == frames.entries.count + frames.hiddenPackets.count,
      locations.allSatisfy({
        $0.byteCount > 0 && $0.position >= 0
          && $0.position <= tables.byteCount - Int64($0.byteCount)
      })
    else { return nil }
    // If the decode times of all packets are equal, the file's index and the asset's index number
    // the packets alike.
    func agrees(_ number: Int, _ ticks: Int64?) -> Bool {
      locations.indices.contains(number) && locations[number].ticks == ticks
    }
    guard frames.entries.allSatisfy({ agrees($0.decodeIndex, $0.decodeTicks) }),
      frames.hiddenPackets.allSatisfy({ agrees($0.decodeIndex, $0.decodeTicks) })
    else { return nil }
    self.file = file
    self.locations = locations
  }
}

extension CodecParameters {
  /// Whether muxers for MOV and MP4 store the packets without parsing them.
  ///
  /// H.264 and HEVC byte streams are converted, and packets of some other codecs are parsed
  /// (libavformat, `ff_mov_write_packet`).
  fileprivate var isCopiedUnread: Bool {
    switch codecName {
    case "h264", "hevc": unitLengthSize != nil
    case "mjpeg", "ffv1", "prores": true
    case "rawvideo": ["yuyv422", "uyvy422"].contains(pixelFormat.name)
    default: false
    }
  }
}
