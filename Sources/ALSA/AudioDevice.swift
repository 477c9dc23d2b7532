// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An open capture device of a sound card.
///
/// The value is the only owner of its handle: it cannot be copied, and the device is closed when
/// the value goes.
package struct AudioDevice: ~Copyable, Sendable {
  /// What ALSA calls the device, which every error names.
  package let name: String
  private let calls: any ALSACalls
  private let handle: AudioHandle

  /// What came of waiting for sound.
  package enum Arrival: Hashable, Sendable {
    /// So many samples wait, and did at that time in nanoseconds of the card's clock.
    case samples(available: Int, nanoseconds: Int64)
    /// No period within the time limit.
    case none
    /// The buffer ran over, and all in it is lost; the device must be started again: `EPIPE`.
    case overrun
    /// The machine slept; the device must be woken: `ESTRPIPE`.
    case suspended
  }

  /// Opens a device, without setting it up or starting to stream.
  ///
  /// - Parameter node: The device.
  /// - Throws: ``ALSAError`` for `.open`.
  package init(opening node: AudioNode) throws(ALSAError) {
    let calls = ALSASystem.calls
    var handle = AudioHandle()
    try ALSAError.check(calls.open(node.hardwareName, &handle), .open, node.hardwareName)
    name = node.hardwareName
    self.calls = calls
    self.handle = handle
  }

  deinit { calls.close(handle) }

  /// The clock that stamps are of, in nanoseconds.
  package borrowing func nanoseconds() -> Int64 { calls.nanoseconds() }

  /// What the device can do, once some of it is chosen.
  ///
  /// - Throws: ``ALSAError`` for `.listFormats`.
  package borrowing func abilities(
    choosing choice: AudioChoice = AudioChoice()
  ) throws(ALSAError) -> AudioAbilities {
    var abilities = AudioAbilities()
    try ALSAError.check(calls.abilities(handle, choice, &abilities), .listFormats, name)
    return abilities
  }

  /// Sets the device up.
  ///
  /// - Returns: What it granted: layout, channels and rate as asked for, sizes near to it.
  /// - Throws: ``ALSAError`` for `.setFormat`.
  package borrowing func configure(_ settings: AudioSettings) throws(ALSAError) -> AudioSettings {
    var granted = settings
    try ALSAError.check(calls.configure(handle, &granted), .setFormat, name)
    return granted
  }

  /// Starts the stream, also after an overrun.
  ///
  /// - Throws: ``ALSAError`` for the operation named.
  package borrowing func start(
    _ operation: ALSAError.Operation = .start
  ) throws(ALSAError) {
    try ALSAError.check(calls.prepare(handle), operation, name)
    try ALSAError.check(calls.start(handle), operation, name)
  }

  /// Ends the stream at once; what still waits is lost.
  package borrowing func stop() {
    _ = calls.drop(handle)  // A device that is gone has stopped.
  }

  /// Wakes a device that was suspended, or starts it again where it cannot be woken.
  ///
  /// - Returns: Whether the stream is on; false while the device still sleeps.
  /// - Throws: ``ALSAError`` for `.recover`.
  package borrowing func resume() throws(ALSAError) -> Bool {
    let result = calls.resume(handle)
    if result == -EAGAIN { return false }
    if result < 0 { try start(.recover) }
    return true
  }

  /// Waits for a period of sound.
  ///
  /// - Throws: ``ALSAError`` for `.wait`: `.unplugged`, `.other`.
  package borrowing func wait(milliseconds: Int32) throws(ALSAError) -> Arrival {
    let result = calls.wait(handle, milliseconds: milliseconds)
    if result == 0 || result == -EINTR { return .none }
    if let loss = Self.loss(result) { return loss }
    try ALSAError.check(settled(result), .wait, name)
    var (available, time): (Int, Int64) = (0, 0)
    let stamped = calls.timestamp(handle, available: &available, nanoseconds: &time)
    if let loss = Self.loss(stamped) { return loss }
    try ALSAError.check(stamped, .wait, name)
    return available > 0 ? .samples(available: available, nanoseconds: time) : .none
  }

  /// Takes samples that wait.
  ///
  /// - Returns: How many there were, or what went wrong with the stream.
  /// - Throws: ``ALSAError`` for `.read`: `.unplugged`, `.other`.
  package borrowing func read(
    into memory: UnsafeMutableRawPointer, count: Int
  ) throws(ALSAError) -> (count: Int, loss: Arrival?) {
    let result = calls.read(handle, into: memory, count: count)
    if result >= 0 { return (result, nil) }
    let code = CInt(clamping: result)
    if code == -EAGAIN { return (0, nil) }
    if let loss = Self.loss(code) { return (0, loss) }
    throw ALSAError(.read, name, code: -settled(code))
  }

  /// What an error comes to: a card that is just being pulled out fails with `EIO`, and says only
  /// to the next call that it is gone.
  private borrowing func settled(_ code: CInt) -> CInt {
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
