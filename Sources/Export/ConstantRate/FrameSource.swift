// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// A frame reader of one asset, opened at first use.
final class FrameSource {
  private let asset: Asset
  private let wanted: [Bool]
  private let policy: UndecodableFramePolicy
  private let threadCount: Int
  private var reader: FrameReader?

  init(_ asset: Asset, wanted: [Bool], _ policy: UndecodableFramePolicy, threadCount: Int) {
    self.asset = asset
    self.wanted = wanted
    self.policy = policy
    self.threadCount = threadCount
  }

  /// The frames that could not be decoded.
  var failed: [ExportReport.UndecodableFrame] {
    (reader?.undecodableFrames ?? []).compactMap {
      try? ExportReport.UndecodableFrame(asset, $0)
    }
  }

  /// Returns the image of a frame; nil if it cannot be decoded, the policy is `skip`, and
  /// `mayLeaveOut` is true.
  func mediaFrame(at index: Int, mayLeaveOut: Bool) throws(MediaError) -> MediaFrame? {
    do throws(MediaError) { return try mediaFrame(at: index) } catch {
      guard policy == .skip, reader?.undecodableFrames.contains(index) == true else { throw error }
      return mayLeaveOut ? nil : try reader?.substitute(for: index)
    }
  }

  private func mediaFrame(at index: Int) throws(MediaError) -> MediaFrame {
    if reader == nil {
      reader = try FrameReader(
        asset, wanted: wanted, threadCount: threadCount, undecodable: policy)
    }
    guard let image = try reader?.mediaFrame(at: index) else {
      throw MediaError(
        .invalidData, "\(asset.path) has no video", recovery: "choose a movie with video")
    }
    return image
  }
}
