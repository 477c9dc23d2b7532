// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// The open decoders of a player: one for playing and one for scrubbing per asset.
///
/// Only the decoding thread uses it.
final class FrameDecoder {
  private struct Kind: Hashable {
    let asset: Int
    let purpose: DecodeJob.Purpose
  }

  /// A reader in a class, because dictionaries cannot hold noncopyable values.
  private final class OpenReader {
    var reader: FrameReader
    var stamp = 0

    init(_ asset: Asset, _ purpose: DecodeJob.Purpose) throws(MediaError) {
      let reader = try FrameReader(
        asset, wanted: nil, threadCount: purpose == .scrubbing ? 1 : 0)
      self.reader = consume reader
    }
  }

  private var readers: [Kind: OpenReader] = [:]
  /// The assets whose decoder with several threads was opened in advance.
  private var prepared: Set<Int> = []
  private var stamp = 0
  /// The number of packets sent to decoders that are now closed.
  private var closedPacketCount = 0
  /// The greatest number of open decoders.
  private static let maximumReaders = 6

  /// Decodes a job, and passes each frame to `body`.
  ///
  /// - Parameters:
  ///   - job: The frames to decode.
  ///   - asset: The job's asset.
  ///   - shouldContinue: Asked after each decoded frame. Returns false to stop.
  ///   - body: Receives the frames in ascending order, preceded by the neighbors that were decoded
  ///     on the way. Returns true to continue and false to stop.
  /// - Throws: `MediaError` from opening or reading the file.
  func run(
    _ job: DecodeJob, of asset: Asset, while shouldContinue: () -> Bool,
    _ body: (_ index: Int, _ image: MediaFrame) -> Bool
  ) throws(MediaError) {
    let wanted = Set(job.frames)
    try reader(Kind(asset: job.asset, purpose: job.purpose), asset).reader.readFrames(
      in: job.range, wanted: wanted.contains, neighborCount: job.neighborCount,
      shouldContinue: shouldContinue, body)
  }

  /// Opens the multithreaded decoder in advance, so that the first seek far from a key frame does
  /// not wait for it.
  ///
  /// It tries only once for each asset. Errors are ignored here: the first job reports them.
  func prepare(_ index: Int, _ asset: Asset) {
    guard prepared.insert(index).inserted, readers.count < Self.maximumReaders else { return }
    _ = try? reader(Kind(asset: index, purpose: .playing), asset)
  }

  /// The number of decoders that are open.
  var openCount: Int { readers.count }

  /// The number of packets sent to decoders so far.
  var sentPacketCount: Int {
    readers.values.reduce(closedPacketCount) { $0 + $1.reader.sentPacketCount }
  }

  private func reader(_ kind: Kind, _ asset: Asset) throws(MediaError) -> OpenReader {
    stamp += 1
    if let open = readers[kind] {
      open.stamp = stamp
      return open
    }
    if readers.count >= Self.maximumReaders,
      let oldest = readers.min(by: { $0.value.stamp < $1.value.stamp })
    {
      closedPacketCount += oldest.value.reader.sentPacketCount
      readers[oldest.key] = nil
    }
    let open = try OpenReader(asset, kind.purpose)
    open.stamp = stamp
    readers[kind] = open
    return open
  }
}
