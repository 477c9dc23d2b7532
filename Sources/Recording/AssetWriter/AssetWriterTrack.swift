// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// A track of the file of an ``AssetWriter``, which makes the file's samples from appended data.
///
/// Used by one thread at a time.
protocol AssetWriterTrack: AnyObject {
  /// An upper limit for the number of samples per second that the track stores.
  var samplesPerSecond: Int { get }
  /// The end of the last sample in ticks of the track.
  var endTicks: Int64 { get }
  /// Converts the time of an appended sample from microseconds to ticks of the track.
  func ticks(atMicroseconds time: Int64) -> Int64

  /// The description of the track for the file.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - bytes: The first sample of the track, or nil if it has not arrived.
  /// - Returns: The description.
  /// - Throws: `CallFailure` if the parameters are unknown, or the file's container does not support the
  ///   codec.
  func head(
    of path: String, _ bytes: UnsafeRawBufferPointer?
  ) throws(CallFailure) -> FragmentedMovieWriter.Track

  /// Processes an appended sample, and stores all encoded samples that are complete by then.
  ///
  /// - Returns: `.taken`, or `.corrupt` or `.unshowable` for a sample that cannot be stored.
  func take(
    _ bytes: UnsafeRawBufferPointer, at ticks: Int64, _ store: AssetTrackStore
  ) throws(CallFailure) -> FrameOutcome

  /// Stores the samples that are still in the track's encoder.
  func finish(_ store: AssetTrackStore) throws(CallFailure)
}

/// A closure that stores a sample, given its bytes, its time and duration in ticks of the track,
/// and whether it is a key frame.
typealias AssetTrackStore = (
  _ bytes: UnsafeRawBufferPointer, _ ticks: Int64, _ duration: Int64, _ isKeyFrame: Bool
) throws(CallFailure) -> Void

/// A video track of an asset writer.
///
/// One tick is one microsecond.
final class VideoAssetTrack: AssetWriterTrack {
  private var pipeline: any VideoPipeline
  /// A copy of the pipeline's codec parameters.
  ///
  /// The pipeline cannot be read while it stores a sample, but the header is made while it stores
  /// the first one.
  private var parameters: CodecParameters?
  private let video: AssetTrackSource.Video
  private let period: Int64
  private(set) var endTicks: Int64 = 0

  init(_ video: AssetTrackSource.Video) throws(CallFailure) {
    self.video = video
    pipeline = try video.makePipeline()
    parameters = pipeline.parameters
    period = TakeTimeline.microseconds(ofPeriods: 1, at: video.frameRate)
  }

  var samplesPerSecond: Int { Int(min(video.frameRate.doubleValue, 10_000)) }

  func ticks(atMicroseconds time: Int64) -> Int64 { time }

  func head(
    of path: String, _ bytes: UnsafeRawBufferPointer?
  ) throws(CallFailure) -> FragmentedMovieWriter.Track {
    guard let parameters else {
      throw CallFailure("find", "the headers of a video track", code: -22)
    }
    return try FragmentedMovieWriter.Track(
      TrackMuxer.Format(
        parameters, in: MovieContainer(recording: path), timescale: 1_000_000),
      first: FirstSample(ticks: 0), packet: Packet(copying: bytes.map(Array.init) ?? placeholder),
      path: path)
  }

  /// A placeholder that the muxer accepts as a sample of this track.
  private var placeholder: [UInt8] {
    switch (video.plan.codec, video.delivery.layout) {
    case (.h264, _): [0, 0, 0, 1, 0x65, 0x88, 0x80]
    case (.rawVideo, .raw(let format, let bytesPerRow)):
      // The muxer checks the size of uncompressed frames, so the placeholder has the size of a real
      // frame.
      Array(
        repeating: 0,
        count: MediaFrame.packedByteCount(
          width: video.delivery.width, height: video.delivery.height, pixelFormat: format,
          bytesPerRow: bytesPerRow) ?? 16)
    default: Array(repeating: 0, count: 16)
    }
  }

  func take(
    _ bytes: UnsafeRawBufferPointer, at ticks: Int64, _ store: AssetTrackStore
  ) throws(CallFailure) -> FrameOutcome {
    try pipeline.take(bytes, at: ticks) { (bytes, sample, parameters) throws(CallFailure) in
      self.parameters = parameters
      endTicks = sample.time &+ period
      try store(bytes, sample.time, period, sample.isKeyFrame)
    }
  }

  func finish(_ store: AssetTrackStore) throws(CallFailure) {
    try pipeline.finish { (bytes, sample, parameters) throws(CallFailure) in
      self.parameters = parameters
      endTicks = sample.time &+ period
      try store(bytes, sample.time, period, sample.isKeyFrame)
    }
  }
}

/// A track of PCM samples, which are encoded.
///
/// One tick is the duration of one audio sample.
final class SampleAssetTrack: AssetWriterTrack {
  private var blocks: TakeAudioEncoder
  private let format: AudioFormat
  /// The tolerance in samples: a block that begins this near the end of the previous block follows
  /// it without a gap.
  private let tolerance: Int64

