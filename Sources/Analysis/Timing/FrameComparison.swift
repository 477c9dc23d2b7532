// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// Decodes all frames of a track, and compares each frame with the frame before it.
struct FrameComparison {
  /// The difference of each frame to the frame before it; nil for the first frame, and if one of
  /// the two frames cannot be decoded.
  private(set) var differences: [FrameDifference?]
  /// The mean luma of each horizontal strip, by frame; empty for a frame that was not measured.
  ///
  /// Only the first frames are included, as many as ``LightFlicker`` analyzes.
  private(set) var strips: [[Double]]
  /// The indices of the frames that cannot be decoded.
  private(set) var undecodable: [Int]

  /// Decodes the frames once, in order.
  ///
  /// - Throws: `MediaError` if the file cannot be read.
  init(
    of asset: Asset, _ track: VideoTrack, _ progress: (_ frame: Int) -> Void
  ) throws(MediaError) {
    let count = track.frameCount
    var differences = [FrameDifference?](repeating: nil, count: count)
    var strips = [[Double]](repeating: [], count: min(count, LightFlicker.largestCount))
    var isDecoded = [Bool](repeating: false, count: count)
    if count > 0 {
      var reader = try FrameReader(asset, undecodable: .skip)
      var converter = FrameConverter(to: .gray8, isFullRange: true)
      // Up to three consecutive frames before this one; emptied at a frame that cannot be compared.
      var recent: [LumaPlane] = []
      var lastIndex = -1
      try reader.readFrames(in: 0...count - 1, wanted: { _ in true }) { index, frame in
        isDecoded[index] = true
        progress(index + 1)
        guard let plane = LumaPlane(frame, &converter) else { return true }
        if strips.indices.contains(index) {
          strips[index] = plane.stripBrightness(LightFlicker.stripCount)
        }
        if lastIndex != index - 1 || recent.last?.hasSize(of: plane) != true { recent = [] }
        lastIndex = index
        if let last = recent.last { differences[index] = FrameDifference(plane, after: last) }
        if recent.count == 3, let before = differences[index - 2]?.largest,
          let middle = differences[index - 1]?.largest, let after = differences[index]?.largest,
          middle <= RepeatedFrames.codingError.upperBound,
          min(before, after) > RepeatedFrames.codingError.lowerBound
        {
          differences[index - 1]?.around = FrameDifference(plane, after: recent[0]).largest
        }
        recent = Array((recent + [plane]).suffix(3))
        return true
      }
    }
    self.differences = differences
    self.strips = strips
    undecodable = isDecoded.indices.filter { !isDecoded[$0] }
  }
}
