// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// Reads frames of one asset, which is opened at the first request.
///
/// Frames that are requested in descending order are decoded a group at a time and kept until they
/// are requested. In reverse playback, each group is therefore decoded only once, or once for each
/// ``keptByteLimit`` bytes of its frames.
final class FrameSource {
  private let asset: Asset
  /// The indices of the frames that will be requested, in order.
  private let requests: [Int]
  /// The index in `requests` of the current request.
  private var position = 0
  private let policy: UndecodableFramePolicy
  private let threadCount: Int
  private let isStopped: () -> Bool
  private var reader: FrameReader?
  /// Decoded frames that will be requested in descending order.
  ///
  /// The array itself is in ascending order.
  private(set) var kept: [(index: Int, frame: MediaFrame)] = []
  /// The range that the kept frames cover; a requested frame in the range that is not in `kept`
  /// cannot be decoded.
  private var keptRange = 0..<0
  private let keptByteLimit: Int

  /// The limit of memory for kept frames in bytes.
  ///
  /// It is enough for 340 frames of 1280x720, or 150 of 1920x1080, in 4:2:0.
  static let keptByteLimit = 480 << 20

  /// Creates a source for the frame indices `requests`, which will be requested in this order.
  ///
  /// `isStopped` returns true if the frames are no longer needed.
  init(
    _ asset: Asset, requests: [Int], _ policy: UndecodableFramePolicy, threadCount: Int,
    keptByteLimit: Int = FrameSource.keptByteLimit, isStopped: @escaping () -> Bool
  ) {
    (self.asset, self.requests, self.policy) = (asset, requests, policy)
    (self.threadCount, self.keptByteLimit) = (threadCount, keptByteLimit)
    self.isStopped = isStopped
  }

  /// The number of the asset's packets sent to the decoder so far.
  var sentPacketCount: Int { reader?.sentPacketCount ?? 0 }

  /// The frames of the asset that could not be decoded so far.
  var failed: [ExportReport.UndecodableFrame] {
    (reader?.undecodableFrames ?? []).compactMap {
      try? ExportReport.UndecodableFrame(asset, $0)
    }
  }

  /// Returns the image of a frame.
  ///
  /// Returns nil if the frame cannot be decoded, the policy is `skip`, and `mayLeaveOut` is true.
  func mediaFrame(at index: Int, mayLeaveOut: Bool) throws(MediaError) -> MediaFrame? {
    do throws(MediaError) { return try mediaFrame(at: index) } catch {
      guard policy == .skip, reader?.undecodableFrames.contains(index) == true else { throw error }
      return mayLeaveOut ? nil : try reader?.substitute(for: index)
    }
  }

  private func mediaFrame(at index: Int) throws(MediaError) -> MediaFrame {
    while position < requests.count, requests[position] != index { position += 1 }
    if keptRange.contains(index) {
      while let last = kept.last, last.index > index { kept.removeLast() }
      keptRange = keptRange.lowerBound..<index + 1
    } else {
      kept = []
      keptRange = 0..<0
      try open()
      try keepDescendingFrames(from: index)
    }
    if let last = kept.last, last.index == index { return last.frame }
    guard let image = try reader?.mediaFrame(at: index) else {
      throw MediaError(
        .invalidData, "\(asset.path) has no video", recovery: "choose a movie with video")
    }
    return image
  }

  private func open() throws(MediaError) {
    guard reader == nil else { return }
    var wanted = [Bool](repeating: false, count: asset.videoTrack?.frameCount ?? 0)
    for index in requests { wanted[index] = true }
    reader = try FrameReader(
      asset, wanted: wanted, threadCount: threadCount, undecodable: policy)
  }

  /// Decodes, in one pass, the frames of a group that will be requested in descending order from
  /// `index`.
  ///
  /// Keeps as many of the last frames as the memory limit allows. Keeps none if only one frame of
  /// the group will be requested.
  private func keepDescendingFrames(from index: Int) throws(MediaError) {
    let first = asset.videoTrack?.frames.keyFrame(atOrBefore: index) ?? 0
    var (lowest, end) = (index, position)
    while end < requests.count, requests[end] <= lowest, requests[end] >= first {
      lowest = requests[end]
      end += 1
    }
    guard lowest < index else { return }
    let wanted = Set(requests[position..<end])
    var byteCount = 0
    try reader?.readFrames(
      in: lowest...index, wanted: wanted.contains, shouldContinue: { !isStopped() }
    ) { index, frame in
      kept.append((index, frame))
      byteCount += frame.byteCount
      while byteCount > keptByteLimit, kept.count > 1 {
        byteCount -= kept.removeFirst().frame.byteCount
      }
      return true
    }
    if isStopped() { throw .exportCancelled }
    keptRange = (kept.first?.index ?? index)..<index + 1
  }
}
