// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import OvercrankMediaCore

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
