// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
public import Overcrank

extension VideoOutputSettings: ExpressibleByArgument {
  private static let byWord: KeyValuePairs = [
    "auto": VideoOutputSettings.automatic, "copy": .passthrough, "h264": .codec(.h264),
    "mjpeg": .codec(.mjpeg), "ffv1": .codec(.ffv1), "raw": .codec(.rawVideo),
  ]

  /// Returns the settings for a value of `--codec`, or nil if the value is unknown.
  public init?(argument: String) {
    guard let settings = Self.byWord.first(where: { $0.key == argument })?.value else { return nil }
    self = settings
  }

  /// The values of `--codec`.
  public static var allValueStrings: [String] { byWord.map(\.key) }
  /// The value of `--codec` for these settings.
  public var defaultValueDescription: String {
    Self.byWord.first { $0.value == self }?.key ?? "\(self)"
  }
}

extension AudioCodec: ExpressibleByArgument {
  private static let byWord: KeyValuePairs = ["aac": AudioCodec.aac, "pcm": .pcm]

  /// Returns the codec for a value of `--audio-codec`, or nil if the value is unknown.
  public init?(argument: String) {
    guard let codec = Self.byWord.first(where: { $0.key == argument })?.value else { return nil }
    self = codec
  }

  /// The values of `--audio-codec`.
  public static var allValueStrings: [String] { byWord.map(\.key) }
}
