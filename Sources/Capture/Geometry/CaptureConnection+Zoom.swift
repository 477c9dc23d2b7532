// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

extension CaptureConnection {
  /// The greatest ``videoScaleAndCropFactor``.
  ///
  /// 1 for audio, and for an output that cannot crop frames.
  public var videoMaxScaleAndCropFactor: Double {
    canTransform ? camera?.videoMaxZoomFactor ?? 1 : 1
  }

  /// The factor by which this connection enlarges frames, in addition to the zoom of the camera.
  public var videoScaleAndCropFactor: Double {
    geometry.settings.withLock { $0.scaleAndCropFactor }
  }

  /// Crops the frames of this connection around their center, and scales the crop to the full frame
  /// size.
  ///
  /// Takes effect with the next frame that is processed. A movie that stores the camera's packets
  /// unchanged keeps all pixels. The factor at the movie's first frame then sets the clean aperture
  /// that players show.
  ///
  /// - Parameter factor: From 1 to ``videoMaxScaleAndCropFactor``.
  /// - Throws: `MediaError` with `.controlOutOfRange`.
  public func setVideoScaleAndCropFactor(_ factor: Double) throws(MediaError) {
    let maximum = videoMaxScaleAndCropFactor
    guard factor >= 1, factor <= maximum else {
      throw .zoomOutOfRange("the scale and crop factor", factor, takes: "1 to \(maximum)")
    }
    geometry.change { $0.scaleAndCropFactor = factor }
  }
}
