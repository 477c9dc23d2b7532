// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore

/// The versions of the loaded FFmpeg libraries.
package enum LibraryVersions {
  /// The name and version of each library.
  package static var all: [LibraryVersion] {
    [
      LibraryVersion("libavformat", text(avformat_version())),
      LibraryVersion("libavcodec", text(avcodec_version())),
      LibraryVersion("libavutil", text(avutil_version())),
      LibraryVersion("libswscale", text(swscale_version())),
      LibraryVersion("libswresample", text(swresample_version())),
    ]
  }

  private static func text(_ version: UInt32) -> String {
    "\(version >> 16).\(version >> 8 & 0xFF).\(version & 0xFF)"
  }
}

/// The FFmpeg encoders that recordings, exports and stills need.
package enum RequiredEncoders {
  /// FFmpeg's names of the required encoders.
  package static let names = ["libx264", "mjpeg", "ffv1", "rawvideo", "png", "aac", "pcm_s16le"]

  /// The required encoders that are missing in the linked FFmpeg.
  package static var missing: [String] {
    names.filter { avcodec_find_encoder_by_name($0) == nil }
  }
}
