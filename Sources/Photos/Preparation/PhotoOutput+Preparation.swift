// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore

extension PhotoOutput {
  /// The flash modes that the connected camera supports.
  ///
  /// Contains only `.off` if no camera is connected, or the camera has no light. Blocks while the
  /// camera's controls are read.
  public var supportedFlashModes: [FlashMode] {
    guard let device = connection?.camera?.device, device.kind == .v4l2,
      let controls = try? PhotoControls(device), controls.hasLight
    else { return [.off] }
    return FlashMode.allCases
  }

  /// Returns the camera settings that the photos require.
  ///
  /// Returns nil if no setting must be changed.
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

  /// Returns the exposure and light controls of a camera.
  ///
  /// Returns nil if the capture does not change them.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks a control.
  private func controls(
    for settings: PhotoSettings, of camera: DeviceInput
  ) throws(MediaError) -> PhotoControls? {
    guard settings.flashMode != .off || !settings.bracket.isEmpty else { return nil }
    guard camera.device.kind == .v4l2 else {
      // On a camera without a light, the automatic flash mode has no effect.
      guard settings.flashMode == .on || !settings.bracket.isEmpty else { return nil }
      throw PhotoControls.missing(settings.bracket.isEmpty ? "light" : "exposure controls")
    }
    let controls = try PhotoControls(camera.device)
    try controls.check(settings.bracket)
    if settings.flashMode == .on, !controls.hasLight { throw PhotoControls.missing("light") }
    return controls
  }
}
