// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization

extension SessionEvent.InterruptionReason {
  /// The reason for an interruption if the error may be temporary, or nil for any other error.
  init?(_ error: MediaError) {
    switch error.code {
    case .deviceLost: self = .deviceGone
    case .deviceBusy: self = .deviceInUse
    default: return nil
    }
  }
}

/// An interrupted input, and the object that detects the return of its device.
struct Interruption: Sendable {
  let input: any CapturingInput
  var reason: SessionEvent.InterruptionReason
  fileprivate let watch = ReturnWatch()

  init(_ input: any CapturingInput, _ reason: SessionEvent.InterruptionReason) {
    self.input = input
    self.reason = reason
  }

  /// Stops waiting for the return of the device.
  func end() { watch.cancel() }
}

extension CaptureSession {
  /// Restarts an input as soon as its device is present and no other program uses it.
  func awaitReturn(of input: any CapturingInput) {
    let watch = core.state.withLock { state in
      state.interruptions.first { $0.input === input }?.watch
    }
    // A timer holds the closure until it fires, even after the watch was cancelled. A strong
    // reference to the input would keep the device open that long.
    watch?.begin(for: input, everyMilliseconds: core.retryMilliseconds) {
      [weak core, weak input] device in
      guard let core, let input else { return true }
      return core.session.resume(input, at: device)
    }
  }

  /// Tries to restart an interrupted input.
  ///
  /// - Returns: True if no further attempt is needed, false if the attempt must be repeated.
  private func resume(_ input: any CapturingInput, at device: CaptureDevice) -> Bool {
    core.work.withLock { _ in
      let (graph, interruption) = core.state.withLock { state in
        (state.graph, state.interruptions.first { $0.input === input })
      }
      guard let interruption else { return true }
      beginChange()
      // The interruption is removed before the input starts, because the input may be interrupted
      // again while it starts.
      core.state.withLock { state in state.interruptions.removeAll { $0.input === input } }
      do throws(MediaError) {
        try input.reopen(at: device)
        try start(input, in: graph)
      } catch {
        return stillInterrupted(interruption, by: error)
      }
      endChange([.interruptionEnded(input.device, interruption.reason)])
      return true
    }
  }

  /// Records why an input could not restart.
  ///
  /// - Returns: True if no further attempt is needed, because the error is not temporary or the
  ///   session was stopped. False if the attempt must be repeated.
  private func stillInterrupted(_ interruption: Interruption, by error: MediaError) -> Bool {
    var interruption = interruption
    let reason = SessionEvent.InterruptionReason(error)
    // A new device node may lack its group permissions until udev has set them, so `.noPermission`
    // may be temporary too.
    guard reason != nil || error.code == .noPermission else {
      core.state.withLock { state in
        if state.running.isEmpty, state.interruptions.isEmpty { state.isWanted = false }
        state.retain(self)
      }
      endChange([.runtimeError(error)])
      return true
    }
    let isNews = reason != nil && reason != interruption.reason
    interruption.reason = reason ?? interruption.reason
    let isWanted = core.state.withLock { state in
      // If the session was stopped meanwhile, it no longer waits for any input.
      if state.isWanted { state.interruptions.append(interruption) }
      return state.isWanted
    }
    let device = interruption.input.device
    endChange(isNews && isWanted ? [.wasInterrupted(device, interruption.reason)] : [])
    return !isWanted
  }
}

/// Detects the return of a device by directory events and by periodic attempts.
///
/// The attempts are needed because no event occurs when another program closes the device.
private final class ReturnWatch: Sendable {
  private let queue = DispatchQueue(label: "device returns")
  private let isOver = Atomic<Bool>(false)
  private let changes = Mutex<Task<Void, Never>?>(nil)

  /// Calls `attempt` whenever the device may be back, until `attempt` returns true.
  func begin(
    for input: any CapturingInput, everyMilliseconds interval: Int,
    _ attempt: @escaping @Sendable (CaptureDevice) -> Bool
  ) {
    let (device, reach) = (input.device, input.reach)
    // The addresses of other present devices are stored, because devices without serial numbers may
    // have the same id. Events of these addresses are not the return of the lost device.
    let there = reach.addresses().subtracting([device.address])
    // If the directory watcher is unavailable, only the periodic attempts find the device.
    let watching = reach.perform { try? CaptureDevice.changes() }
    if let watching {
      let task = Task { [weak self] in
        var others = there
        for await change in watching {
          switch change {
          case .removed(let id, let path): others.remove(path ?? id)
          case .added(let added) where added.id == device.id && !others.contains(added.address):
            guard let self else { return }
            queue.async { self.call(attempt, added.choosing(device.choice)) }
          case .added: break
          }
        }
      }
      changes.withLock { $0 = task }
    }
    if isOver.load(ordering: .acquiring) { cancel() }
    retry(device, reach, interval, attempt)
  }

  func cancel() {
    isOver.store(true, ordering: .releasing)
    changes.withLock { $0 }?.cancel()
  }

  private func retry(
    _ device: CaptureDevice, _ reach: DeviceEnvironment, _ interval: Int,
    _ attempt: @escaping @Sendable (CaptureDevice) -> Bool
  ) {
    queue.asyncAfter(deadline: .now() + .milliseconds(interval)) { [weak self] in
      guard let self, !isOver.load(ordering: .acquiring) else { return }
      // Opening a node may wake the device behind it, so a node is opened only if the lost device's
      // address is present.
      if reach.isPresent(device.address) {
        let found = reach.perform { try? CaptureDevice.named(device.address) }
        if let found, found.id == device.id { call(attempt, found.choosing(device.choice)) }
      }
      retry(device, reach, interval, attempt)
    }
  }

  private func call(
    _ attempt: @Sendable (CaptureDevice) -> Bool, _ device: CaptureDevice
  ) {
    if !isOver.load(ordering: .acquiring), attempt(device) { cancel() }
  }
}
