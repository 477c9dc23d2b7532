// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// The output file of an export: one video track, interleaved audio and copied tracks, and metadata.
struct ExportOutput: ~Copyable {
  private let path: String
  private let plan: ExportPlan
  private let asset: Asset
  private let properties: CompositionTrack?
  private let captureFrameRate: FrameRate?
  /// The metadata tags that identify the export.
  private var marks: [String: String]
  /// The note of the time map for the comment; nil without a map.
  private let note: TimeMapNote?
  private let audio: AudioExport?
  /// The copied tracks, with the samples that are not yet written.
  private var furtherTracks: FurtherTracks?
  let isCancelled: () -> Bool
  private var writer: MovieWriter?
  private var image: AnimatedImageWriter?
  private var endTicks: Int64 = 0
  private var videoTrack = 0
  private var audioTrack = 0
  /// The index of the first copied track.
  private var furtherTrack = 0
  private var timescale: Int32 = 1
  /// The decode time at which the other tracks are due: they are written before the first copied packet at
  /// or after this time.
  private var othersDue: Int64?

  /// Prepares the output file of an export plan.
  ///
  /// The output gets the rotation and the language of `properties`, the composition's video track.
  init(
    path: String, plan: ExportPlan, asset: Asset, properties: CompositionTrack?,
    settings: ExportSettings, audio: AudioExport?, isCancelled: @escaping () -> Bool
  ) {
    self.path = path
    self.plan = plan
    self.asset = asset
    self.properties = properties
    captureFrameRate = settings.captureFrameRate
    var marks: [String: String] = [:]
    if let shard = plan.shard {
      marks = [
        ShardFile.key: shard.file.stamp(shard.digest), FileSeal.key: FileSeal.placeholder,
      ]
    } else if let digest = settings.digest {
      marks = [ExportDigest.key: digest.description]
    }
    self.marks = marks
    note = plan.timeMap?.note(isFinal: !plan.synthesizesFrames)
    self.audio = audio
    furtherTracks = plan.furtherTracks
    self.isCancelled = isCancelled
  }

  /// The container of a movie; nil for an animated image.
  var container: MovieContainer? { MovieContainer(rawValue: plan.container) }

  /// Creates the file for a video track with these codec parameters.
  ///
  /// The rotation is written as metadata, unless the frames were already rotated. Packets can be
  /// copied from the `sources` by ``copy(_:from:pts:dts:duration:description:runBytes:)``. `endTicks` is
  /// the end of an animated image in ticks, or that of a movie whose last packets are hidden; nil for other
  /// movies. `descriptions` are the sample descriptions of the source;
  /// empty to make one from the parameters.
  mutating func begin(
    _ parameters: CodecParameters, timescale: Int32, isUpright: Bool = false,
    endTicks: Int64? = nil,
    copying sources: [OpenFile] = [],
    descriptions: [SampleDescription] = []
  ) throws {
    if let format = AnimatedImageFormat(rawValue: plan.container) {
      image = try AnimatedImageWriter(path: path, format: format, parameters: parameters)
      self.endTicks = endTicks ?? 0
      return
    }
    var settings = MovieWriter.Settings(
      container: container ?? .mov, movieTimescale: timescale)
    // A shard needs no tags of the source, because the joined movie gets them. A tag could also
    // contain text that is mistaken for the shard's own digest (`FileSeal`).
    settings.metadata = plan.shard != nil ? marks : tags().merging(marks) { $1 }
    settings.chapters = plan.chapters.chapters.map { ($0.title, $0.start, $0.end) }
    settings.chapterTimescale = plan.chapters.timescale
    // Space for the index is reserved at the start of the file, so that a player can start before
    // it has loaded the whole movie.
    settings.frontIndexCount =
      Int(clamping: plan.frameCount) + (audio?.track.maximumPackets ?? 0)
      + (furtherTracks?.sampleCount ?? 0)
    let references = furtherTracks?.references(hasAudio: audio != nil)
    var writer = try MovieWriter(path: path, settings: settings, copying: sources)
    videoTrack = try writer.addTrack(
      parameters, timescale: timescale,
      metadata: properties?.language.map { ["language": $0] } ?? [:],
      displayMatrix: isUpright
        ? [] : Self.displayMatrix(asset.videoTrack?.format, properties),
      sideData: plan.sideData,
      descriptions: descriptions, references: references?.video ?? [], endTicks: endTicks)
    if let track = audio?.track {
      audioTrack = try writer.addTrack(
        track.parameters, timescale: track.timescale, metadata: track.metadata,
        descriptions: track.descriptions, references: references?.audio ?? [])
    }
    let copied = furtherTracks?.described(hasAudio: audio != nil) ?? []
    furtherTrack = copied.map { writer.addTrack(copying: $0) }.first ?? 0
    try writer.begin()
    self.writer = consume writer
    self.timescale = timescale
  }

