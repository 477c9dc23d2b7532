// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization

extension SessionEvent.InterruptionReason {
  /// The reason that an error is, where it may pass.
  init?(_ error: MediaError) {
    switch error.code {
    case .deviceLost: self = .deviceGone
    case .deviceBusy: self = .deviceInUse
    default: return nil
    }
  }
}

/// An input that was interrupted, and what waits for it.
struct Interruption: Sendable {
  let input: any CapturingInput
  var reason: SessionEvent.InterruptionReason
  fileprivate let watch = ReturnWatch()

  init(_ input: any CapturingInput, _ reason: SessionEvent.InterruptionReason) {
    self.input = input
    self.reason = reason
  }

  /// Waits no more.
  func end() { watch.cancel() }
}

extension CaptureSession {
  /// Starts an input again as soon as its device is there, and nobody else has it.
  func awaitReturn(of input: any CapturingInput) {
    let watch = state.withLock { state in
      state.interruptions.first { $0.input === input }?.watch
    }
    watch?.begin(for: input, everyMilliseconds: retryMilliseconds) { [weak self] device in
      self?.resume(input, at: device) ?? true
    }
  }

  /// Tries to start an input that was interrupted.
  ///
  /// - Returns: Whether there is nothing to wait for any more.
  private func resume(_ input: any CapturingInput, at device: CaptureDevice) -> Bool {
    work.withLock { _ in
      let (graph, interruption) = state.withLock { state in
        (state.graph, state.interruptions.first { $0.input === input })
      }
      guard let interruption else { return true }
      beginChange()
      // Taken out first: it may be interrupted anew at once.
      state.withLock { state in state.interruptions.removeAll { $0.input === input } }
      do throws(MediaError) {
        try input.reopen(at: device)
        try start(input, in: graph)
      } catch {
        return stillInterrupted(interruption, by: error)
      }
      endChange([.interruptionEnded(interruption.reason)])
      return true
    }
  }

  /// Learns why an input does not come back yet.
  ///
  /// - Returns: Whether it never will.
  private func stillInterrupted(_ interruption: Interruption, by error: MediaError) -> Bool {
    var interruption = interruption
    let reason = SessionEvent.InterruptionReason(error)
    // udev gives a node that has just appeared to its group a moment later.
    guard reason != nil || error.code == .noPermission else {
      state.withLock { state in
        if state.running.isEmpty, state.interruptions.isEmpty { state.isWanted = false }
        state.retain(self)
      }
      endChange([.runtimeError(error)])
      return true
    }
    let isNews = reason != nil && reason != interruption.reason
    interruption.reason = reason ?? interruption.reason
    let isWanted = state.withLock { state in
      // Stopped meanwhile: then nobody waits.
      if state.isWanted { state.interruptions.append(interruption) }
      return state.isWanted
    }
    endChange(isNews && isWanted ? [.wasInterrupted(interruption.reason)] : [])
    return !isWanted
  }

  /// Learns whether the queue of an output is full.
  package func setPressure(_ isPressed: Bool, on output: any CaptureOutput) {
    let isNews = state.withLock { state in
      let wasPressed = !state.pressed.isEmpty
      if isPressed {
        state.pressed.insert(ObjectIdentifier(output))
      } else {
        state.pressed.remove(ObjectIdentifier(output))
      }
      return wasPressed == state.pressed.isEmpty
    }
    guard isNews else { return }
    let event: SessionEvent =
      isPressed ? .wasInterrupted(.systemPressure) : .interruptionEnded(.systemPressure)
    hub.send(event)
    log([event])
  }
}

/// Calls when a device may be there again: when it appears, and every now and then, because a
/// device that another program has closed tells nobody.
private final class ReturnWatch: Sendable {
  private let queue = DispatchQueue(label: "device returns")
  private let isOver = Atomic<Bool>(false)
  private let changes = Mutex<Task<Void, Never>?>(nil)

  /// Calls `attempt` until it says that it is done.
  func begin(
    for input: any CapturingInput, everyMilliseconds interval: Int,
    _ attempt: @escaping @Sendable (CaptureDevice) -> Bool
  ) {
    let (device, reach) = (input.device, input.reach)
    // The folder is watched by the system's means; where it cannot be, there are the retries.
    // Two devices without serial numbers may have one id: one that stayed is not the one that went.
    let there = reach.addresses().subtracting([device.address])
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
      // Opening a node may wake its device, so that one is looked at whose node is there.
      if reach.addresses().contains(device.address) {
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
