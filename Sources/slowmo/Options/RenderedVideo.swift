// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The video codecs of an export with `--fps`.
enum RenderedVideo: String, CaseIterable, ExpressibleByArgument {
  case h264, hevc, ffv1, mjpeg

  func encoding(_ settings: EncoderSettings) -> VideoEncoding {
    switch self {
    case .h264: .h264(settings)
    case .hevc: .hevc(settings)
    case .ffv1: .ffv1
    case .mjpeg: .mjpeg
    }
  }
}

/// The audio codecs of `--audio-codec` in an export.
enum RenderedAudio: String, CaseIterable, ExpressibleByArgument {
  case auto, aac, pcm

  /// The audio codec of the output; nil keeps the codec of the source.
  var codec: AudioCodec? {
    switch self {
    case .auto: nil
    case .aac: .aac
    case .pcm: .pcm
    }
  }
}
