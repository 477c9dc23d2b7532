// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// Writes the frames of a passthrough plan with their planned times.
struct PassthroughExport {
  let plan: PassthroughPlan
  let assets: [Asset]
  let track: VideoTrack
  let crf: Int
  let undecodable: UndecodableFramePolicy
  /// Whether packets are copied from file to file, without reading them, where that is possible.
  let copiesRanges: Bool

  /// A source whose packets are copied from file to file by their byte locations.
  private struct Source {
    let media: StoredMedia
    let locations: [PacketLocation]
  }

  /// Writes the packets.
  ///
  /// Returns the frames at cuts that could not be decoded.
  func write(
    to output: inout ExportOutput, _ progress: (Int64, Int64) -> Void
  ) throws -> [ExportReport.UndecodableFrame] {
    let renderer =
      plan.encodedCount > 0 ? try BoundaryRenderer(track, crf: crf, undecodable) : nil
    var failed: [ExportReport.UndecodableFrame] = []
    let copied = storedSources()
    try output.begin(
      renderer?.parameters ?? track.format.parameters, timescale: plan.timescale,
      copying: copied.compactMap(\.?.media))
    let sources = assets.map(PacketCursor.init)
    let total = Int64(plan.frames.count)
    var rendered: (part: Int, packets: [Packet])?
    for (position, frame) in plan.frames.enumerated() {
      let packet: Packet
      if let part = frame.part {
        if rendered?.part != part {
          let numbers = plan.frames[position...].prefix { $0.part == part }.compactMap(\.number)
          let made = try renderer?.packets(of: numbers, assets[frame.source]) {
            try output.checkCancelled()
          }
          failed += try (made?.undecodable ?? []).map {
            try ExportReport.UndecodableFrame(assets[frame.source], $0)
          }
          rendered = (part, made?.packets.reversed() ?? [])
        }
        guard let next = rendered?.packets.popLast() else {
          throw LibAVError("encode a cut of", assets[frame.source].path, code: -5)
        }
        packet = next
      } else if let source = copied[frame.source] {
        let location = source.locations[frame.packet]
        try output.copy(
          location.isKeyFrame && !frame.isKeyFrame ? location.withoutKeyFlag() : location,
          of: source.media, pts: frame.pts, dts: frame.dts, duration: frame.duration,
          runBytes: { runBytes(from: position, source.locations) })
        progress(Int64(position) + 1, total)
        continue
      } else {
        guard let stored = try sources[frame.source].packet(at: frame.packet) else {
          throw MediaError(
            .unsupportedSource,
            "\(assets[frame.source].path) ends before packet \(frame.packet) of its index",
            recovery: "check that the movie plays to its end, or use the other export mode")
        }
        // Some sources mark packets as sync samples although they need earlier packets. The mark is
        // removed, so that players do not start decoding there.
        packet =
          stored.isKeyFrame && !frame.isKeyFrame ? try stored.withoutKeyFlag() : stored
      }
      try output.write(packet, pts: frame.pts, dts: frame.dts, duration: frame.duration)
      progress(Int64(position) + 1, total)
    }
    return failed
  }

  /// Returns the sources whose packets can be copied by their byte locations.
  ///
  /// The entry is nil for a source whose packets cannot be copied in this way.
  private func storedSources() -> [Source?] {
    assets.enumerated().map { number, asset in
      guard copiesRanges, let layout = PacketLayout(asset),
        plan.frames.allSatisfy({
          $0.source != number || layout.locations.indices.contains($0.packet)
        }),
        let media = try? StoredMedia(layout.file)
      else { return nil }
      return Source(media: media, locations: layout.locations)
    }
  }

  /// Returns the number of bytes of the next packets that are contiguous in the source and in the
  /// output.
  ///
  /// The count ends after half a second, because audio may follow there in the output, or once it
  /// reaches ``MovieWriter/shareableRunBytes``.
  private func runBytes(from position: Int, _ locations: [PacketLocation]) -> Int64 {
    let first = plan.frames[position]
    let start = locations[first.packet].position
    var end = start
    for frame in plan.frames[position...] {
      guard frame.source == first.source, frame.part == nil,
        frame.dts - first.dts < Int64(plan.timescale) / 2, locations[frame.packet].position == end,
        end - start < MovieWriter.shareableRunBytes
      else { break }
      end += Int64(locations[frame.packet].byteCount)
    }
    return end - start
  }
}

extension ExportReport.UndecodableFrame {
  /// Creates the description of an undecodable frame.
  init(_ asset: Asset, _ index: Int) throws {
    self.init(
      path: asset.path, index: index,
      time: try asset.videoTrack?.frames.time(ofFrame: Int64(index)) ?? .zero)
  }
}
