// SPDX-License-Identifier: Apache-2.0

import CALSA
import Glibc
import OvercrankLinuxSystem
package import OvercrankMediaCore

/// The calls that reach playback devices: those of ALSA's library, or those of a simulated device.
///
/// Each call returns a value or a negative errno.
package protocol ALSAOutputCalls: Sendable {
  /// Opens a playback device in nonblocking mode: snd_pcm_open(3).
  func openOutput(_ name: String, _ handle: inout AudioHandle) -> CInt

  /// Closes a device: snd_pcm_close(3).
  func close(_ handle: AudioHandle)

  /// Configures a device and returns the granted settings: snd_pcm_hw_params(3).
  func configure(_ handle: AudioHandle, _ settings: inout AudioSettings) -> CInt

  /// Prepares a device, also after it ran out of samples: snd_pcm_prepare(3).
  func prepare(_ handle: AudioHandle) -> CInt

  /// Resumes a suspended device: snd_pcm_resume(3).
  func resume(_ handle: AudioHandle) -> CInt

  /// Stops the stream immediately: snd_pcm_drop(3).
  func drop(_ handle: AudioHandle) -> CInt

  /// Waits until one period is free: snd_pcm_wait(3). Returns 1 for a free period, or 0 after the
  /// timeout.
  func wait(_ handle: AudioHandle, milliseconds: CInt) -> CInt

  /// Returns the number of samples per channel that the ring buffer has space for:
  /// snd_pcm_avail(3).
  func available(_ handle: AudioHandle) -> Int

  /// Returns the time until a sample written now is heard, as a number of samples per channel:
  /// snd_pcm_delay(3).
  func delay(_ handle: AudioHandle, samples: inout Int) -> CInt

  /// Writes interleaved samples and returns their number per channel: snd_pcm_writei(3).
  func write(_ handle: AudioHandle, _ memory: UnsafeRawPointer, count: Int) -> Int

  /// The current time of `CLOCK_MONOTONIC`, in nanoseconds.
  func nanoseconds() -> Int64
}

extension ALSASystem {
  /// ALSA's calls for playback.
  ///
  /// A test replaces these calls with a simulated device for its own Swift task.
  @TaskLocal package static var outputCalls: any ALSAOutputCalls = LibraryCalls()
}

extension LibraryCalls: ALSAOutputCalls {
  package func openOutput(_ name: String, _ handle: inout AudioHandle) -> CInt {
    _ = Self.silencedLibrary
    var pcm: OpaquePointer?
    let result = snd_pcm_open(&pcm, name, SND_PCM_STREAM_PLAYBACK, CInt(SND_PCM_NONBLOCK))
    handle = AudioHandle(bits: UInt(bitPattern: pcm))
    return result
  }

  package func available(_ handle: AudioHandle) -> Int { snd_pcm_avail(handle.pcm) }

  package func delay(_ handle: AudioHandle, samples: inout Int) -> CInt {
    var frames = snd_pcm_sframes_t(0)
    let result = snd_pcm_delay(handle.pcm, &frames)
    samples = frames
    return result
  }

  package func write(_ handle: AudioHandle, _ memory: UnsafeRawPointer, count: Int) -> Int {
    snd_pcm_writei(handle.pcm, memory, snd_pcm_uframes_t(clamping: count))
  }
}

/// An open playback device of a sound card.
///
/// The value alone owns its handle, and closes the device on `deinit`. One thread writes.
package struct AudioOutputDevice: ~Copyable, Sendable {
  /// The ALSA name of the device, used in every error.
  package let name: String
  private let calls: any ALSAOutputCalls
  private let handle: AudioHandle

  /// The result of writing samples.
  package enum Progress: Hashable, Sendable {
    /// The number of samples per channel that the device accepted.
    case written(Int)
    /// The device had run out of samples and was prepared again. It accepted no samples.
    case underrun
  }

  /// Opens a device by its ALSA name, such as `default`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.open`.
  package init(opening name: String) throws(CallFailure) {
    let calls = ALSASystem.outputCalls
    var handle = AudioHandle()
    try CallFailure.check(calls.openOutput(name, &handle), .open, name)
    (self.name, self.calls, self.handle) = (name, calls, handle)
  }

  deinit { calls.close(handle) }

  /// Configures the device.
  ///
  /// - Returns: The granted settings. Layout, channels and rate are as requested; the sizes may
  ///   differ.
  /// - Throws: ``CallFailure`` with the operation `.setFormat`.
  package borrowing func configure(_ settings: AudioSettings) throws(CallFailure) -> AudioSettings {
    var granted = settings
    try CallFailure.check(calls.configure(handle, &granted), .setFormat, name)
    try CallFailure.check(calls.prepare(handle), .start, name)
    return granted
  }

  /// Waits until one period is free, or until the timeout.
  ///
  /// - Throws: ``CallFailure`` with the operation `.wait`.
  package borrowing func wait(milliseconds: Int32) throws(CallFailure) {
    let result = calls.wait(handle, milliseconds: milliseconds)
    guard result < 0, result != -EINTR, result != -EPIPE, result != -ESTRPIPE else { return }
    try CallFailure.check(result, .wait, name)
  }

  /// Returns the number of samples per channel that the ring buffer has space for; nil after the
  /// device ran out of samples.
  ///
  /// - Throws: ``CallFailure`` with the operation `.wait`.
  package borrowing func available() throws(CallFailure) -> Int? {
    let result = calls.available(handle)
    if result >= 0 { return result }
    let code = CInt(clamping: result)
    if code == -EPIPE || code == -ESTRPIPE { return nil }
    throw CallFailure(.wait, name, code: -code)
  }

  /// Returns the delay until a sample written now is heard, as a number of samples per channel, and
  /// the time of this measurement in nanoseconds.
  ///
  /// Nil if the device is not playing now.
  package borrowing func delay() -> (samples: Int, nanoseconds: Int64)? {
    var samples = 0
    let result = calls.delay(handle, samples: &samples)
    return result < 0 ? nil : (samples, calls.nanoseconds())
  }

  /// Writes interleaved samples.
  ///
  /// - Throws: ``CallFailure`` with the operation `.write`. The kind is `.unplugged` or `.other`.
  package borrowing func write(
    _ memory: UnsafeRawPointer, count: Int
  ) throws(CallFailure) -> Progress {
    let result = calls.write(handle, memory, count: count)
    if result >= 0 { return .written(result) }
    let code = CInt(clamping: result)
    switch code {
    case -EAGAIN, -EINTR: return .written(0)
    case -ESTRPIPE where calls.resume(handle) == -EAGAIN: return .written(0)
    case -EPIPE, -ESTRPIPE:
      try CallFailure.check(calls.prepare(handle), .recover, name)
      return .underrun
    default: throw CallFailure(.write, name, code: -code)
    }
  }

  /// Stops the stream immediately.
  package borrowing func stop() { _ = calls.drop(handle) }
}
