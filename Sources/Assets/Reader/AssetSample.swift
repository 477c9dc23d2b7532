// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A sample of a track.
///
/// Its times are on the asset's time axis.
public struct AssetSample: Sendable {
  /// The content of a sample, in the form that was requested.
  public enum Content: Sendable {
    /// The bytes of the sample as stored in the file.
    case stored([UInt8])
    /// A decoded frame in its stored size, not rotated.
    case image(PixelBuffer)
    /// Decoded samples of each channel, between -1 and 1.
    case audio([[Float]])
  }

  /// The time at which the sample is presented.
  public let presentationTimeStamp: MediaTime
  /// The time at which the sample is decoded.
  ///
  /// Nil for a decoded sample, or if the file does not contain the time.
  public let decodeTimeStamp: MediaTime?
  /// The duration of the sample.
  ///
  /// Zero if the file does not contain it.
  public let duration: MediaTime
  /// Whether decoding can start at this sample.
  public let isKeyFrame: Bool
  /// Whether the sample is only decoded and not presented, because an edit list hides it.
  public let isHidden: Bool
  /// The content of the sample.
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
