// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore

/// A camera mode with larger frames than those of the stream, which is used for photos only.
struct StillMode: Sendable {
  let format: CaptureFormat
  let description: FormatDescription
  private let camera: DeviceInput
  private let session: CaptureSession
  private let before: CaptureFormat
  private let frameRate: FrameRate

  /// Selects the largest mode whose frames can be stored as photos.
  ///
  /// Blocks while the camera reports its modes. Returns nil if no mode is larger than the current
  /// one.
  init?(
    of camera: DeviceInput, in session: CaptureSession, for photoFormat: PhotoFormat
  ) throws(MediaError) {
    guard camera.canReopen else { return nil }
    func area(_ format: CaptureFormat) -> Int { format.width * format.height }
    let larger = try camera.device.formats().filter { format in
      // A photo in such a mode is one of its first frames, and H.264 begins with poor ones.
      photoFormat.isAvailable(for: format) && format.fourcc != .h264
        && area(format) > area(camera.format)
    }
    guard
      let best = larger.max(by: {
        (area($0), $0.maxFrameRate) < (area($1), $1.maxFrameRate)
      }), let type = best.mediaSubType
    else { return nil }
    format = best
    description = FormatDescription(mediaSubType: type, width: best.width, height: best.height)
    (self.camera, self.session) = (camera, session)
    (before, frameRate) = (camera.format, camera.requestedFrameRate)
  }

  /// Switches the camera to this mode.
  func begin() throws(MediaError) { try session.restart(camera, as: format) }

  /// Restores the camera's previous mode and rate, even if the session was stopped meanwhile.
  func end() throws(MediaError) {
    try session.restart(camera, as: before, frameRate: frameRate, evenIfStopped: true)
  }
}
