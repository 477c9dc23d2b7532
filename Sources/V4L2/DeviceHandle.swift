// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import Synchronization

/// An open descriptor of a node.
///
/// It is closed when the last reference is released.
///
/// A handle locks the device's settings by taking the priority `.record`. Drivers that support
/// priorities then reject changes through any other handle, even one of the same program. The parts
/// of a program therefore share one handle.
package final class DeviceHandle: ControlChannel, Sendable {
  /// The path of the node, used in every error.
  package let path: String
  let capabilities: VideoDevice.Capabilities
  /// The system calls that reach the driver.
  let calls: any VideoSystemCalls
  let descriptor: CInt

  private struct State {
    /// Whether a ``SettingsLock`` exists.
    var isLocked = false
    /// Whether the handle keeps the priority `.record` until the capture ends, even without a lock.
    var keepsSettings = false
    /// The controls to restore when the capture ends.
    var changes = ControlChanges()
  }
  private let state = Mutex(State())

  init(
    _ path: String, _ capabilities: VideoDevice.Capabilities, _ calls: any VideoSystemCalls,
    _ descriptor: CInt
  ) {
    self.path = path
    self.capabilities = capabilities
    self.calls = calls
    self.descriptor = descriptor
  }

  deinit { _ = calls.close(descriptor) }  // No caller is left to report an error to.

  package func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt {
    withUnsafeMutablePointer(to: &argument) { calls.control(descriptor, request, $0) }
  }

  // MARK: - Settings

  /// Locks the settings against changes through other handles, if the driver has priorities.
  ///
  /// - Throws: ``CallFailure`` with the operation `.setPriority`. The kind is `.busy` if another
  ///   program or another part of this program holds the lock.
  func lock() throws(CallFailure) {
    let isTaken = state.withLock { state in
      defer { state.isLocked = true }
      return state.isLocked
    }
    if isTaken { throw CallFailure(.setPriority, path, code: EBUSY) }
    do throws(CallFailure) {
      try setPriority(.record)
      calls.handles.setHolder(self)
    } catch {
      // A driver without priorities accepts changes from every handle, so the lock exists only in
      // this program.
      guard error.kind != .notSupported else { return }
      state.withLock { $0.isLocked = false }
      throw error
    }
  }

  /// Releases the lock on the device's settings.
  ///
  /// After ``keepSettings()``, other programs stay locked out until the capture ends.
  ///
  /// - Throws: ``CallFailure`` with the operation `.setPriority`.
  func unlock() throws(CallFailure) {
    let isGivenBack = state.withLock { state in
      defer { state.isLocked = false }
      return state.isLocked && !state.keepsSettings
    }
    if isGivenBack { try share() }
  }

  /// Releases the lock on the settings, but keeps the priority `.record` until
  /// ``giveUpSettings()``.
  ///
  /// So other programs cannot change the settings during the capture.
  func keepSettings() {
    state.withLock { state in
      state.keepsSettings = state.isLocked
      state.isLocked = false
    }
  }

  /// Releases the priority `.record` that was kept during the capture.
  ///
  /// If a ``SettingsLock`` exists, it stays in force.
  func giveUpSettings() {
    let isLocked = state.withLock { state in
      state.keepsSettings = false
      return state.isLocked
    }
    // Errors are ignored. If the device is lost, the priorities of its handles no longer exist
    // anyway.
    if !isLocked { try? share() }
  }

  private func share() throws(CallFailure) {
    guard calls.handles.removeHolder(self) else { return }
    try setPriority(.interactive)
  }

  // MARK: - Changes until the end of the capture

  /// Sets a control until ``restoreChanges()`` is called.
  ///
  /// The request is made through `channel`, because the lock on the settings may be held by the
  /// handle of `channel` and not by this handle.
  func change(
    _ control: DeviceControl, to value: ControlValue, through channel: DeviceHandle
  ) throws(CallFailure) -> ControlValue {
    try state.withLock { (state) throws(CallFailure) in
      try state.changes.set(control, to: value, on: channel)
    }
  }

  /// Restores the controls that were changed for the duration of the capture.
  func restoreChanges() {
    state.withLock { state in
      guard !state.changes.changedControls.isEmpty else { return }
      // Errors are ignored. A control that cannot be restored keeps its changed value.
      _ = state.changes.restore(on: self)
    }
  }
}
