// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// The FFmpeg encoders that recordings, exports and stills need.
package enum RequiredEncoders {
  /// FFmpeg's names of the required encoders.
  package static let names = ["libx264", "mjpeg", "ffv1", "rawvideo", "png", "aac", "pcm_s16le"]

  /// The required encoders that are missing in the linked FFmpeg.
  package static var missing: [String] {
    names.filter { avcodec_find_encoder_by_name($0) == nil }
  }
}
