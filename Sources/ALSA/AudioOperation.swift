// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// A call to a sound card, as a phrase that completes "could not … hw:0,0".
package enum AudioOperation: String, Sendable {
  case open
  case describe
  case listFormats = "list the formats of"
  case setFormat = "set the format of"
  case start
  case wait = "wait for audio from"
  case read = "read audio from"
  case write = "write audio to"
  case recover = "restart"

  /// Returns the meaning of an errno of this call.
  fileprivate func kind(_ code: Int32) -> CallFailure.Kind {
    switch (code, self) {
    case (EACCES, _), (EPERM, _): .noPermission
    case (ENOENT, _), (ENODEV, .open), (ENXIO, .open), (ENODEV, .describe), (ENXIO, .describe):
      .notFound
    case (EBUSY, _), (EAGAIN, .open): .busy
    case (ENODEV, _), (ENXIO, _), (ESHUTDOWN, _): .unplugged
    case (EINVAL, _), (ENOTSUP, _), (ENOTTY, _): .notSupported
    case (ENOMEM, _): .outOfMemory
    case (EMFILE, _), (ENFILE, _): .tooManyFiles
    default: .other
    }
  }
}

extension CallFailure {
  /// Creates the failure of a call to a sound card.
  ///
  /// - Parameters:
  ///   - operation: The call.
  ///   - device: The ALSA name of the device.
  ///   - code: The errno, above zero.
  package init(_ operation: AudioOperation, _ device: String, code: Int32) {
    let kind = operation.kind(code)
    self.init(
      operation.rawValue, device, code, kind, reason: Self.text(ofSystemNumber: code),
      recovery: Self.audioRecovery(kind))
  }

  private static func audioRecovery(_ kind: Kind) -> Recovery {
    switch kind {
    case .noPermission:
      Recovery(
        "add yourself to the group audio (sudo usermod -aG audio $USER) and log in again",
        .diagnose(device: nil))
    case .notFound: Recovery("choose a device that is listed", .listDevices)
    case .busy:
      Recovery(
        "close the program that records from it; sudo fuser -v /dev/snd/* shows which one",
        .diagnose(device: nil))
    case .unplugged: "plug the device in again; it was unplugged, or its driver was unloaded"
    case .notSupported: "choose another format for the microphone"
    case .outOfMemory, .tooManyFiles: "close other programs and try again"
    default: "unplug the device and plug it in again; sudo dmesg shows the kernel's messages"
    }
  }

  static func check(
    _ result: CInt, _ operation: AudioOperation, _ device: String
  ) throws(CallFailure) {
    guard result < 0 else { return }
    throw CallFailure(operation, device, code: -result)
  }
}
