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
  private let watch = ReturnWatch()

  init(_ input: any CapturingInput, _ reason: SessionEvent.InterruptionReason) {
    (self.input, self.reason) = (input, reason)
  }

  /// Calls `attempt` whenever the device may be back, until `attempt` returns true.
  func awaitReturn(
    everyMilliseconds interval: Int, _ attempt: @escaping @Sendable (CaptureDevice) -> Bool
  ) {
    watch.begin(for: input, everyMilliseconds: interval, attempt)
  }

  /// Stops waiting for the return of the device.
  func end() { watch.cancel() }
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
