// SPDX-License-Identifier: Apache-2.0

import Overcrank

extension Output {
  /// Prints notes about the faults of a movie.
  static func notes(of asset: Asset) {
    notes(of: [asset])
  }

  /// Prints the notes about faults in movies, and returns them, each after the path of its movie.
  @discardableResult
  static func notes(of assets: [Asset]) -> [String] {
    let texts = assets.flatMap { asset in asset.notes.map { "\(asset.path): \($0)" } }
    for text in texts { note(text) }
    return texts
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
