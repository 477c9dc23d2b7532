// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A failed call to a capture device: the operation, the node and the errno.
package struct DeviceError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The operation, as a phrase that completes "could not … /dev/video0".
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
  }

  /// The meaning of the errno for the user.
  package enum Reason: Sendable {
    /// The user has no permission to open the node: `EACCES`, `EPERM`.
    case noPermission
    /// The node does not exist: `ENOENT`, `ENOTDIR`.
    case notFound
    /// Another program streams from the device or locked the control: `EBUSY`.
    case busy
    /// The node exists but its device is gone: `ENODEV`, `ENXIO`.
    case unplugged
    /// The node is not a video device: `ENOTTY` from open.
    case notAVideoDevice
    /// The bus lacks bandwidth for the stream: `ENOSPC` from the stream start.
    case noBandwidth
    /// The control does not accept the value: `ERANGE` or `EINVAL` from setting it.
    case outOfRange
    /// The control is read-only or overridden by an automatic mode: `EACCES` from setting it.
    case readOnly
    /// The device does not support the request: `EINVAL`, `ENOTSUP`.
    case notSupported
    /// The input has no signal: `ENOLINK`.
    case noSignal
    /// The input signal is unstable: `ENOLCK`.
    case unstableSignal
    /// The input signal is outside the device's limits: `ERANGE` from detecting it.
    case signalOutOfRange
    /// No memory for the buffers: `ENOMEM`.
    case outOfMemory
    /// Too many open files in this process or in the system: `EMFILE`, `ENFILE`.
    case tooManyFiles
    /// The camera does not respond, or responds with garbage: `EPROTO`, `EPIPE`, `EILSEQ`, `ETIME`,
    /// `ETIMEDOUT`.
    case busFailure
    /// A driver or device failure: `EIO` and all other errors.
    case other
  }

  package let operation: Operation
  /// The path of the node.
  package let path: String
  /// The errno of the failed call, above zero.
  ///
  /// See errno(3).
  package let code: Int32
  /// The control that the error concerns, in v4l2-ctl spelling, or nil if it concerns none.
  package let control: String?
  /// The programs that had the node open.
  ///
  /// Only set if the node was busy.
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

  /// Whether the call failed because the driver cannot read or set a frame duration: the driver
  /// lacks `V4L2_CAP_TIMEPERFRAME` or does not support the request.
  package var keepsNoFrameDuration: Bool {
    (operation == .setFrameDuration || operation == .readFrameDuration)
      && (code == ENOTSUP || code == ENOTTY)
  }

  /// Throws if `result` is negative.
  ///
  /// All system calls of this module report failures as a negative errno.
  static func check(
    _ result: CInt, _ operation: Operation, _ path: String
  ) throws(DeviceError) {
    guard result < 0 else { return }
    throw DeviceError(failing: operation, path, code: -result)
  }

  /// Creates the error of a call that has just failed.
  ///
  /// If the device is busy, also finds the programs that have the device open.
  init(failing operation: Operation, _ path: String, code: Int32, control: String? = nil) {
    self.init(
      operation, path, code: code, holders: code == EBUSY ? DeviceHolder.find(of: path) : [],
      control: control)
  }

  /// The same error, attributed to another operation and to a control.
  func during(_ operation: Operation, _ control: String?) -> DeviceError {
    DeviceError(operation, path, code: code, holders: holders, control: control)
  }
}
