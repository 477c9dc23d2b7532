// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import OvercrankMediaCore

/// Reads the samples of a track in order, either decoded or as stored in the file.
///
/// ```swift
/// let asset = try Asset(path: "take.mov")
/// var reader = try AssetReader(asset, asset.tracks[0], as: .images(.bgra))
/// while let sample = try reader.nextSample() { print(sample.presentationTimeStamp) }
/// ```
///
/// The counterpart of `AVAssetReader` with one `AVAssetReaderTrackOutput`. A reader may be used by
/// one thread only. Calls block this thread until the disk and the decoder have delivered. In a
/// task, use ``Asset/samples(of:as:in:undecodable:)`` instead, which suspends the task.
public struct AssetReader: ~Copyable {
  /// The form in which samples are returned.
  public enum Output: Hashable, Sendable {
    /// The bytes as stored in the file, in decode order.
    ///
    /// For a time range, these are the samples that are presented in the range, and the samples
    /// that are needed to decode those.
    case stored
    /// Decoded frames in presentation order.
    ///
    /// For a time range, the first frame is the one that is shown at the start of the range.
    case images(PixelFormat)
    /// Decoded audio in blocks of up to 4096 samples.
    ///
    /// For a time range, exactly the samples in the range are returned.
    case audio
  }

  private let samples: any SampleProducer

  /// Opens a track.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - track: One of the ``Asset/tracks`` of the asset.
  ///   - output: The form in which samples are returned.
  ///   - timeRange: The part of the asset to read. Nil reads the whole track. Parts of the range
  ///     that the track does not cover are skipped.
  ///   - undecodable: The policy for frames that cannot be decoded.
  /// - Throws: `MediaError` with `.invalidData` if the track cannot be read in the requested form,
  ///   or if the file cannot be read.
  public init(
    _ asset: Asset, _ track: AssetTrack, as output: Output = .stored,
    in timeRange: TimeRange? = nil, undecodable: UndecodableFramePolicy = .stop
  ) throws(MediaError) {
    samples = try Self.samples(asset, track, output, timeRange, undecodable)
  }

  /// The next sample, or nil at the end of the track or the time range.
  ///
  /// - Throws: `MediaError` with `.invalidData` for a sample that cannot be decoded, or with
  ///   `.readFailed` after a disk error.
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

extension Asset {
  /// The samples of a track in order, either decoded or as stored in the file.
  ///
  /// Waiting for a sample suspends the task.
  ///
  /// ```swift
  /// for try await sample in asset.samples(of: asset.tracks[0], as: .images(.bgra)) { … }
  /// ```
  ///
  /// Each iteration reads the file from the start of the range. It throws the errors of
  /// ``AssetReader``, and `.cancelled` if its task is cancelled.
  ///
  /// - Parameters:
  ///   - track: One of the asset's ``tracks``.
  ///   - output: The form in which samples are returned.
  ///   - timeRange: The part of the asset to read. Nil reads the whole track.
  ///   - undecodable: The policy for frames that cannot be decoded.
  /// - Returns: The samples. Each iterator is used by one task at a time.
  public func samples(
    of track: AssetTrack, as output: AssetReader.Output = .stored, in timeRange: TimeRange? = nil,
    undecodable: UndecodableFramePolicy = .stop
  ) -> some AsyncSequence<AssetSample, MediaError> & Sendable {
    AssetSampleSequence(
      asset: self, track: track, output: output, timeRange: timeRange, undecodable: undecodable)
  }
}

/// The samples of a track.
///
/// Each iterator is used by one task at a time.
private struct AssetSampleSequence: AsyncSequence, Sendable {
  let asset: Asset
  let track: AssetTrack
  let output: AssetReader.Output
  let timeRange: TimeRange?
  let undecodable: UndecodableFramePolicy

  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let feed: SampleFeed

    mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(MediaError) -> AssetSample? { try await feed.next() }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(feed: SampleFeed(self)) }
}

/// Reads samples on a dispatch queue, because reading blocks its thread.
private final class SampleFeed: Sendable {
  private let request: AssetSampleSequence
  private let queue = DispatchQueue(label: "asset samples")
  // Accessed only on the dispatch queue.
  private nonisolated(unsafe) var samples: (any SampleProducer)?

  init(_ request: AssetSampleSequence) { self.request = request }

  func next() async throws(MediaError) -> AssetSample? {
    if Task.isCancelled {
      throw MediaError(.cancelled, "the reading of \(request.asset.path) was cancelled")
    }
    let result: Result<AssetSample?, MediaError> = await withCheckedContinuation { continuation in
      queue.async {
        continuation.resume(returning: Result { () throws(MediaError) in try self.read() })
      }
    }
    return try result.get()
  }

  private func read() throws(MediaError) -> AssetSample? {
    if let samples { return try samples.next() }
    let opened = try AssetReader.samples(
      request.asset, request.track, request.output, request.timeRange, request.undecodable)
    samples = opened
    return try opened.next()
  }
}
