// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// Options for the encoder of an export with `--fps`.
struct EncodingOptions: ParsableArguments, Sendable {
  @Option(help: "The codec with --fps: h264, hevc, ffv1 or mjpeg.")
  var codec = RenderedVideo.h264

  @Option(
    help: "Quality of h264 and hevc with --fps: 0 (lossless) to 51; 18 is visually lossless.")
  var crf: Int?

  @Option(
    help: """
      With --fps: the file is no larger than this, such as 8MB; the quality is lowered below \
      --crf until it fits. A .gif or .webp also gets smaller frames.
      """, transform: byteCount)
  var maxSize: Int64?

  @Option(help: "Encoder preset of h264 and hevc with --fps: ultrafast to placebo, or medium.")
  var encoderPreset: String?

  @Option(help: "The profile of h264 or hevc with --fps, such as baseline or high10.")
  var profile: String?

  func validate() throws {
    if let crf, !(0...51).contains(crf) { throw ValidationError("--crf \(crf) is not 0 to 51") }
    if let encoderPreset, !EncoderSettings.presets.contains(encoderPreset) {
      throw ValidationError(
        "--encoder-preset \(encoderPreset) is unknown; choose one of "
          + EncoderSettings.presets.joined(separator: ", "))
    }
    if maxSize != nil, codec != .h264, codec != .hevc {
      throw ValidationError("--max-size needs --codec h264 or hevc")
    }
  }

  /// The first given option among those without a default value; nil if none is given.
  var firstGiven: String? {
    [
      ("--crf", crf != nil), ("--max-size", maxSize != nil),
      ("--encoder-preset", encoderPreset != nil), ("--profile", profile != nil),
    ].first(where: \.1)?.0
  }

  /// Returns the codec with its settings.
  ///
  /// For an animated image, the extension of the file decides the codec, unless an option names
  /// another codec.
  func encoding(for output: String) -> VideoEncoding {
    if let image = VideoEncoding(animatedImageAt: output), codec == .h264,
      crf == nil && encoderPreset == nil && profile == nil
    {
      return image
    }
    var encoder = EncoderSettings()
    encoder.crf = crf ?? encoder.crf
    encoder.preset = encoderPreset ?? encoder.preset
    encoder.profile = profile
    return codec.encoding(encoder)
  }
}
