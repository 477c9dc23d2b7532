// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// An open capture device of a sound card.
///
/// The value alone owns its handle, and closes the device on `deinit`.
package struct AudioDevice: ~Copyable, Sendable {
  /// The ALSA name of the device, used in every error.
  package let name: String
  private let calls: any ALSACalls
  private let handle: AudioHandle

  /// The result of waiting for samples.
  package enum Arrival: Hashable, Sendable {
    /// The number of samples that can be read, and the time of this measurement in nanoseconds of
    /// the card's clock.
    case samples(available: Int, nanoseconds: Int64)
    /// The timeout passed before a whole period of samples arrived.
    case none
    /// The ring buffer overran and its content is lost (`EPIPE`). The device must be restarted.
    case overrun
    /// The machine was suspended (`ESTRPIPE`). The device must be resumed.
    case suspended
  }

  /// Opens a device without configuring it or starting the stream.
  ///
  /// - Parameter node: The card and device number.
  /// - Throws: ``CallFailure`` with the operation `.open`.
  package init(opening node: AudioNode) throws(CallFailure) {
    let calls = ALSASystem.calls
    var handle = AudioHandle()
    try CallFailure.check(calls.open(node.hardwareName, &handle), .open, node.hardwareName)
    name = node.hardwareName
    (self.calls, self.handle) = (calls, handle)
  }

  deinit { calls.close(handle) }

  /// The current time in nanoseconds, on the clock that timestamps samples.
  package borrowing func nanoseconds() -> Int64 { calls.nanoseconds() }

  /// Returns the parameters that the device supports together with the fixed parameters of
  /// `choice`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.listFormats`.
  package borrowing func abilities(
    choosing choice: AudioChoice = AudioChoice()
  ) throws(CallFailure) -> AudioAbilities {
    var abilities = AudioAbilities()
    try CallFailure.check(calls.abilities(handle, choice, &abilities), .listFormats, name)
    return abilities
  }

  /// Configures the device.
  ///
  /// - Returns: The granted settings. Layout, channels and rate are as requested; the sizes may
  ///   differ.
  /// - Throws: ``CallFailure`` with the operation `.setFormat`.
  package borrowing func configure(_ settings: AudioSettings) throws(CallFailure) -> AudioSettings {
    var granted = settings
    try CallFailure.check(calls.configure(handle, &granted), .setFormat, name)
    return granted
  }

  /// Starts the stream, also after an overrun.
  ///
  /// - Throws: ``CallFailure`` with the operation that the caller passes.
  package borrowing func start(
    _ operation: AudioOperation = .start
  ) throws(CallFailure) {
    try CallFailure.check(calls.prepare(handle), operation, name)
    try CallFailure.check(calls.start(handle), operation, name)
  }

  /// Stops the stream immediately.
  ///
  /// Samples that were not read are lost.
  package borrowing func stop() {
    _ = calls.drop(handle)  // An unplugged device has already stopped.
  }

  /// Resumes a suspended device.
  ///
  /// If the driver cannot resume, restarts the device.
  ///
  /// - Returns: True if the stream runs, false if the device is still suspended.
  /// - Throws: ``CallFailure`` with the operation `.recover`.
  package borrowing func resume() throws(CallFailure) -> Bool {
    let result = calls.resume(handle)
    if result == -EAGAIN { return false }
    if result < 0 { try start(.recover) }
    return true
  }

  /// Waits for one period of samples.
  ///
  /// - Throws: ``CallFailure`` with the operation `.wait`. The kind is `.unplugged` or `.other`.
  package borrowing func wait(milliseconds: Int32) throws(CallFailure) -> Arrival {
    let result = calls.wait(handle, milliseconds: milliseconds)
    if result == 0 || result == -EINTR { return .none }
    if let loss = Self.loss(result) { return loss }
    try CallFailure.check(preciseCode(result), .wait, name)
    var (available, time): (Int, Int64) = (0, 0)
    let stamped = calls.timestamp(handle, available: &available, nanoseconds: &time)
    if let loss = Self.loss(stamped) { return loss }
    try CallFailure.check(stamped, .wait, name)
    return available > 0 ? .samples(available: available, nanoseconds: time) : .none
  }

  /// Reads available samples.
  ///
  /// - Returns: The number of samples per channel that were read, and the overrun or suspension
  ///   that prevented the read, or nil if nothing prevented it.
  /// - Throws: ``CallFailure`` with the operation `.read`. The kind is `.unplugged` or `.other`.
  package borrowing func read(
    into memory: UnsafeMutableRawPointer, count: Int
  ) throws(CallFailure) -> (count: Int, loss: Arrival?) {
    let result = calls.read(handle, into: memory, count: count)
    if result >= 0 { return (result, nil) }
    let code = CInt(clamping: result)
    if code == -EAGAIN { return (0, nil) }
    if let loss = Self.loss(code) { return (0, loss) }
    throw CallFailure(.read, name, code: -preciseCode(code))
  }

  /// Returns the error code of a failed call, or a more precise error code.
  ///
  /// While a card is being unplugged, calls fail with `EIO`. This function then makes another call,
  /// whose error shows whether the card is gone.
  private borrowing func preciseCode(_ code: CInt) -> CInt {
    guard code == -EIO else { return code }
    let next = calls.prepare(handle)
    return next < 0 ? next : code
  }

  private static func loss(_ code: CInt) -> Arrival? {
    switch code {
    case -EPIPE: .overrun
    case -ESTRPIPE: .suspended
    default: nil
    }
  }
}
