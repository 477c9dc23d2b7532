// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankLinuxSystem

/// The file formats of animated images.
package enum AnimatedImageFormat: String, Hashable, Sendable {
  case gif
  case webp

  /// The format that a file name extension selects.
  ///
  /// Nil for any other extension, and without an extension.
  package init?(path: String) {
    guard let extent = path.fileExtension else { return nil }
    self.init(rawValue: extent)
  }

  /// FFmpeg's name of the encoder for this format.
  package var encoderName: String {
    switch self {
    case .gif: "gif"
    case .webp: "libwebp_anim"
    }
  }

  /// The number of ticks per second for the times in the file.
  package var timescale: Int32 {
    switch self {
    case .gif: 100
    case .webp: 1_000
    }
  }

  /// The highest frame rate at which browsers play an animation at its real speed.
  ///
  /// Browsers show frames of 10 ms or less for 100 ms.
  package var highestFrameRate: Int64 {
    switch self {
    case .gif: 50
    case .webp: 90
    }
  }

  /// Whether the linked FFmpeg contains the encoder for this format.
  package var isSupported: Bool { avcodec_find_encoder_by_name(encoderName) != nil }
}
