// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import Synchronization

/// An asset of a player, with the capture times of its frames.
final class PlayerAsset: Sendable {
  let asset: Asset
  private let captureTimes = Mutex<[MediaTime?]?>(nil)

  init(_ asset: Asset) { self.asset = asset }

  /// Returns the capture time of a frame.
  ///
  /// The first call reads the file's frame records.
  func captureTime(ofFrame index: Int) -> MediaTime? {
    let times = captureTimes.withLock { times in
      if let times { return times }
      let read = asset.frameTimingRows().map(\.captureTime)
      times = read
      return read
    }
    if times.indices.contains(index), let time = times[index] { return time }
    guard let rate = asset.captureFrameRate?.rate else { return nil }
    return MediaTime(exactly: Rational(Int64(index)) / rate.framesPerSecond)
  }
}