  /// Returns the tags of the source that the output keeps, together with the capture frame rate.
  private func tags() -> [String: String] {
    // The metadata of a recording describes frames by index and time. It is copied only if both are
    // unchanged.
    var tags = asset.metadata.filter {
      !Self.ownKeys.contains($0.key) && (plan.keepsRecording || $0.key != RecordingInfo.key)
    }
    let comment = tags[TimeMapNote.key].map(TimeMapNote.removed)
    tags[TimeMapNote.key] = note?.following(comment) ?? comment
    if tags[TimeMapNote.key] == "" { tags[TimeMapNote.key] = nil }
    if !plan.ratesGiveTimes {
      // Readers would take the ratio of the rates for the speed.
      tags[Asset.captureRateKey] = nil
      tags[Asset.androidRateKey] = nil
      tags[Asset.appleIntentKey] = nil
    } else if asset.taggedCaptureFrameRate == nil,
      let rate = captureFrameRate ?? asset.captureFrameRate?.rate
    {
      tags[Asset.captureRateKey] = rate.description
      tags[Asset.androidRateKey] = "\(rate.doubleValue)"
      // This tag describes the times of the source, which the export may have changed.
      tags[Asset.appleIntentKey] = nil
    }
    return tags
  }

  /// Returns the display matrix of the source, or a new one if the composition sets another
  /// rotation.
  static func displayMatrix(_ format: TrackFormat?, _ properties: CompositionTrack?) -> [Int32] {
    let rotation = properties?.rotation ?? 0
    guard rotation != format?.rotation else { return format?.displayMatrix ?? [] }
    let (cosine, sine): (Int32, Int32) =
      switch rotation {
      case 90: (0, 1)
      case 180: (-1, 0)
      case 270: (0, -1)
      default: (1, 0)
      }
    // A display matrix has 16.16 fixed-point numbers, except for the last column, which has 2.30.
    return [
      cosine << 16, sine << 16, 0, -sine << 16, cosine << 16, 0, 0, 0, 1 << 30,
    ]
  }

  /// Throws an error if the export was cancelled.
  func checkCancelled() throws(MediaError) {
    if isCancelled() { throw .exportCancelled }
  }

  /// Writes the samples of the other tracks that start before a video packet, then the video packet.
  ///
  /// `description` is the index of the packet's sample description.
  mutating func write(
    _ packet: Packet, pts: Int64, dts: Int64, duration: Int64, description: Int = 0
  ) throws {
    try checkCancelled()
    guard image == nil else {
      try image?.write(packet, at: pts)
      return
    }
    try writeOthers(upTo: dts)
    try writer?.write(
      packet, track: videoTrack, pts: pts, dts: dts, duration: duration, description: description)
  }

  /// Writes a video packet that is copied from a source.
  ///
  /// The other tracks are written only every half second, so that long ranges of packets can be copied at
  /// once.
  mutating func copy(
    _ location: PacketLocation, from source: Int, pts: Int64, dts: Int64, duration: Int64,
    description: Int, runBytes: () -> Int64
  ) throws {
    try checkCancelled()
    if audio != nil || furtherTracks?.tracks.isEmpty == false, dts >= othersDue ?? dts {
      try writeOthers(upTo: dts)
      othersDue = dts + Int64(timescale) / 2
    }
    try writer?.copy(
      location, from: source, track: videoTrack, pts: pts, dts: dts, duration: duration,
      description: description, runBytes: runBytes)
  }

  /// Writes the remaining samples of the other tracks, the index and the time map.
  ///
  /// `planned` is the map that was planned; nil to write none.
  mutating func finish(timeMap: OutputTimeMap?, planned: OutputTimeMap?) throws {
    try image?.finish(at: endTicks)
    try writeOthers(upTo: nil)
    try writer?.finish()
    guard let timeMap, writer != nil else { return }
    try timeMap.attach(to: path, track: videoTrack, keepsNote: timeMap.map == planned?.map)
  }

  private mutating func writeOthers(upTo ticks: Int64?) throws {
    try writeAudio(upTo: ticks)
    while let next = try furtherTracks?.next(before: ticks, timescale: timescale) {
      var sample = MovieFileWriter.Sample(
        track: furtherTrack + next.track, ticks: next.sample.ticks, duration: next.sample.duration,
        isKeyFrame: true)
      (sample.description, sample.count) = (next.sample.description, next.sample.count)
      try writer?.append(next.bytes, sample)
    }
  }

  private mutating func writeAudio(upTo ticks: Int64?) throws {
    guard let audio else { return }
    while let next = try audio.next(isCancelled) {
      // The product of a 64-bit and a 32-bit number always fits in 128 bits.
      if let ticks,
        Int128(next.pts) * Int128(timescale) >= Int128(ticks) * Int128(audio.track.timescale)
      {
        return
      }
      try writer?.write(
        next.packet, track: audioTrack, pts: next.pts, dts: next.pts, duration: next.duration)
      audio.drop()
    }
  }

  /// The metadata keys that describe the source file itself.
  ///
  /// They are not copied.
  static let ownKeys: Set<String> = [
    "major_brand", "minor_version", "compatible_brands", "encoder", ExportDigest.key,
    ShardFile.key, FileSeal.key, RepeatedFrameTag.key, SynthesizedFrames.key,
  ]
}
