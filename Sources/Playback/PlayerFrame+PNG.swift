// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
public import OvercrankMediaCore

extension PlayerFrame {
  /// Encodes the frame as a PNG file in RGB, rotated for display.
  ///
  /// A synthesized frame is never written: the file then shows the captured frame ``index``.
  ///
  /// - Returns: The bytes of the file.
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale does not support.
  public func pngData() throws(MediaError) -> [UInt8] {
    var converter = FrameConverter(to: .rgb24, isFullRange: true)
    do throws(LibAVError) {
      let shown = FrameRotation(clockwiseDegrees: rotation, isMirrored: false) ?? .none
      return try converter.convert(captured).rotated(by: shown).pngBytes()
    } catch {
      throw MediaError(
        .notConvertible, "frame \(index) of \(path) cannot be written as PNG: \(error)")
    }
  }
}
