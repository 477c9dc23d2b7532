// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A sample of a track, with its times in the asset's own time.
public struct AssetSample: Sendable {
  /// What a sample holds.
  public enum Content: Sendable {
    /// The bytes as the file stores them.
    case stored([UInt8])
    /// A decoded frame, as large as it is stored and not rotated.
    case image(PixelBuffer)
    /// Decoded samples of each channel, between -1 and 1.
    case audio([[Float]])
  }

  /// When it is shown or heard.
  public let presentationTimeStamp: MediaTime
  /// When it is decoded; nil where the file does not say, and for what is decoded.
  public let decodeTimeStamp: MediaTime?
  /// How long it lasts; zero where the file does not say.
  public let duration: MediaTime
  /// Whether decoding may start here.
  public let isKeyFrame: Bool
  /// Whether it is decoded and not presented, as an edit list asks.
  public let isHidden: Bool
  /// The sample itself.
  public let content: Content

  init(
    _ content: Content, at time: MediaTime, decodedAt decodeTime: MediaTime? = nil,
    duration: MediaTime, isKeyFrame: Bool = true, isHidden: Bool = false
  ) {
    self.content = content
    presentationTimeStamp = time
    decodeTimeStamp = decodeTime
    self.duration = duration
    self.isKeyFrame = isKeyFrame
    self.isHidden = isHidden
  }
}
