// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster

/// An object found by a search, with coordinates in pixels.
protocol DetectedObject {
  var center: Point { get }
  /// Returns the object in coordinates of a larger image, which contains the searched image at this
  /// offset.
  func moved(byX x: Int, y: Int) -> Self
}

/// A schedule of searches of whole frames, or of a fixed part of each frame, with changing effort.
///
/// The rate bounds how many searches a second are due.
struct FramePasses<Effort> {
  /// The shortest interval between two passes, in microseconds.
  private let interval: Int64
  /// The repeating sequence of efforts of the searches.
  private let efforts: [Effort]
  /// The least number of frames between two passes while objects are followed.
  private let fewestFrames: Int
  private var frameCount = 0
  private var passCount = 0
  private var last: (microseconds: Int64, frame: Int)?

  init(_ efforts: [Effort], rate: FrameRate, fewestFrames: Int = 0) {
    (self.efforts, self.fewestFrames) = (efforts, fewestFrames)
    interval = 1_000_000 * Int64(rate.denominator) / Int64(rate.numerator)
  }

  /// Counts a frame, and returns the effort of the pass that is due in this frame.
  ///
  /// - Parameters:
  ///   - microseconds: The time of the frame.
  ///   - isFollowing: Whether known objects are followed, so that parts of the frame are searched
  ///     anyway.
  /// - Returns: The effort; nil if no pass is due.
  mutating func next(at microseconds: Int64, isFollowing: Bool) -> Effort? {
    frameCount += 1
    if let last {
      // A negative interval means that the clock was restarted.
      let elapsed = microseconds - last.microseconds
      guard elapsed < 0 || elapsed >= interval else { return nil }
      guard !isFollowing || frameCount - last.frame > fewestFrames else { return nil }
    }
    last = (microseconds, frameCount)
    passCount += 1
    return efforts[(passCount - 1) % efforts.count]
  }
}

extension LumaImage {
  /// Searches a part of the image.
  ///
  /// - Returns: The objects, with coordinates in this image; none if the part has no pixel.
  func search<Object: DetectedObject>(
    _ part: PixelRect, _ read: (LumaImage) -> [Object]
  ) -> [Object] {
    let part = part.clamped(width: width, height: height)
    guard let crop = cropped(to: part) else { return [] }
    return read(crop).map { $0.moved(byX: part.x, y: part.y) }
  }

  /// The whole image.
  var area: PixelRect { PixelRect(x: 0, y: 0, width: width, height: height) }
}

extension Array where Element: DetectedObject {
  /// Returns the objects whose center is in an area; all objects if the area is nil.
  func centered(in area: PixelRect?) -> [Element] {
    guard let area else { return self }
    return filter { object in
      let (x, y) = (object.center.x - Double(area.x), object.center.y - Double(area.y))
      return x >= 0 && y >= 0 && x < Double(area.width) && y < Double(area.height)
    }
  }
}
