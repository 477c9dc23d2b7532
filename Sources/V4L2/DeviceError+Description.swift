// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

extension DeviceError {
  /// One line: `Could not open /dev/video99: No such file or directory`.
  package var description: String {
    "Could not \(operation.rawValue) \(subject)\(path): \(explanation)"
  }

  /// What of the device it was about, in front of its path.
  private var subject: String {
    switch operation {
    case .readControl, .setControl: "\(control ?? "controls") of "
    default: ""
    }
  }

  /// What happened.
  ///
  /// The kernel's own words stay where they say it; "No space left on device" for a full bus, or
  /// "Link has been severed" for an input without a signal, do not.
  private var explanation: String {
    switch reason {
    case .notAVideoDevice: "It is not a video device"
    case .outOfRange: "It does not take this value"
    case .readOnly: "It cannot be set, or not as the camera is set now"
    case .busy where operation == .setControl:
      "It cannot be changed while the camera streams, or another program has priority"
    case .busy where operation == .setPriority: "Another program has them"
    case .noBandwidth: "The bus has no bandwidth left for this mode"
    case .noSignal: "There is no signal"
    case .unstableSignal: "The signal is not stable"
    case .signalOutOfRange: "The signal is out of the range that the device can take"
    case .busFailure: "The camera does not answer on its bus (\(systemReason))"
    default: systemReason
    }
  }

  /// errno(3)'s text; of this thread's own, in glibc.
  private var systemReason: String { String(cString: strerror(code)) }

  private var isAboutControls: Bool {
    switch operation {
    case .listControls, .readControl, .setControl, .subscribe, .readPriority, .setPriority: true
    default: false
    }
  }

  /// The failed request.
  package var cause: MediaError.Cause {
    MediaError.Cause(operation.rawValue, on: path, errorNumber: code)
  }

  /// What to try next.
  package var recovery: Recovery {
    switch reason {
    case .noPermission:
      "add yourself to the group video (sudo usermod -aG video $USER) and log in again"
    case .notFound, .notAVideoDevice: Recovery("choose a device that is listed", .listDevices)
    case .busy where holders.isEmpty:
      "another program uses it; sudo fuser -v \(path) tells which, close that one"
    case .busy:
      "\(holders.map(\.description).joined(separator: ", ")) has it open; close that first"
    case .unplugged: "it was unplugged or its driver is gone; plug it in again"
    case .outOfRange: Recovery("choose a value within its range", .listControls(device: path))
    case .readOnly:
      Recovery(
        "switch off the automatic mode that governs it first", .listControls(device: path))
    case .noBandwidth: "choose a compressed or slower mode, or another USB port"
    case .outOfMemory: "close other programs, or choose a smaller mode"
    case .tooManyFiles: "close other programs, or allow more open files with: ulimit -n 4096"
    case .busFailure: "try another cable or port, without a hub, and a slower mode"
    case .noSignal:
      Recovery(
        "check the cable, and that the source is switched on", .listFormats(device: path))
    case .unstableSignal: "try again in a moment, or with another cable"
    case .signalOutOfRange: "choose a smaller or slower picture at the source"
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
      "the camera refused it; try again after setting its automatic controls by hand"
    case .other: "unplug it and plug it in again; the kernel's words are in: sudo dmesg"
    }
  }
}
