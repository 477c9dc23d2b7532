// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// An open descriptor of a node, closed with the last reference.
///
/// While one handle holds the lock on a device, a driver with priorities refuses changes through any
/// other handle. The parts of a program therefore share the handle.
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
    /// Whether the handle keeps its priority without a lock, for as long as it captures.
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
  /// - Throws: ``DeviceError`` for `.setPriority`: `.busy` if another program or another part of
  ///   this one holds the lock.
  func lock() throws(DeviceError) {
    let isTaken = state.withLock { state in
      defer { state.isLocked = true }
      return state.isLocked
    }
    if isTaken { throw DeviceError(.setPriority, path, code: EBUSY) }
    do throws(DeviceError) {
      try setPriority(.record)
      calls.handles.setHolder(self)
    } catch {
      // Without priorities, the driver accepts changes from every handle.
      guard error.reason != .notSupported else { return }
      state.withLock { $0.isLocked = false }
      throw error
    }
  }

  /// Unlocks the settings, unless the handle keeps its priority.
  ///
  /// - Throws: ``DeviceError`` for `.setPriority`.
  func unlock() throws(DeviceError) {
    let isGivenBack = state.withLock { state in
      defer { state.isLocked = false }
      return state.isLocked && !state.keepsSettings
    }
    if isGivenBack { try share() }
  }

  /// Ends the lock, but keeps the priority for as long as the handle captures.
  func keepSettings() {
    state.withLock { state in
      state.keepsSettings = state.isLocked
      state.isLocked = false
    }
  }

  /// Gives up the priority that was kept; a lock stays in force.
  func giveUpSettings() {
    let isLocked = state.withLock { state in
      state.keepsSettings = false
      return state.isLocked
    }
    // A lost device has no priorities.
    if !isLocked { try? share() }
  }

  private func share() throws(DeviceError) {
    guard calls.handles.removeHolder(self) else { return }
    try setPriority(.interactive)
  }

  // MARK: - Changes until the end of the capture

  /// Sets a control through another handle, until ``restoreChanges()``.
  func change(
    _ control: DeviceControl, to value: ControlValue, through channel: DeviceHandle
  ) throws(DeviceError) -> ControlValue {
    let result = state.withLock { state in
      Result { () throws(DeviceError) in
        try state.changes.set(control, to: value, on: channel)
      }
    }
    return try result.get()
  }

  /// Restores the controls that were changed until the end of the capture.
  func restoreChanges() {
    state.withLock { state in
      guard !state.changes.changedControls.isEmpty else { return }
      // A control that the camera does not take back stays as it is.
      _ = state.changes.restore(on: self)
    }
  }
}