  init(_ format: AudioFormat, _ codec: AudioCodec) throws(CallFailure) {
    self.format = format
    blocks = try TakeAudioEncoder(
      codec: codec, sampleRate: format.sampleRate, channelCount: format.channelCount)
    tolerance = Int64(format.sampleRate) / 100
  }

  var samplesPerSecond: Int { TakeAudioEncoder.packetsPerSecond(atRate: format.sampleRate) }
  var endTicks: Int64 { blocks.sampleCount }

  func ticks(atMicroseconds time: Int64) -> Int64 {
    TakeAudioTrack.sample(atMicroseconds: time, rate: format.sampleRate)
  }

  func head(
    of path: String, _ bytes: UnsafeRawBufferPointer?
  ) throws(CallFailure) -> FragmentedMovieWriter.Track {
    try blocks.head(of: path)
  }

  /// Creates a WAV file for the track, whose header has 64-bit sizes if it needs them (`RF64`).
  func makeWave(
    _ file: OpenFile, metadata: [String: String]
  ) throws(CallFailure) -> FormatWriter {
    try FormatWriter(
      path: file.path, descriptor: file.descriptor, muxer: "wav", parameters: blocks.parameters,
      timescale: Int32(clamping: format.sampleRate), options: ["rf64": "auto"], metadata: metadata)
  }

  func take(
    _ bytes: UnsafeRawBufferPointer, at ticks: Int64, _ store: AssetTrackStore
  ) throws(CallFailure) -> FrameOutcome {
    guard !bytes.isEmpty, bytes.count % format.bytesPerSample == 0 else { return .corrupt }
    let count = bytes.count / format.bytesPerSample
    let end = blocks.sampleCount + Int64(blocks.restCount)
    let gap = ticks &- end
    var skipped = 0
    if end == 0 || abs(gap) > tolerance {
      guard gap > -Int64(count) else { return .corrupt }
      skipped = Int(max(0, -gap))
      try fill(upTo: ticks, store)
    }
    blocks.keep(
      (0..<format.channelCount).map {
        Array(format.samples(ofChannel: $0, in: bytes).dropFirst(skipped))
      })
    try encodeBlocks(store)
    return .taken
  }

  /// Stores silence from the end of the samples so far up to the sample with the index `end`.
  private func fill(upTo end: Int64, _ store: AssetTrackStore) throws(CallFailure) {
    var missing = end &- blocks.sampleCount &- Int64(blocks.restCount)
    while missing > 0 {
      let count = min(missing, Int64(blocks.blockLength))
      blocks.keep(
        Array(
          repeating: Array(repeating: 0, count: Int(count)), count: format.channelCount))
      try encodeBlocks(store)
      missing -= count
    }
  }

  private func encodeBlocks(_ store: AssetTrackStore) throws(CallFailure) {
    while blocks.restCount >= blocks.blockLength {
      try blocks.encode(blocks.blockLength)
      try write(blocks.readyPackets(), store)
    }
  }

  func finish(_ store: AssetTrackStore) throws(CallFailure) {
    if blocks.restCount > 0 { try blocks.encode(blocks.restCount) }
    try write(blocks.flush(), store)
  }

  private func write(_ packets: [Packet], _ store: AssetTrackStore) throws(CallFailure) {
    for packet in packets {
      guard let time = packet.pts else { continue }
      let duration = packet.duration
      try packet.withBytes { (bytes) throws(CallFailure) in try store(bytes, time, duration, true) }
    }
  }
}

/// A track of compressed audio, which is copied.
///
/// One tick is the duration of one audio sample.
final class PacketAssetTrack: AssetWriterTrack {
  private let packets: SourceFormat.AudioPackets
  private(set) var endTicks: Int64 = 0

  init(_ packets: SourceFormat.AudioPackets) { self.packets = packets }

  var samplesPerSecond: Int { packets.sampleRate / packets.samplesPerPacket + 1 }

  func ticks(atMicroseconds time: Int64) -> Int64 {
    TakeAudioTrack.sample(atMicroseconds: time, rate: packets.sampleRate)
  }

  func head(
    of path: String, _ bytes: UnsafeRawBufferPointer?
  ) throws(CallFailure) -> FragmentedMovieWriter.Track {
    try FragmentedMovieWriter.Track(
      TrackMuxer.Format(
        CodecParameters(packets), in: MovieContainer(recording: path),
        timescale: Int32(clamping: packets.sampleRate)),
      first: FirstSample(ticks: 0),
      packet: Packet(copying: bytes.map(Array.init) ?? Array(repeating: 0, count: 16)), path: path)
  }

  func take(
    _ bytes: UnsafeRawBufferPointer, at ticks: Int64, _ store: AssetTrackStore
  ) throws(CallFailure) -> FrameOutcome {
    guard !bytes.isEmpty, ticks >= 0 else { return .corrupt }
    endTicks = ticks &+ Int64(packets.samplesPerPacket)
    try store(bytes, ticks, Int64(packets.samplesPerPacket), true)
    return .taken
  }

  func finish(_ store: AssetTrackStore) {}
}
