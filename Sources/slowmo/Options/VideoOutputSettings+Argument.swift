// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
public import Overcrank

extension VideoOutputSettings: ExpressibleByArgument {
  private static let byWord: KeyValuePairs = [
    "auto": VideoOutputSettings.automatic, "copy": .passthrough, "h264": .codec(.h264),
    "mjpeg": .codec(.mjpeg), "ffv1": .codec(.ffv1), "raw": .codec(.rawVideo),
  ]

  /// The settings of a word of `--codec`.
  public init?(argument: String) {
    guard let settings = Self.byWord.first(where: { $0.key == argument })?.value else { return nil }
    self = settings
  }

  /// The words of `--codec`.
  public static var allValueStrings: [String] { byWord.map(\.key) }
  /// The word of `--codec`.
  public var defaultValueDescription: String {
    Self.byWord.first { $0.value == self }?.key ?? "\(self)"
  }
}

extension AudioCodec: ExpressibleByArgument {
  private static let byWord: KeyValuePairs = ["aac": AudioCodec.aac, "pcm": .pcm]

  /// The codec of a word of `--audio-codec`.
  public init?(argument: String) {
    guard let codec = Self.byWord.first(where: { $0.key == argument })?.value else { return nil }
    self = codec
  }

  /// The words of `--audio-codec`.
  public static var allValueStrings: [String] { byWord.map(\.key) }
}
