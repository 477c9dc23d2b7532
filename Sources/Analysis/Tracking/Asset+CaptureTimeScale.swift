// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore

extension Asset {
  /// Seconds of real time per second of the movie: 1/8 for a movie that shows 240 frames per second
  /// at 30.
  ///
  /// It is the nominal frame rate divided by the capture rate. 1 if one of them is unknown, and for
  /// a recording of this library without another capture rate.
  ///
  /// - Parameter captureFrameRate: The capture rate; nil for the one that the file states.
  /// - Returns: The scale, above zero.
  public func captureTimeScale(captureFrameRate: FrameRate? = nil) -> Rational {
    // The frames of a recording by this library have the times of the capture.
    if captureFrameRate == nil, recording != nil { return .one }
    guard let capture = captureFrameRate ?? self.captureFrameRate?.rate,
      let nominal = videoTrack?.nominalFrameRate
    else { return .one }
    let scale = nominal.framesPerSecond / capture.framesPerSecond
    return scale.isValid && scale > .zero ? scale : .one
  }
}
