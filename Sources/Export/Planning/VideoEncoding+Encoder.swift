// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

extension VideoEncoding {
  /// libavcodec's name of the encoder.
  var encoderName: String {
    switch self {
    case .h264: "libx264"
    case .hevc: "libx265"
    case .ffv1, .mjpeg: codec.rawValue
    case .gif: AnimatedImageFormat.gif.encoderName
    case .webp: AnimatedImageFormat.webp.encoderName
    }
  }

  /// The format of an animated image; nil for a movie.
  var animatedImage: AnimatedImageFormat? {
    switch self {
    case .gif: .gif
    case .webp: .webp
    case .h264, .hevc, .ffv1, .mjpeg: nil
    }
  }

  /// Whether the encoder returns all frames in one packet at the end.
  var isOnePacket: Bool { animatedImage == .webp }

  /// The constant rate factor of the encoder; nil for encoders without one.
  var crf: Int? {
    switch self {
    case .h264(let settings), .hevc(let settings): settings.crf
    case .ffv1, .mjpeg, .gif, .webp: nil
    }
  }

  /// Whether players require an even width and height.
  var needsEvenSides: Bool {
    switch self {
    case .h264, .hevc: true
    case .ffv1, .mjpeg, .gif, .webp: false
    }
  }

  /// Returns the pixel format of the output.
  ///
  /// H.264 and HEVC use 4:2:0 with 8 or 10 bits, which most players support. FFV1 uses the format
  /// closest to the source's, with its alpha channel if `keepsAlpha` is true.
  func pixelFormat(for source: LibAVPixelFormat, keepsAlpha: Bool) -> LibAVPixelFormat {
    switch self {
    case .h264(let settings):
      portableFormat(
        for: source, keepsDepth: [nil, "high10", "high422", "high444"].contains(settings.profile))
    case .hevc(let settings):
      portableFormat(for: source, keepsDepth: [nil, "main10"].contains(settings.profile))
    case .mjpeg: source.isWideChroma ? .yuvj422p : .yuvj420p
    case .gif, .webp: .bgra
    case .ffv1:
      Encoder.nearestPixelFormat(to: source, forCodec: "ffv1", keepsAlpha: keepsAlpha) ?? .yuv420p
    }
  }

  private func portableFormat(
    for source: LibAVPixelFormat, keepsDepth: Bool
  ) -> LibAVPixelFormat {
    guard source.depth > 8, keepsDepth, let format = LibAVPixelFormat(named: "yuv420p10le")
    else { return .yuv420p }
    return format
  }

  /// Sets the encoder's options.
  ///
  /// `crf`, unless nil, replaces the constant rate factor of the settings.
  func configure(_ video: inout Encoder.VideoSettings, crf: Double?) {
    switch self {
    case .h264(let settings): video.options = settings.options
    case .hevc(let settings):
      video.options = settings.options
      // Without this option libx265 writes its log to standard error.
      video.options["x265-params"] = "log-level=none"
      // libx265 accepts the number of threads only in `x265-params`.
      if video.threadCount > 0 {
        video.options["x265-params"]?.append(":pools=\(video.threadCount)")
      }
      if video.threadCount == 1 { video.options["x265-params"]?.append(":frame-threads=1") }
    case .mjpeg: video.quantizer = 3
    case .ffv1: video.options = ["level": "3"]
    case .gif: break
    case .webp(let quality): video.options = ["quality": "\(quality)"]
    }
    if let crf { video.options["crf"] = "\(crf)" }
  }
}

extension EncoderSettings {
  fileprivate var options: [String: String] {
    var options = ["preset": preset, "crf": "\(crf)"]
    options["profile"] = profile
    return options
  }
}
