// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore

extension PhotoOutput {
  /// The flash modes of the connected camera.
  ///
  /// Only `.off` without a camera, and for a camera without a light. Blocks while the camera's
  /// controls are read.
  public var supportedFlashModes: [FlashMode] {
    guard let device = connection?.camera?.device, device.kind == .v4l2,
      let controls = try? PhotoControls(device), controls.hasLight
    else { return [.off] }
    return FlashMode.allCases
  }

  /// Returns the camera's settings for the photos, or nil if the camera stays unchanged.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks a control.
  func preparation(
    for settings: PhotoSettings, of camera: DeviceInput
  ) throws(MediaError) -> PhotoPreparation? {
    var preparation = PhotoPreparation()
    preparation.controls = try controls(for: settings, of: camera)
    if settings.isHighResolutionPhotoEnabled, let session {
      preparation.stillMode = try StillMode(of: camera, in: session, for: settings.format)
    }
    return preparation.isEmpty ? nil : preparation
  }

  /// The exposure and light of a camera, or nil if a capture leaves them unchanged.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks a control.
  private func controls(
    for settings: PhotoSettings, of camera: DeviceInput
  ) throws(MediaError) -> PhotoControls? {
    guard settings.flashMode != .off || !settings.bracket.isEmpty else { return nil }
    guard camera.device.kind == .v4l2 else {
      // An automatic flash of a camera without a light does not light.
      guard settings.flashMode == .on || !settings.bracket.isEmpty else { return nil }
      throw PhotoControls.missing(settings.bracket.isEmpty ? "light" : "exposure controls")
    }
    let controls = try PhotoControls(camera.device)
    try controls.check(settings.bracket)
    if settings.flashMode == .on, !controls.hasLight { throw PhotoControls.missing("light") }
    return controls
  }
}
