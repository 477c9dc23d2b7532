// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A failed call to a capture device: what was tried, on which node, and why.
package struct DeviceError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was tried, worded to complete "Could not … /dev/video0".
  package enum Operation: String, Sendable {
    case open
    case watch = "watch for devices in"
    case listFormats = "list the formats of"
    case listSizes = "list the frame sizes of"
    case listIntervals = "list the frame rates of"
    case readFormat = "read the format of"
    case setFormat = "set the format of"
    case readFrameDuration = "read the frame duration of"
    case setFrameDuration = "set the frame duration of"
    case listInputs = "list the inputs of"
    case readInput = "read the input of"
    case setInput = "choose the input of"
    case listTimings = "list the timings of"
    case readTimings = "read the timings of"
    case detectTimings = "detect the timings at"
    case setTimings = "set the timings of"
    case requestBuffers = "get buffers from"
    case mapBuffer = "map a buffer of"
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
    case setPriority = "take the settings of"
  }

  /// What the code means for the user.
  package enum Reason: Sendable {
    /// This user may not open the node: `EACCES`, `EPERM`.
    case noPermission
    /// There is no such node: `ENOENT`, `ENOTDIR`.
    case notFound
    /// Another program streams from the device or has the control: `EBUSY`.
    case busy
    /// The node is there, the device behind it is gone: `ENODEV`, `ENXIO`.
    case unplugged
    /// The node is no video device: `ENOTTY` when it is opened.
    case notAVideoDevice
    /// The bus has no room for such a stream: `ENOSPC` when it is started.
    case noBandwidth
    /// The control does not take this value: `ERANGE`, `EINVAL` when it is set.
    case outOfRange
    /// The control cannot be set, or not while an automatic decides: `EACCES` when it is set.
    case readOnly
    /// The device cannot do what was asked: `EINVAL`, `ENOTSUP`.
    case notSupported
    /// Nothing comes in at the input: `ENOLINK`.
    case noSignal
    /// What comes in is no stable picture: `ENOLCK`.
    case unstableSignal
    /// What comes in is more, or less, than the device can take: `ERANGE` when it is detected.
    case signalOutOfRange
    /// Anything else.
    case other
  }

  package let operation: Operation
  /// The node it was tried on.
  package let path: String
  /// The number of the error, above zero, as errno(3) lists them.
  package let code: Int32
  /// The control it was about, as v4l2-ctl spells it, or nil where it was about none.
  package let control: String?
  /// The programs that had the node open when it was busy.
  package let holders: [DeviceHolder]

  package init(
    _ operation: Operation, _ path: String, code: Int32, holders: [DeviceHolder] = [],
    control: String? = nil
  ) {
    self.operation = operation
    self.path = path
    self.code = code
    self.holders = holders
    self.control = control
  }

  package var reason: Reason {
    switch (code, operation) {
    case (EACCES, .setControl): .readOnly
    case (EACCES, .readControl): .notSupported
    case (ERANGE, .setControl), (EINVAL, .setControl): .outOfRange
    case (EACCES, _), (EPERM, _): .noPermission
    case (ENOENT, _), (ENOTDIR, _): .notFound
    case (EBUSY, _): .busy
    case (ENODEV, _), (ENXIO, _): .unplugged
    case (ENOTTY, .open): .notAVideoDevice
    case (ENOSPC, .start): .noBandwidth
    case (ENOLINK, _): .noSignal
    case (ENOLCK, _): .unstableSignal
    case (ERANGE, .detectTimings), (ERANGE, .setTimings): .signalOutOfRange
    case (EINVAL, _), (ENOTSUP, _), (ENOTTY, _), (ENODATA, _): .notSupported
    default: .other
    }
  }

  /// Whether the driver said that it has no frame duration to set (no `V4L2_CAP_TIMEPERFRAME`, or
  /// no such request at all).
  package var keepsNoFrameDuration: Bool {
    (operation == .setFrameDuration || operation == .readFrameDuration)
      && (code == ENOTSUP || code == ENOTTY)
  }

  /// Whether there is not enough memory for the buffers.
  package var isOutOfMemory: Bool { code == ENOMEM }

  /// One line: `Could not open /dev/video99: No such file or directory`.
  package var description: String {
    let why: String =
      switch reason {
      case .notAVideoDevice: "It is not a video device"
      // The kernel's words, "No space left on device", send people to their disk.
      case .outOfRange: "It does not take this value"
      case .readOnly: "It cannot be set, or not as the camera is set now"
      case .busy where operation == .setControl:
        "It cannot be changed while the camera streams, or another program has priority"
      case .noBandwidth: "The bus has no bandwidth left for this mode"
      // "Link has been severed", "No locks available", "Numerical result out of range".
      case .noSignal: "There is no signal"
      case .unstableSignal: "The signal is not stable"
      case .signalOutOfRange: "The signal is out of the range that the device can take"
      default: String(cString: strerror(code))  // Of this thread's own, in glibc.
      }
    return "Could not \(operation.rawValue) \(subject)\(path): \(why)"
  }

  private var isAboutControls: Bool {
    switch operation {
    case .listControls, .readControl, .setControl, .subscribe, .readPriority, .setPriority: true
    default: false
    }
  }

  /// What of the device it was about, in front of its path.
  private var subject: String {
    switch operation {
    case .readControl, .setControl: "\(control ?? "controls") of "
    default: ""
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
    case .outOfRange:
      "its range and its items are listed by: slowmo controls \(path)"
    case .readOnly:
      "switch off the automatic that governs it first; see: slowmo controls \(path)"
    case .noBandwidth: "choose a compressed or slower mode, or another USB port"
    case .notSupported where isAboutControls:
      "what the camera can do is listed by: slowmo controls \(path)"
    case .noSignal:
      "check the cable, and that the source is switched on; its inputs are listed by: slowmo modes \(path)"
    case .unstableSignal: "try again in a moment, or with another cable"
    case .signalOutOfRange: "choose a smaller or slower picture at the source"
    case .notSupported where operation == .setInput:
      "its inputs are listed by: slowmo modes \(path)"
    case .notSupported where operation == .detectTimings || operation == .setTimings:
      "only inputs such as HDMI have timings, within the device's limits; its inputs are listed by: slowmo modes \(path)"
    case .notSupported: "choose another mode; they are listed by: slowmo modes \(path)"
    case .other where operation == .setControl:
      "the camera refused it; try again after setting its automatic controls by hand"
    case .other: "unplug it and plug it in again; the kernel's words are in: sudo dmesg"
    }
  }

  /// Throws if `result` is a negative errno, which is how every shim reports failure.
  static func check(
    _ result: CInt, _ operation: Operation, _ path: String
  ) throws(DeviceError) {
    guard result < 0 else { return }
    throw DeviceError(failing: operation, path, code: -result)
  }

  /// Makes the error of a call that failed just now, and looks for who holds a busy device.
  init(failing operation: Operation, _ path: String, code: Int32, control: String? = nil) {
    self.init(
      operation, path, code: code, holders: code == EBUSY ? DeviceHolder.find(of: path) : [],
      control: control)
  }

  /// The same failure of another operation, on a control.
  func during(_ operation: Operation, _ control: String?) -> DeviceError {
    DeviceError(operation, path, code: code, holders: holders, control: control)
  }
}
