// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
package import OvercrankLibAV
public import OvercrankMediaCore

/// A frame to show in one refresh of the screen.
public struct PlayerFrame: Sendable {
  /// The path of the file that the frame is from.
  public let path: String
  /// The index of the frame in presentation order, from 0.
  public let index: Int
  /// The composition time of the refresh, in seconds.
  public let time: Rational
  /// True if this is the frame that is due at ``time``; false if the due frame is not decoded yet.
  ///
  /// If false, this is the last decoded frame that playback passed in the same segment or, if there
  /// is none, the frame on screen.
  public let isCurrent: Bool
  /// True if the image was synthesized for exactly ``time``, from the captured frame ``index`` and
  /// the next captured frame; false if it was captured.
  ///
  /// Frames are synthesized only during playback, if ``PlayerSettings/sampling`` selects it. Do not
  /// measure on such a frame.
  public let isSynthesized: Bool
  /// The clockwise rotation for display, in degrees: 0, 90, 180 or 270.
  public let rotation: Int
  /// The image to show, in its stored size, without rotation.
  package let image: MediaFrame
  /// The captured frame, also if ``image`` is synthesized.
  let captured: MediaFrame

  /// Converts the frame to pixels, in its stored size and without rotation.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale does not support.
  public func pixelBuffer(as format: PixelFormat = .bgra) throws(MediaError) -> PixelBuffer {
    try image.pixelBuffer(as: format)
  }

  /// Encodes the frame as a PNG file in RGB, rotated for display.
  ///
  /// A synthesized frame is never written: the file then shows the captured frame ``index``.
  ///
  /// - Returns: The bytes of the file.
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale does not support.
  public func pngData() throws(MediaError) -> [UInt8] {
    var converter = FrameConverter(to: .rgb24, isFullRange: true)
    do throws(CallFailure) {
      let shown = FrameRotation(clockwiseDegrees: rotation, isMirrored: false) ?? .none
      return try converter.convert(captured).rotated(by: shown).pngBytes()
    } catch {
      throw MediaError(
        .notConvertible, "frame \(index) of \(path) cannot be written as PNG: \(error)")
    }
  }
}
