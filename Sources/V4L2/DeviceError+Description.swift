// SPDX-License-Identifier: Apache-2.0

import Glibc

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

  /// What to try next: one line without a final period.
  package var hint: String {
    switch reason {
    case .noPermission:
      "add yourself to the group video (sudo usermod -aG video $USER) and log in again"
    case .notFound, .notAVideoDevice: "see which devices there are with: slowmo devices"
    case .busy where holders.isEmpty:
      "another program uses it; sudo fuser -v \(path) tells which, close that one"
    case .busy:
      "\(holders.map(\.description).joined(separator: ", ")) has it open; close that first"
    case .unplugged: "it was unplugged or its driver is gone; plug it in again"
    case .outOfRange: "its range and its items are listed by: slowmo controls \(path)"
    case .readOnly: "switch off the automatic that governs it first; see: slowmo controls \(path)"
    case .noBandwidth: "choose a compressed or slower mode, or another USB port"
    case .outOfMemory: "close other programs, or choose a smaller mode"
    case .tooManyFiles: "close other programs, or allow more open files with: ulimit -n 4096"
    case .busFailure: "try another cable or port, without a hub, and a slower mode"
    case .noSignal:
      "check the cable, and that the source is switched on; inputs: slowmo modes \(path)"
    case .unstableSignal: "try again in a moment, or with another cable"
    case .signalOutOfRange: "choose a smaller or slower picture at the source"
    case .notSupported where isAboutControls:
      "what the camera can do is listed by: slowmo controls \(path)"
    case .notSupported where operation == .setInput:
      "its inputs are listed by: slowmo modes \(path)"
    case .notSupported where operation == .detectTimings || operation == .setTimings:
      "only inputs such as HDMI have timings, within limits; inputs: slowmo modes \(path)"
    case .notSupported: "choose another mode; they are listed by: slowmo modes \(path)"
    case .other where operation == .setControl:
      "the camera refused it; try again after setting its automatic controls by hand"
    case .other: "unplug it and plug it in again; the kernel's words are in: sudo dmesg"
    }
  }
}
