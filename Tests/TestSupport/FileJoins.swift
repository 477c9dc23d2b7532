// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore

/// Checks the contents of consecutive files by the frame numbers that the camera paints.
package struct FileJoins {
  /// The frame numbers that are missing between the first and the last.
  package private(set) var missing: [Int] = []
  /// The frame numbers that are repeated or out of order.
  package private(set) var repeated: [Int] = []
  /// The number of frames without a readable frame number.
  package private(set) var unreadable = 0
  /// The number of frames of each file.
  package private(set) var counts: [Int] = []
  /// The concatenated first audio channel of all files.
  package private(set) var audio: [Float] = []

  package var isWhole: Bool { missing.isEmpty && repeated.isEmpty && unreadable == 0 }

  /// Reads files in the order in which they were recorded.
  package init(_ paths: [String]) throws {
    var last: Int?
    for path in paths {
      let asset = try Asset(path: path)
      let numbers = try paintedNumbers(asset)
      counts.append(numbers.count)
      for number in numbers {
        guard let number else {
          unreadable += 1
          continue
        }
        if let last, number <= last {
          repeated.append(number)
        } else {
          if let last { missing += (last + 1)..<number }
          last = number
        }
      }
      guard let track = asset.audioTrack else { continue }
      var reader = try AudioReader(asset)
      audio += try reader.samples(from: 0, count: Int(track.sampleCount))[0]
    }
  }
}
