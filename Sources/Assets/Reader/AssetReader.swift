// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Reads the samples of a track in order, decoded or as the file stores them.
///
/// ```swift
/// let asset = try Asset(path: "take.mov")
/// var reader = try AssetReader(asset, asset.tracks[0], as: .images(.bgra))
/// while let sample = try reader.nextSample() { print(sample.presentationTimeStamp) }
/// ```
///
/// The counterpart of `AVAssetReader` with one `AVAssetReaderTrackOutput`. It belongs to one thread,
/// which waits for the disk and the decoder; ``Asset/samples(of:as:in:undecodable:)`` suspends a task
/// instead.
public struct AssetReader: ~Copyable {
  /// What samples are given as.
  public enum Output: Hashable, Sendable {
    /// The bytes as the file stores them, in the order of decoding.
    ///
    /// Of a time range these are the samples that are presented in it, and those that decoding them
    /// needs.
    case stored
    /// Decoded frames in order of presentation; the first of a time range is the one that is shown
    /// at its start.
    case images(PixelFormat)
    /// Decoded audio in blocks of up to 4096 samples, exactly those of the time range.
    case audio
  }

  private let samples: any SampleProducer

  /// Opens a track.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - track: One of its ``Asset/tracks``.
  ///   - output: What samples are given as.
  ///   - timeRange: The time of the asset to read; all of the track where nil. What of it the track
  ///     does not have is left out.
  ///   - undecodable: What is given for a frame that cannot be decoded.
  /// - Throws: `MediaError` with `.invalidData` for a track that cannot be decoded as asked, or for a
  ///   file that cannot be read.
  public init(
    _ asset: Asset, _ track: AssetTrack, as output: Output = .stored,
    in timeRange: TimeRange? = nil, undecodable: UndecodableFramePolicy = .stop
  ) throws(MediaError) {
    samples = try Self.samples(asset, track, output, timeRange, undecodable)
  }

  /// The next sample, or nil at the end of the track or the time range.
  ///
  /// - Throws: `MediaError` with `.invalidData` for a sample that cannot be decoded, `.readFailed`
  ///   where the disk fails.
  public mutating func nextSample() throws(MediaError) -> AssetSample? { try samples.next() }

  static func samples(
    _ asset: Asset, _ track: AssetTrack, _ output: Output, _ timeRange: TimeRange?,
    _ undecodable: UndecodableFramePolicy
  ) throws(MediaError) -> any SampleProducer {
    switch output {
    case .stored:
      if let video = track.video { return try StoredFrames(asset, track, video, timeRange) }
      return try StoredPackets(asset, track, timeRange)
    case .images(let format):
      guard let video = track.video else {
        throw .invalid(asset.path, "has no frames that can be decoded in track \(track.id)")
      }
      return try DecodedFrames(asset, track, video, timeRange, format, undecodable)
    case .audio:
      guard let audio = track.audio else {
        throw .invalid(asset.path, "has no audio that can be decoded in track \(track.id)")
      }
      return try DecodedAudio(asset, track, audio, timeRange)
    }
  }
}

/// What gives the samples of a track in order, on one thread at a time.
protocol SampleProducer: AnyObject {
  /// The next sample, or nil at the end.
  func next() throws(MediaError) -> AssetSample?
}
