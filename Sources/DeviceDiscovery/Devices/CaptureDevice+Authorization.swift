// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankLinuxSystem
public import OvercrankMediaCore

extension CaptureDevice {
  /// Whether this user may open cameras, or microphones.
  ///
  /// Linux asks nobody: the permissions of the device nodes decide, so that the answer is always
  /// known.
  public enum AuthorizationStatus: Hashable, Sendable {
    /// This user may open at least one device, even if another program has it now.
    case authorized
    /// The machine has devices, and this user may open none of them.
    ///
    /// Members of `group` may; nil where the nodes do not belong to a group that may.
    case denied(group: String?)
    /// The machine has no such device. The synthetic camera needs no permission and does not count.
    case noDevice
  }

  /// Whether this user may open cameras, or microphones; opens each node for a moment.
  public static func authorizationStatus(for mediaType: MediaType) -> AuthorizationStatus {
    let devices = devices(for: mediaType)
    if devices.isEmpty { return .noDevice }
    guard devices.allSatisfy(\.isForbidden) else { return .authorized }
    return .denied(group: devices.lazy.compactMap(\.permittedGroup).first)
  }

  /// Answers at once whether this user may open cameras, or microphones; nobody is asked.
  ///
  /// The counterpart of `AVCaptureDevice.requestAccess(for:)`, which shows a dialog.
  ///
  /// - Throws: `MediaError` with `.noPermission` and the group to join, or with `.deviceNotFound`
  ///   where there is no device.
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
        .noPermission, "this user may open none of the \(name)s", recovery: Recovery(instruction))
    }
  }

  /// The group whose members may open the device; nil where the node grants nothing to a group.
  private var permittedGroup: String? {
    let node: String? =
      switch source {
      case .v4l2(let path): path
      // The card is asked by its control node, which is opened first.
      case .alsa(let node): "\(ALSASystem.calls.nodeDirectory)/\(node.controlName)"
      case .synthetic, .file: nil
      }
    return node.flatMap(SystemFiles.permittedGroup)
  }
}
