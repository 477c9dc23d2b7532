// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Converts the frames of a pane to RGB.
///
/// This type is a class because the converter is noncopyable and a dictionary cannot store
/// noncopyable values.
final class PaneConverter {
  private var converter = FrameConverter(to: .bgra, isFullRange: true, quality: .fast)

  /// Converts a frame to BGRA.
  ///
  /// - Throws: `MediaError` with `.notConvertible`.
  func bgra(_ frame: MediaFrame) throws(MediaError) -> MediaFrame {
    do throws(CallFailure) { return try converter.convert(frame) } catch {
      throw MediaError(.notConvertible, "the frame cannot be shown: \(error)")
    }
  }
}
