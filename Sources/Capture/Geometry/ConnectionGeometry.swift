// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
package import OvercrankLibAV
import OvercrankMediaCore
import Synchronization

/// The rotation, mirroring and zoom of a connection.
///
/// Outputs and their sinks reference this object and not the connection, because the connection
/// references the output. All calls may come from any thread.
package final class ConnectionGeometry: Sendable {
  struct Settings {
    var angle = 0
    var isMirrored = false
    var adjustsMirroring = true
    var scaleAndCropFactor = 1.0
    var stabilization = VideoStabilizationMode.auto
  }

  let settings = Mutex(Settings())
  private let camera: CameraGeometry?
  private struct Following {
    weak var coordinator: CaptureDevice.RotationCoordinator?
  }
  private let following = Mutex(Following())
  /// The requested rotation and mirroring, as ``FrameRotation/bits``.
  private let wantedBits = Atomic<UInt8>(0)
  private let hasOwnFactor = Atomic<Bool>(false)

  init(_ camera: CameraGeometry?) { self.camera = camera }

  /// The coordinator that sets the rotation, or nil.
  var coordinator: CaptureDevice.RotationCoordinator? {
    get { following.withLock { $0.coordinator } }
    set { following.withLock { $0.coordinator = newValue } }
  }

  /// Changes the rotation, mirroring, zoom and stabilization of the connection.
  func change(_ body: (inout Settings) -> Void) {
    settings.withLock { settings in
      body(&settings)
      let rotation = FrameRotation(
        clockwiseDegrees: settings.angle, isMirrored: settings.isMirrored)
      wantedBits.store(rotation?.bits ?? 0, ordering: .releasing)
      hasOwnFactor.store(settings.scaleAndCropFactor != 1, ordering: .releasing)
    }
  }

  /// The rotation and mirroring that the connection was set to.
  var wanted: FrameRotation { FrameRotation(bits: wantedBits.load(ordering: .acquiring)) }

  /// The rotation and mirroring that the output must apply, because the driver does not.
  package var rotation: FrameRotation {
    let flips = FrameRotation(bits: camera?.driverFlips.load(ordering: .acquiring) ?? 0)
    return wanted.remaining(after: flips)
  }

  /// The zoom factor that the output must apply to a frame.
  ///
  /// - Parameter time: The capture time of the frame in microseconds.
  /// - Returns: The factor. 1 if there is no zoom or the driver has already cropped the frame.
  package func outputFactor(atMicroseconds time: Int64) -> Double {
    (camera?.zoom.outputFactor(at: time) ?? 1) * ownFactor
  }

  /// The total zoom factor of a frame, which includes the driver's crop and the output's crop.
  func factor(atMicroseconds time: Int64) -> Double {
    (camera?.zoom.factor(at: time) ?? 1) * ownFactor
  }

  private var ownFactor: Double {
    guard hasOwnFactor.load(ordering: .acquiring) else { return 1 }
    return settings.withLock { $0.scaleAndCropFactor }
  }
}
