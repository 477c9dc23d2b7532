// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import Synchronization

/// An asset that a player plays, with the capture times of the asset's frames.
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
      let read = asset.captureTimes()
      times = read
      return read
    }
    return times.indices.contains(index) ? times[index] : nil
  }
}
