// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

extension ExportCodec {
  /// libavcodec's name of the encoder.
  var encoderName: String {
    switch self {
    case .h264: "libx264"
    case .hevc: "libx265"
    case .ffv1, .mjpeg: rawValue
    }
  }

  /// Whether players expect pictures of even sides.
  var needsEvenSides: Bool { self == .h264 || self == .hevc }

  /// The format in which pictures are stored: the most portable that keeps their depth, for FFV1
  /// the nearest.
  func pixelFormat(for source: LibAVPixelFormat, profile: String?) -> LibAVPixelFormat {
    switch self {
    case .h264, .hevc:
      let deep: [String?] =
        self == .h264 ? [nil, "high10", "high422", "high444"] : [nil, "main10"]
      guard source.depth > 8, deep.contains(profile),
        let format = LibAVPixelFormat(named: "yuv420p10le")
      else { return .yuv420p }
      return format
    case .mjpeg: return source.isWideChroma ? .yuvj422p : .yuvj420p
    case .ffv1: return Encoder.nearestPixelFormat(to: source, forCodec: "ffv1") ?? .yuv420p
    }
  }

  /// What the encoder is told.
  func configure(_ picture: inout Encoder.VideoSettings, _ settings: ExportSettings) {
    switch self {
    case .h264, .hevc:
      picture.options = ["preset": settings.encoderPreset, "crf": "\(settings.crf)"]
      picture.options["profile"] = settings.profile
      // It writes to stderr by itself.
      if self == .hevc { picture.options["x265-params"] = "log-level=none" }
    case .mjpeg: picture.quantizer = 3
    case .ffv1: picture.options = ["level": "3"]
    }
  }
}
