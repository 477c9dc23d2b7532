// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore

extension Asset {
  /// Seconds of real time per second of the movie: 1/8 for a movie that shows 240 frames per second
  /// at 30.
  ///
  /// It is the nominal frame rate divided by the capture rate. It is 1 if one of the rates is
  /// unknown. It is also 1 for a recording of this library, unless another capture rate is given.
  ///
  /// - Parameter captureFrameRate: The capture rate; nil for the one that the file states.
  /// - Returns: The scale, above zero.
  public func captureTimeScale(captureFrameRate: FrameRate? = nil) -> Rational {
    // The stored times of a recording by this library are already the real times of the capture.
    if captureFrameRate == nil, recording != nil { return .one }
    guard let capture = captureFrameRate ?? self.captureFrameRate?.rate,
      let nominal = videoTrack?.nominalFrameRate
    else { return .one }
    let scale = nominal.framesPerSecond / capture.framesPerSecond
    return scale.isValid && scale > .zero ? scale : .one
  }
}
