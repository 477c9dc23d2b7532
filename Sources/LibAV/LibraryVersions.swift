// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// The versions of FFmpeg's libraries that the process runs with.
package enum LibraryVersions {
  /// Name and version of each library.
  package static var all: [(name: String, version: String)] {
    [
      ("libavformat", text(avformat_version())), ("libavcodec", text(avcodec_version())),
      ("libavutil", text(avutil_version())), ("libswscale", text(swscale_version())),
      ("libswresample", text(swresample_version())),
    ]
  }

  private static func text(_ version: UInt32) -> String {
    "\(version >> 16).\(version >> 8 & 0xFF).\(version & 0xFF)"
  }
}
