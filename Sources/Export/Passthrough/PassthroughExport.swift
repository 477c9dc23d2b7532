// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankAssets
package import OvercrankLibAV
package import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

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
    /// The index of the file among those that packets are copied from.
    let file: Int
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
    let (copied, files) = storedSources()
    // Encoded frames need another description than that of the source.
    let stored = renderer == nil ? try JoinedDescriptions(assets, in: output.container) : nil
    try output.begin(
      renderer?.parameters ?? track.format.parameters, timescale: plan.timescale,
      endTicks: plan.hidesEnd ? plan.endTicks : nil, copying: files,
      descriptions: stored?.descriptions ?? [])
    let sources = assets.map(PacketCursor.init)
    let total = Int64(plan.frames.count)
    var rendered: (part: Int, packets: [Packet])?
    for (position, frame) in plan.frames.enumerated() {
      var packet: Packet
      var description = 0
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
          throw CallFailure("encode a cut of", assets[frame.source].path, code: -5)
        }
        packet = next
      } else if !frame.startsAnew, let source = copied[frame.source] {
        let location = source.locations[frame.packet]
        try output.copy(
          location.isKeyFrame && !frame.isKeyFrame ? location.withoutKeyFlag() : location,
          from: source.file, pts: frame.pts, dts: frame.dts, duration: frame.duration,
          description: try stored?.index(of: location.position, in: frame.source) ?? 0,
          runBytes: { runBytes(from: position, source.locations) })
        progress(Int64(position) + 1, total)
        continue
      } else {
        guard let read = try sources[frame.source].packet(at: frame.packet) else {
          throw MediaError(
            .unsupportedSource,
            "\(assets[frame.source].path) ends before packet \(frame.packet) of its index",
            recovery: "check that the movie plays to its end, or use the other export mode")
        }
        // Some sources mark packets as sync samples although they need earlier packets. The mark is
        // removed, so that players do not start decoding there.
        packet =
          read.isKeyFrame && !frame.isKeyFrame ? try read.withoutKeyFlag() : read
        description = try stored?.index(of: read.position, in: frame.source) ?? 0
        if frame.startsAnew {
          packet = try packet.startingAnew(assets[frame.source].videoTrack) ?? packet
        }
      }
      try output.write(
        packet, pts: frame.pts, dts: frame.dts, duration: frame.duration, description: description)
      progress(Int64(position) + 1, total)
    }
    return failed
  }

  /// Returns the sources whose packets can be copied by their byte locations.
  ///
  /// The entry is nil for a source whose packets cannot be copied in this way.
  private func storedSources() -> (sources: [Source?], files: [OpenFile]) {
    var files: [OpenFile] = []
    let sources = assets.enumerated().map { number, asset -> Source? in
      guard copiesRanges, let layout = PacketLayout(asset),
        plan.frames.allSatisfy({
          $0.source != number || layout.locations.indices.contains($0.packet)
        })
      else { return nil }
      files.append(layout.file)
      return Source(file: files.count - 1, locations: layout.locations)
    }
    return (sources, files)
  }

  /// Returns the number of bytes of the next packets that are contiguous in the source and in the
  /// output.
  ///
  /// The count ends after half a second, because samples of other tracks may follow there in the output, or once it
  /// reaches ``RangeCopier/shareableRunBytes``.
  private func runBytes(from position: Int, _ locations: [PacketLocation]) -> Int64 {
    let first = plan.frames[position]
    let start = locations[first.packet].position
    var end = start
    for frame in plan.frames[position...] {
      guard frame.source == first.source, frame.part == nil, !frame.startsAnew,
        frame.dts - first.dts < Int64(plan.timescale) / 2, locations[frame.packet].position == end,
        end - start < RangeCopier.shareableRunBytes
      else { break }
      end += Int64(locations[frame.packet].byteCount)
    }
    return end - start
  }
}

extension Packet {
  /// Returns an HEVC packet at which decoding starts anew in the middle of a stream.
  ///
  /// Nil if it needs no change.
  func startingAnew(_ track: VideoTrack?) throws(CallFailure) -> Packet? {
    let size = track?.format.parameters.unitLengthSize
    var isChanged = false
    let packet = try changingUnits(from: size, to: size) { unit in
      guard let changed = HEVCUnit.startingAnew(unit) else { return unit }
      isChanged = true
      return changed
    }
    return isChanged ? packet : nil
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

/// The sample descriptions of the video tracks of several assets, for one track.
struct JoinedDescriptions {
  private(set) var descriptions: [SampleDescription] = []
  private var sources: [(source: SourceDescriptions, indices: [Int], path: String)] = []

  /// Joins the descriptions of assets.
  ///
  /// Returns nil unless all assets have the output's container and packets that it stores unchanged, so
  /// that their descriptions are still right. The track then needs a new description.
  ///
  /// - Throws: `MediaError` if that would have to describe packets with different descriptions.
  init?(_ assets: [Asset], in container: MovieContainer?) throws(MediaError) {
    for asset in assets {
      guard asset.container == "mov", let track = asset.videoTrack,
        track.format.parameters.isStoredUnchanged,
        let source = SourceDescriptions(ofTrack: track.format.index, in: asset.path),
        source.container == container
      else {
        if let changing = assets.first(where: { $0.videoTrack?.changesDescription == true }) {
          throw Self.refusal(changing)
        }
        return nil
      }
      let earlier = descriptions.count
      let indices = source.descriptions.map { index(of: $0.namingPlayableHEVC, earlier: earlier) }
      sources.append((source, indices, asset.path))
    }
  }

  /// Adds a description, unless there is an equal one, and returns its index.
  ///
  /// One of the `earlier` assets' descriptions that differs only in its bit rate stands for both, without
  /// the rate.
  private mutating func index(of description: SampleDescription, earlier: Int) -> Int {
    if let index = descriptions.firstIndex(of: description) { return index }
    let plain = description.withoutBitRates
    if let index = descriptions[..<earlier].firstIndex(where: { $0.withoutBitRates == plain }) {
      descriptions[index] = plain
      return index
    }
    descriptions.append(description)
    return descriptions.count - 1
  }

  private static func refusal(_ asset: Asset) -> MediaError {
    MediaError(
      .unsupportedSource,
      "the codec parameters of the video change inside \(asset.path), so that one track cannot hold "
        + "copies of all frames",
      recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
  }

  /// The index of the description of a packet at a byte offset in an asset.
  ///
  /// - Throws: `CallFailure` if it is unknown.
  func index(of position: Int64?, in source: Int) throws(CallFailure) -> Int {
    let (stored, indices, path) = sources[source]
    guard let index = stored.index(at: position) else {
      throw CallFailure("find the sample description of a packet of", path, code: -22)
    }
    return indices[index]
  }
}

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
