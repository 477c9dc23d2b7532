// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The device handles that the parts of this program share, by the path of the device node.
///
/// All calls may come from any thread.
package final class SharedHandles: Sendable {
  private struct Reference {
    weak var handle: DeviceHandle?
  }

  private struct Entry {
    /// The handle that holds the lock on the device's settings.
    var holder = Reference()
    /// The handle that captures from the node and owns its buffers.
    var capturing = Reference()
    var isStreaming = false
    var observers: [Int: @Sendable (Bool) -> Void] = [:]
    /// An object of the running capture that other parts of the program may look up by the node's
    /// path, such as a monitor of the scene's brightness.
    weak var companion: (any AnyObject & Sendable)?
  }

  private struct State {
    var entries: [String: Entry] = [:]
    var lastObserver = 0
  }
  private let state = Mutex(State())

  /// The shared handles for the kernel's nodes.
  ///
  /// Simulated drivers have separate handles.
  static let ofKernel = SharedHandles()

  package init() {}

  // MARK: - Settings

  /// The handle that holds the lock on a node, or nil if this program has not locked the node.
  func holder(of path: String) -> DeviceHandle? {
    state.withLock { $0.entries[path]?.holder.handle }
  }

  func setHolder(_ handle: DeviceHandle) {
    state.withLock { $0.entries[handle.path, default: Entry()].holder.handle = handle }
  }

  /// Removes a handle as the holder of the lock on the device's settings.
  ///
  /// Returns false if the handle did not hold the lock.
  func removeHolder(_ handle: DeviceHandle) -> Bool {
    state.withLock { state in
      guard state.entries[handle.path]?.holder.handle === handle else { return false }
      state.entries[handle.path]?.holder.handle = nil
      return true
    }
  }

  // MARK: - Capture

  /// The handle by which this program captures from a node, or nil if it does not capture from the
  /// node.
  func capturing(_ path: String) -> DeviceHandle? {
    state.withLock { $0.entries[path]?.capturing.handle }
  }

  func beginCapture(_ handle: DeviceHandle) {
    state.withLock { $0.entries[handle.path, default: Entry()].capturing.handle = handle }
  }

  func endCapture(_ handle: DeviceHandle) {
    state.withLock { state in
      guard let capturing = state.entries[handle.path]?.capturing.handle, capturing === handle
      else { return }
      state.entries[handle.path]?.capturing.handle = nil
    }
  }

  /// Whether this program streams from a node.
  package func isStreaming(_ path: String) -> Bool {
    state.withLock { $0.entries[path]?.isStreaming ?? false }
  }

  /// Records that the stream of a node was started or is about to stop, and calls the node's
  /// observers.
  package func setStreaming(_ isStreaming: Bool, _ path: String) {
    let observers: [@Sendable (Bool) -> Void] = state.withLock { state in
      let wasStreaming = state.entries[path]?.isStreaming ?? false
      guard wasStreaming != isStreaming else { return [] }
      state.entries[path, default: Entry()].isStreaming = isStreaming
      return state.entries[path].map { Array($0.observers.values) } ?? []
    }
    for observer in observers { observer(isStreaming) }
  }

  /// Calls a closure whenever this program starts or stops streaming from a node.
  ///
  /// - Parameters:
  ///   - path: The node.
  ///   - observer: Called on the thread that starts or stops the stream. The thread waits for the
  ///     call.
  /// - Returns: A number for ``removeObserver(_:of:)``.
  package func observeCapture(
    of path: String, _ observer: @escaping @Sendable (Bool) -> Void
  ) -> Int {
    state.withLock { state in
      state.lastObserver += 1
      state.entries[path, default: Entry()].observers[state.lastObserver] = observer
      return state.lastObserver
    }
  }

  /// Removes an observer.
  ///
  /// A call that is in progress continues.
  package func removeObserver(_ number: Int, of path: String) {
    state.withLock { _ = $0.entries[path]?.observers.removeValue(forKey: number) }
  }

  /// The object that ``setCompanion(_:of:)`` stored for a node, or nil if the object no longer
  /// exists.
  package func companion(of path: String) -> (any AnyObject & Sendable)? {
    state.withLock { $0.entries[path]?.companion }
  }

  /// Stores an object of the running capture, so that other parts of the program can look it up by
  /// the node's path.
  ///
  /// The reference is weak.
  package func setCompanion(_ companion: any AnyObject & Sendable, of path: String) {
    state.withLock { $0.entries[path, default: Entry()].companion = companion }
  }
}
