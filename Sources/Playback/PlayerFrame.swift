// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
package import OvercrankLibAV
public import OvercrankMediaCore

/// A frame for one refresh of the screen.
public struct PlayerFrame: Sendable {
  /// The path of the file that the frame is from.
  public let path: String
  /// The index of the frame in presentation order, from 0.
  public let index: Int
  /// The composition time of the refresh, in seconds.
  public let time: Rational
  /// True if this is the frame of that time, and false if that one is not decoded yet.
  ///
  /// This is then the last decoded frame that playback passed in the same segment or, if there is
  /// none, the one on screen.
  public let isCurrent: Bool
  /// True if the image is synthesized for exactly ``time``, from the captured frame ``index`` and the
  /// next one; false if it is captured.
  ///
  /// Only with ``PlayerSettings/sampling``, and only during playback. Do not measure on such a frame.
  public let isSynthesized: Bool
  /// The clockwise rotation for display, in degrees: 0, 90, 180 or 270.
  public let rotation: Int
  /// The image to show, in its stored size, without rotation.
  package let image: MediaFrame
  /// The decoded frame; ``image`` unless that is synthesized.
  let captured: MediaFrame

  /// Converts the frame to pixels, in its stored size and without rotation.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale does not support.
  public func pixelBuffer(as format: PixelFormat = .bgra) throws(MediaError) -> PixelBuffer {
    try image.pixelBuffer(as: format)
  }
}
