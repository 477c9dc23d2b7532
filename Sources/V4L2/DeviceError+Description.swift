// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

extension DeviceError {
  /// The error in one line: `could not open /dev/video99: No such file or directory`.
  package var description: String {
    "could not \(operation.rawValue) \(subject)\(path): \(explanation)"
  }

  /// The part of the device that failed.
  ///
  /// It precedes the path in the description.
  private var subject: String {
    switch operation {
    case .readControl, .setControl: "\(control ?? "controls") of "
    default: ""
    }
  }

  /// The cause of the failure.
  ///
  /// Usually this is the kernel's text for the errno. In some cases that text would mislead: "No
  /// space left on device" for a full bus, "Link has been severed" for a missing signal. This
  /// property then returns a text of this library.
  private var explanation: String {
    switch reason {
    case .notAVideoDevice: "it is not a video device"
    case .outOfRange: "it does not accept this value"
    case .readOnly: "it is read-only, or an automatic mode controls it"
    case .busy where operation == .setControl:
      "it cannot be changed while the camera streams, or another program has priority"
    case .busy where operation == .setPriority: "another program has a higher priority"
    case .noBandwidth: "the bus has no bandwidth left for this mode"
    case .noSignal: "the input has no signal"
    case .unstableSignal: "the signal is not stable"
    case .signalOutOfRange: "the signal is outside the range of the device"
    case .busFailure: "the camera does not answer on its bus (\(systemReason))"
    default: systemReason
    }
  }

  /// The kernel's text for the errno.
  ///
  /// The call is thread-safe, because glibc's strerror(3) uses a buffer per thread.
  private var systemReason: String { String(cString: strerror(code)) }

  private var isAboutControls: Bool {
    switch operation {
    case .listControls, .readControl, .setControl, .subscribe, .readPriority, .setPriority: true
    default: false
    }
  }

  /// The failed request, as the cause of a `MediaError`.
  package var cause: MediaError.Cause {
    MediaError.Cause(operation.rawValue, on: path, errorNumber: code)
  }

  /// Advice on the next step to try after this error.
  package var recovery: Recovery {
    switch reason {
    case .noPermission:
      Recovery(
        "add yourself to the group video (sudo usermod -aG video $USER) and log in again",
        .diagnose(device: path))
    case .notFound, .notAVideoDevice: Recovery("choose a device that is listed", .listDevices)
    case .busy where holders.isEmpty:
      Recovery(
        "close the program that uses it; sudo fuser -v \(path) shows which one",
        .diagnose(device: path))
    case .busy:
      Recovery(
        "\(holders.map(\.description).joined(separator: ", ")) has the device open; close that first",
        .diagnose(device: path))
    case .unplugged: "plug the device in again; it was unplugged, or its driver was unloaded"
    case .outOfRange: Recovery("choose a value within its range", .listControls(device: path))
    case .readOnly:
      Recovery(
        "switch off the automatic mode that controls it first", .listControls(device: path))
    case .noBandwidth: "choose a compressed or slower mode, or another USB port"
    case .outOfMemory: "close other programs, or choose a smaller mode"
    case .tooManyFiles: "close other programs, or allow more open files with: ulimit -n 4096"
    case .busFailure: "try another cable or port, without a hub, and a slower mode"
    case .noSignal:
      Recovery(
        "check the cable, and that the source is switched on", .listFormats(device: path))
    case .unstableSignal: "try again in a moment, or with another cable"
    case .signalOutOfRange: "choose a smaller size or a lower rate at the source"
    case .notSupported where isAboutControls:
      Recovery("choose a control that it has", .listControls(device: path))
    case .notSupported where operation == .setInput:
      Recovery("choose one of its inputs", .listFormats(device: path))
    case .notSupported where operation == .detectTimings || operation == .setTimings:
      Recovery(
        "choose an input that has timings, such as HDMI, within its limits",
        .listFormats(device: path))
    case .notSupported: Recovery("choose another format", .listFormats(device: path))
    case .other where operation == .setControl:
      "switch off the camera's automatic modes and try again; the camera rejected the value"
    case .other: "unplug the device and plug it in again; sudo dmesg shows the kernel's messages"
    }
  }
}
