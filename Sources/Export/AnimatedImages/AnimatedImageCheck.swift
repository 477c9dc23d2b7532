// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// Checks whether an export can write an animated image with its settings.
enum AnimatedImageCheck {
  /// Throws an error if the path's extension does not fit the frames to write, or if the frames are
  /// an animated image that cannot be written.
  ///
  /// - Throws: `MediaError` with `.unsupportedContainer`, `.outputFrameRateRefused`,
  ///   `.shardRefused` or `.missingEncoder`.
  static func check(
    _ settings: ExportSettings,
    isSupported: (AnimatedImageFormat) -> Bool = \.isSupported
  ) throws(MediaError) {
    let named = AnimatedImageFormat(path: settings.path)
    guard case .constant(let rate, let rendering) = settings.mode else {
      guard let named else { return }
      throw MediaError(
        .unsupportedContainer, "\(named.title) cannot hold copied packets",
        recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
    }
    let requested = rendering.encoding.animatedImage
    guard named == requested else {
      let container = named?.title ?? "a movie"
      throw MediaError(
        .unsupportedContainer, "\(container) cannot hold \(rendering.encoding.codec) frames",
        recovery: Recovery("choose the extension that fits the codec", .change(.codec)))
    }
    guard let format = requested else { return }
    guard settings.part == .whole else {
      throw MediaError(
        .shardRefused, "an animated image has no shards", recovery: "choose .mov or .mp4")
    }
    guard rate.framesPerSecond <= Rational(format.highestFrameRate) else {
      throw MediaError(
        .outputFrameRateRefused,
        "\(format.title) at \(rate) fps would play slower in browsers, which show frames of 10 ms "
          + "or less for 100 ms",
        recovery: Recovery(
          "choose at most \(format.highestFrameRate) fps", .change(.outputFrameRate)))
    }
    guard isSupported(format) else {
      throw MediaError(
        .missingEncoder, "the installed FFmpeg has no encoder \(format.encoderName)",
        recovery: "choose .mp4, or install an FFmpeg with this encoder")
    }
  }

  /// Returns the names of the metadata that is lost in an animated image.
  static func lostMetadata(_ asset: Asset, _ chapters: ChapterMap) -> [String] {
    let tags = asset.metadata.keys.filter { !ExportOutput.ownKeys.contains($0) }.sorted()
    return tags + (chapters.chapters.isEmpty ? [] : ["chapters"])
  }
}

extension AnimatedImageFormat {
  /// The name of the animated image format in messages.
  var title: String {
    switch self {
    case .gif: "GIF"
    case .webp: "WebP"
    }
  }
}
