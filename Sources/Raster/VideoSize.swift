// SPDX-License-Identifier: Apache-2.0

/// A size in whole pixels.
public struct VideoSize: Hashable, Sendable, CustomStringConvertible {
  /// The width in pixels.
  public var width: Int
  /// The height in pixels.
  public var height: Int

  /// Creates a size in pixels.
  public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

  /// The size as text, such as `1280x720`.
  public var description: String { "\(width)x\(height)" }

  package var transposed: VideoSize { VideoSize(width: height, height: width) }

  /// The size after a clockwise rotation by a multiple of 90 degrees.
  package func rotated(by degrees: Int) -> VideoSize { degrees % 180 == 0 ? self : transposed }
}
