// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Reduces images to thumbnails by averaging blocks of pixels.
///
/// At the large reduction factors of thumbnails, the filters of libswscale take several times as
/// long.
enum ThumbnailReducer {
  /// The least reduction factor at which averaging blocks gives as good an image as a filter.
  private static let smallestFactor = 4

  /// Reduces an image by a whole factor, so that its sides have at most `side` pixels.
  ///
  /// - Returns: The reduced image. Nil if the factor would be less than 4, or if the pixel format
  ///   is not one of JPEG.
  /// - Throws: `CallFailure` if memory is exhausted.
  static func reduced(_ frame: MediaFrame, to side: Int) throws(CallFailure) -> MediaFrame? {
    let shifts: (x: Int, y: Int)
    switch frame.pixelFormat {
    case .yuvj420p: shifts = (1, 1)
    case .yuvj422p: shifts = (1, 0)
    default: return nil
    }
    let factor = (max(frame.width, frame.height) + side - 1) / side
    // Width and height must be even, because chroma is subsampled.
    let (width, height) = (frame.width / factor & ~1, frame.height / factor & ~1)
    guard factor >= smallestFactor, width > 0, height > 0 else { return nil }
    let result = try MediaFrame.video(
      width: width, height: height, pixelFormat: frame.pixelFormat)
    for plane in 0..<3 {
      guard let source = frame.planeData(plane), let target = result.planeData(plane) else {
        return nil
      }
      let (x, y) = plane == 0 ? (0, 0) : shifts
      reduce(
        UnsafePointer(source), frame.bytesPerRow(plane), into: target, result.bytesPerRow(plane),
        width: width >> x, height: height >> y, factor: factor)
    }
    return result
  }

  private static func reduce(
    _ source: UnsafePointer<UInt8>, _ sourceStride: Int,
    into target: UnsafeMutablePointer<UInt8>, _ targetStride: Int, width: Int, height: Int,
    factor: Int
  ) {
    // Every second row of a block is enough for its mean.
    let rows = stride(from: 0, to: factor, by: 2)
    let count = UInt32((factor + 1) / 2 * factor)
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: width) { sums in
      for y in 0..<height {
        sums.update(repeating: 0)
        for row in rows {
          var pixel = source + (y * factor + row) * sourceStride
          for x in 0..<width {
            var sum: UInt32 = 0
            for column in 0..<factor { sum &+= UInt32(pixel[column]) }
            sums[x] &+= sum
            pixel += factor
          }
        }
        let line = target + y * targetStride
        for x in 0..<width { line[x] = UInt8(truncatingIfNeeded: (sums[x] &+ count / 2) / count) }
      }
    }
  }
}
