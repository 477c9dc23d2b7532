// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankLinuxSystem
public import OvercrankMediaCore

extension CaptureDevice {
  /// Whether this user may open cameras or microphones.
  ///
  /// On Linux the permissions of the device nodes decide. No dialog asks the user, so the answer is
  /// always known.
  public enum AuthorizationStatus: Hashable, Sendable {
    /// This user may open at least one device. That device may be in use by another program now.
    case authorized
    /// The machine has devices, and this user may open none of them.
    ///
    /// `group` is the group whose members may open them, or nil if no group has the permission.
    case denied(group: String?)
    /// The machine has no camera (or, for audio, no microphone).
    ///
    /// The synthetic camera does not count, because it has no device node and needs no permission.
    case noDevice
  }

  /// Whether this user may open cameras or microphones.
  ///
  /// The call opens each node briefly.
  public static func authorizationStatus(for mediaType: MediaType) -> AuthorizationStatus {
    let devices = devices(for: mediaType)
    if devices.isEmpty { return .noDevice }
    guard devices.allSatisfy(\.isForbidden) else { return .authorized }
    return .denied(group: devices.lazy.compactMap(\.permittedGroup).first)
  }

  /// Checks whether this user may open cameras or microphones, and returns at once.
  ///
  /// Corresponds to `AVCaptureDevice.requestAccess(for:)`, but shows no dialog.
  ///
  /// - Throws: `MediaError` with `.noPermission` and the name of the group to join, or with
  ///   `.deviceNotFound` if the machine has no such device.
  public static func requestAccess(for mediaType: MediaType) throws(MediaError) {
    let name = mediaType == .video ? "camera" : "microphone"
    switch authorizationStatus(for: mediaType) {
    case .authorized: return
    case .noDevice:
      throw MediaError(
        .deviceNotFound, "this machine has no \(name)",
        recovery: Recovery("plug in a \(name)", .listDevices))
    case .denied(let group):
      let instruction =
        group.map {
          "add yourself to the group \($0) (sudo usermod -aG \($0) $USER) and log in again"
        } ?? "ask the administrator for permission to read and write the device nodes"
      throw MediaError(
        .noPermission, "no permission to open a \(name)",
        recovery: Recovery(instruction, .diagnose(device: nil)))
    }
  }

  /// The group whose members may open the device, or nil if the node grants access to no group.
  var permittedGroup: String? {
    let node: String? =
      switch source {
      case .v4l2(let path): path
      // For a microphone, the permissions of the card's control node are read, because ALSA opens
      // that node first.
      case .alsa(let node): "\(ALSASystem.calls.nodeDirectory)/\(node.controlName)"
      case .synthetic, .file: nil
      }
    return node.flatMap(SystemFiles.permittedGroup)
  }
}
