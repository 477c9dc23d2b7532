// SPDX-License-Identifier: Apache-2.0

import Overcrank

extension Output {
  /// Prints notes about the faults of a movie.
  static func notes(of asset: Asset) {
    for text in asset.notes { note("\(asset.path): \(text)") }
  }

  /// Warns if some of the frames that a command measures were synthesized.
  ///
  /// Returns the number of synthesized frames.
  @discardableResult
  static func warnOfSynthesizedFrames(_ indices: some Sequence<Int>, of asset: Asset) -> Int {
    guard let synthesized = asset.synthesizedFrames else { return 0 }
    let count = indices.count { synthesized.confidenceTenths(ofFrame: $0) != nil }
    if count > 0 {
      warning(
        "\(asset.path): \(count) of the measured frames are synthesized; measure the movie that "
          + "they were made from")
    }
    return count
  }
}
