// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// The conversion of a pane's frames to RGB; a class, because dictionaries cannot hold noncopyable
/// values.
final class PaneConverter {
  private var converter = FrameConverter(to: .bgra, isFullRange: true, quality: .fast)

  /// Returns the frame in BGRA.
  ///
  /// - Throws: `MediaError` with `.notConvertible`.
  func bgra(_ frame: MediaFrame) throws(MediaError) -> MediaFrame {
    do throws(LibAVError) { return try converter.convert(frame) } catch {
      throw MediaError(.notConvertible, "the frame cannot be shown: \(error)")
    }
  }
}
