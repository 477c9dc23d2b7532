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
    /// There is no memory for the buffers: `ENOMEM`.
    case outOfMemory
    /// This program, or all together, have too many files open: `EMFILE`, `ENFILE`.
    case tooManyFiles
    /// The camera does not answer, or not so that it can be understood: `EPROTO`, `EPIPE`,
    /// `EILSEQ`, `ETIME`, `ETIMEDOUT` of its bus.
    case busFailure
    /// The driver or the device gave up: `EIO`, and anything else.
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

  /// Whether the driver said that it has no frame duration to set (no `V4L2_CAP_TIMEPERFRAME`, or
  /// no such request at all).
  package var keepsNoFrameDuration: Bool {
    (operation == .setFrameDuration || operation == .readFrameDuration)
      && (code == ENOTSUP || code == ENOTTY)
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
