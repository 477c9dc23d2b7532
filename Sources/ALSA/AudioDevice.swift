// SPDX-License-Identifier: Apache-2.0

import Glibc

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
  /// - Throws: ``ALSAError`` with the operation `.open`.
  package init(opening node: AudioNode) throws(ALSAError) {
    let calls = ALSASystem.calls
    var handle = AudioHandle()
    try ALSAError.check(calls.open(node.hardwareName, &handle), .open, node.hardwareName)
    name = node.hardwareName
    self.calls = calls
    self.handle = handle
  }

  deinit { calls.close(handle) }

  /// The current time in nanoseconds, on the clock that timestamps samples.
  package borrowing func nanoseconds() -> Int64 { calls.nanoseconds() }

  /// Returns the parameters that the device supports together with the fixed parameters of
  /// `choice`.
  ///
  /// - Throws: ``ALSAError`` with the operation `.listFormats`.
  package borrowing func abilities(
    choosing choice: AudioChoice = AudioChoice()
  ) throws(ALSAError) -> AudioAbilities {
    var abilities = AudioAbilities()
    try ALSAError.check(calls.abilities(handle, choice, &abilities), .listFormats, name)
    return abilities
  }

  /// Configures the device.
  ///
  /// - Returns: The granted settings. Layout, channels and rate are as requested; the sizes may
  ///   differ.
  /// - Throws: ``ALSAError`` with the operation `.setFormat`.
  package borrowing func configure(_ settings: AudioSettings) throws(ALSAError) -> AudioSettings {
    var granted = settings
    try ALSAError.check(calls.configure(handle, &granted), .setFormat, name)
    return granted
  }

  /// Starts the stream, also after an overrun.
  ///
  /// - Throws: ``ALSAError`` with the operation that the caller passes.
  package borrowing func start(
    _ operation: ALSAError.Operation = .start
  ) throws(ALSAError) {
    try ALSAError.check(calls.prepare(handle), operation, name)
    try ALSAError.check(calls.start(handle), operation, name)
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
  /// - Throws: ``ALSAError`` with the operation `.recover`.
  package borrowing func resume() throws(ALSAError) -> Bool {
    let result = calls.resume(handle)
    if result == -EAGAIN { return false }
    if result < 0 { try start(.recover) }
    return true
  }

  /// Waits for one period of samples.
  ///
  /// - Throws: ``ALSAError`` with the operation `.wait`. The reason is `.unplugged` or `.other`.
  package borrowing func wait(milliseconds: Int32) throws(ALSAError) -> Arrival {
    let result = calls.wait(handle, milliseconds: milliseconds)
    if result == 0 || result == -EINTR { return .none }
    if let loss = Self.loss(result) { return loss }
    try ALSAError.check(preciseCode(result), .wait, name)
    var (available, time): (Int, Int64) = (0, 0)
    let stamped = calls.timestamp(handle, available: &available, nanoseconds: &time)
    if let loss = Self.loss(stamped) { return loss }
    try ALSAError.check(stamped, .wait, name)
    return available > 0 ? .samples(available: available, nanoseconds: time) : .none
  }

  /// Reads available samples.
  ///
  /// - Returns: The number of samples per channel that were read, and the overrun or suspension
  ///   that prevented the read, or nil if nothing prevented it.
  /// - Throws: ``ALSAError`` with the operation `.read`. The reason is `.unplugged` or `.other`.
  package borrowing func read(
    into memory: UnsafeMutableRawPointer, count: Int
  ) throws(ALSAError) -> (count: Int, loss: Arrival?) {
    let result = calls.read(handle, into: memory, count: count)
    if result >= 0 { return (result, nil) }
    let code = CInt(clamping: result)
    if code == -EAGAIN { return (0, nil) }
    if let loss = Self.loss(code) { return (0, loss) }
    throw ALSAError(.read, name, code: -preciseCode(code))
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
