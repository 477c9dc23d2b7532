// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization

extension CaptureConnection {
  /// Whether the camera of the connection has image stabilization.
  ///
  /// The call blocks while the driver answers.
  public var isVideoStabilizationSupported: Bool {
    mediaType == .video && camera?.driver.isStabilizing != nil
  }

  /// The preferred image stabilization, which takes effect if the camera supports it.
  ///
  /// Default: ``VideoStabilizationMode/auto``. If the connections of a camera differ,
  /// ``VideoStabilizationMode/standard`` prevails. After the stream, the camera's previous setting
  /// is restored. A change in a running stream blocks while the driver communicates with the
  /// camera.
  public var preferredVideoStabilizationMode: VideoStabilizationMode {
    get { geometry.settings.withLock { $0.stabilization } }
    set {
      geometry.change { $0.stabilization = newValue }
      camera?.geometry.capture?.stabilize()
    }
  }

  /// The image stabilization in effect.
  ///
  /// ``VideoStabilizationMode/off`` while the camera does not capture or has no stabilization. The
  /// call blocks while the driver communicates with the camera.
  public var activeVideoStabilizationMode: VideoStabilizationMode {
    guard mediaType == .video, let camera, camera.geometry.capture != nil else { return .off }
    return camera.driver.isStabilizing == true ? .standard : .off
  }
}

extension [CaptureConnection] {
  /// Whether these connections request image stabilization from their camera.
  ///
  /// Nil keeps the camera's own setting.
  var wantsStabilization: Bool? {
    let modes = filter { $0.mediaType == .video }.map(\.preferredVideoStabilizationMode)
    return modes.contains(.standard) ? true : modes.contains(.off) ? false : nil
  }
}
