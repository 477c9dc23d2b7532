// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// A call to a video device, as a phrase that completes "could not … /dev/video0".
package enum VideoOperation: String, Sendable {
  case open
  case watch = "watch for devices in"
  case listFormats = "list the formats of"
  case listSizes = "list the frame sizes of"
  case listIntervals = "list the frame rates of"
  case readFormat = "read the format of"
  case setFormat = "set the format of"
  case readFrameDuration = "read the frame duration of"
  case setFrameDuration = "set the frame duration of"
  case readCrop = "read the crop of"
  case setCrop = "crop the image of"
  case listInputs = "list the inputs of"
  case readInput = "read the input of"
  case setInput = "choose the input of"
  case listTimings = "list the timings of"
  case readTimings = "read the timings of"
  case detectTimings = "detect the timings at"
  case setTimings = "set the timings of"
  case requestBuffers = "get buffers from"
  case mapBuffer = "map a buffer of"
  case exportBuffer = "export a buffer of"
  case start
  case stop
  case wait = "wait for a frame of"
  case dequeue = "take a frame from"
  case giveBack = "give a buffer back to"
  case listControls = "list the controls of"
  case readControl = "read"
  case setControl = "set"
  case subscribe = "watch for events of"
  case waitForEvent = "wait for an event of"
  case readPriority = "read the priority on"
  case setPriority = "set the priority on"

  /// Returns the meaning of an errno of this call.
  fileprivate func kind(_ code: Int32) -> CallFailure.Kind {
    switch (code, self) {
    case (EACCES, .setControl): .readOnly
    case (EACCES, .readControl): .notSupported
    case (ERANGE, .setControl), (EINVAL, .setControl): .outOfRange
    case (EACCES, _), (EPERM, _): .noPermission
    case (ENOENT, _), (ENOTDIR, _): .notFound
    case (EBUSY, _): .busy
    case (ENODEV, _), (ENXIO, _): .unplugged
    case (ENOTTY, .open): .notVideoDevice
    case (ENOSPC, .start): .noBandwidth
    case (ENOMEM, _): .outOfMemory
    case (EMFILE, _), (ENFILE, _): .tooManyFiles
    case (EPROTO, _), (EPIPE, _), (EILSEQ, _), (ETIME, _), (ETIMEDOUT, _): .busFailure
    case (ESHUTDOWN, _): .unplugged
    case (ENOLINK, _): .noSignal
    case (ENOLCK, _): .unstableSignal
    case (ERANGE, .detectTimings), (ERANGE, .setTimings): .signalOutOfRange
    case (EINVAL, _), (ENOTSUP, _), (ENOTTY, _), (ENODATA, _): .notSupported
    default: .other
    }
  }

  fileprivate var isAboutControls: Bool {
    switch self {
    case .listControls, .readControl, .setControl, .subscribe, .readPriority, .setPriority: true
    default: false
    }
  }
}

extension CallFailure {
  /// Creates the failure of a call to a video device.
  ///
  /// - Parameters:
  ///   - operation: The call.
  ///   - path: The path of the node.
  ///   - code: The errno, above zero.
  ///   - holders: The programs that have a busy node open.
  ///   - control: The control that the call was about, in v4l2-ctl spelling.
  package init(
    _ operation: VideoOperation, _ path: String, code: Int32, holders: [DeviceHolder] = [],
    control: String? = nil
  ) {
    let kind = operation.kind(code)
    let reason = Self.videoReason(kind, operation, code)
    var part = ""
    if operation == .readControl || operation == .setControl {
      part = "\(control ?? "controls") of "
    }
    self.init(
      operation.rawValue, path, code, kind, reason: reason,
      recovery: Self.videoRecovery(kind, operation, path, holders),
      message: "could not \(operation.rawValue) \(part)\(path): \(reason)")
  }

  /// Creates the failure of a call that has just failed.
  ///
  /// If the device is busy, also finds the programs that have the device open.
  init(failing operation: VideoOperation, _ path: String, code: Int32, control: String? = nil) {
    self.init(
      operation, path, code: code, holders: code == EBUSY ? DeviceHolder.find(of: path) : [],
      control: control)
  }

  /// Throws if `result` is negative.
  ///
  /// All system calls of this module report failures as a negative errno.
  static func check(
    _ result: CInt, _ operation: VideoOperation, _ path: String
  ) throws(CallFailure) {
    guard result < 0 else { return }
    throw CallFailure(failing: operation, path, code: -result)
  }

  /// Whether the call failed because the driver cannot read or set a frame duration: the driver
  /// lacks `V4L2_CAP_TIMEPERFRAME` or does not support the request.
  package var keepsNoFrameDuration: Bool {
    [VideoOperation.setFrameDuration, .readFrameDuration].map(\.rawValue).contains(operation)
      && (number == ENOTSUP || number == ENOTTY)
  }

  /// The cause of the failure.
  ///
  /// Usually this is the kernel's text for the errno. In some cases that text would mislead: "No
  /// space left on device" for a full bus, "Link has been severed" for a missing signal. The result
  /// is then a text of this library.
  private static func videoReason(
    _ kind: Kind, _ operation: VideoOperation, _ code: Int32
  ) -> String {
    switch kind {
    case .notVideoDevice: "it is not a video device"
    case .outOfRange: "it does not accept this value"
    case .readOnly: "it is read-only, or an automatic mode controls it"
    case .busy where operation == .setControl:
      "it cannot be changed while the camera streams, or another program has priority"
    case .busy where operation == .setPriority: "another program has a higher priority"
    case .noBandwidth: "the bus has no bandwidth left for this mode"
    case .noSignal: "the input has no signal"
    case .unstableSignal: "the signal is not stable"
    case .signalOutOfRange: "the signal is outside the range of the device"
    case .busFailure: "the camera does not answer on its bus (\(text(ofSystemNumber: code)))"
    default: text(ofSystemNumber: code)
    }
  }

  private static func videoRecovery(
    _ kind: Kind, _ operation: VideoOperation, _ path: String, _ holders: [DeviceHolder]
  ) -> Recovery {
    switch kind {
    case .noPermission:
      Recovery(
        "add yourself to the group video (sudo usermod -aG video $USER) and log in again",
        .diagnose(device: path))
    case .notFound, .notVideoDevice: Recovery("choose a device that is listed", .listDevices)
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
    case .notSupported where operation.isAboutControls:
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
    default: "unplug the device and plug it in again; sudo dmesg shows the kernel's messages"
    }
  }
}
