// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankALSA
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// The arrival or the removal of a device.
public enum CaptureDeviceChange: Hashable, Sendable {
  /// The device is present now.
  case added(CaptureDevice)
  /// The device with this id and path was removed.
  ///
  /// A device with a serial number has the same id when it returns. Its path may differ.
  case removed(id: String, path: String?)
}

extension CaptureDevice {
  /// Observes the arrival and removal of devices.
  ///
  /// The sequence starts with `.added` for each present device, in the order of ``discover()``. The
  /// device directory is watched before the devices are listed, so that no change is missed.
  /// Nothing is polled. If this user may not open a new node yet, the device is reported only after
  /// udev has set the permissions. A device that is unplugged and plugged in again is reported as
  /// removed and added.
  ///
  /// The sequence ends only when its task is cancelled. Changes are buffered without limit. Only
  /// one task may iterate.
  ///
  /// - Throws: `MediaError` with `.deviceFailed` if the user has reached the limit of inotify
  ///   watches.
  public static func changes() throws(MediaError)
    -> some AsyncSequence<CaptureDeviceChange, Never> & Sendable
  {
    let calls = DeviceSystem.calls
    let watch: DirectoryWatcher
    do throws(CallFailure) {
      watch = try DirectoryWatcher()
    } catch {
      let failure = CallFailure(.watch, calls.nodeDirectory, code: error.number)
      throw MediaError(failure, at: .discovering)
    }
    let (stream, continuation) = AsyncStream.makeStream(of: CaptureDeviceChange.self)
    let monitor = DeviceMonitor(watch, calls, ALSASystem.calls)
    let queue = DispatchQueue(label: "devices")
    let source = DispatchSource.makeReadSource(fileDescriptor: watch.descriptor, queue: queue)
    source.setEventHandler { for change in monitor.update() { continuation.yield(change) } }
    // The watcher's descriptor must stay open until the dispatch source is cancelled. The handler
    // holds a reference until then.
    source.setCancelHandler { withExtendedLifetime(watch) {} }
    // `DispatchSource.cancel()` may be called from any thread, but the type of the source is not
    // `Sendable`, so the compiler's check is turned off.
    nonisolated(unsafe) let cancellable = source
    continuation.onTermination = { _ in cancellable.cancel() }
    queue.async {
      for change in monitor.begin() { continuation.yield(change) }
      cancellable.activate()
    }
    return stream
  }
}

/// The devices that are known while changes are observed.
///
/// Used on one dispatch queue only.
final class DeviceMonitor: Sendable {
  private struct State {
    /// The cameras by node path.
    ///
    /// Their ids are not unique yet: two cameras of one model may have the same id.
    var cameras: [String: CaptureDevice] = [:]
    /// New nodes that this user may not open yet.
    ///
    /// They are reported once udev has set their permissions.
    var held: Set<String> = []
    var microphones: [CaptureDevice] = []
    /// The devices as they were last reported to the program.
    ///
    /// Their ids are unique.
    var reported: [CaptureDevice] = []
  }

  private let watch: DirectoryWatcher
  private let calls: any VideoSystemCalls
  private let audioCalls: any ALSACalls
  private let state = Mutex(State())

  init(_ watch: DirectoryWatcher, _ calls: any VideoSystemCalls, _ audioCalls: any ALSACalls) {
    (self.watch, self.calls, self.audioCalls) = (watch, calls, audioCalls)
  }

  private var directory: String { calls.nodeDirectory }
  private var linkDirectories: [String] {
    ["\(directory)/v4l", "\(directory)/v4l/by-id", "\(directory)/v4l/by-path"] + audioDirectories
  }
  private var audioDirectories: [String] {
    let directory = audioCalls.nodeDirectory
    return [directory, "\(directory)/by-id", "\(directory)/by-path"]
  }

  /// Begins to watch for changes, and returns each present device as added.
  func begin() -> [CaptureDeviceChange] {
    watch.add(directory)
    return state.withLock { state in
      watchLinks()
      DeviceSystem.$calls.withValue(calls) { inspectAll(&state) }
      inspectMicrophones(&state)
      state.reported = reported(state)
      return state.reported.map { .added($0) }
    }
  }

  /// Returns the changes since the last call of this method or of `begin()`.
  func update() -> [CaptureDeviceChange] {
    let events = watch.take()
    return state.withLock { state in
      var replaced: Set<String> = []
      watchLinks()
      // All microphones are queried again, because there are few and they answer quickly.
      if events?.contains(where: isAboutAudio) != false { inspectMicrophones(&state) }
      DeviceSystem.$calls.withValue(calls) {
        guard let events else {
          inspectAll(&state)
          return
        }
        let identity = DeviceIdentity(nodeDirectory: directory)
        let nodes = nodes(events, state)
        for path in nodes.touched {
          if nodes.gone.contains(path) {
            state.cameras[path] = nil
            state.held.remove(path)
          }
          inspect(path, identity, &state)
        }
        replaced = nodes.gone
        // udev creates its links after the node. The id of a device depends on the links, so the id
        // may change now.
        for (path, camera) in state.cameras {
          let node = SystemFiles.resolved(path) ?? path
          state.cameras[path] = camera.renamed(
            identity.name(of: node, driver: camera.driver, bus: camera.bus))
        }
      }
      return changes(&state, replaced)
    }
  }

  /// Watches the link directories, which exist only while a camera is present.
  private func watchLinks() {
    for directory in linkDirectories { watch.add(directory) }
  }

  private func isAboutAudio(_ event: DirectoryWatcher.Event) -> Bool {
    audioDirectories.contains(event.directory)
      || "\(event.directory)/\(event.name)" == audioCalls.nodeDirectory
  }

  /// Lists the microphones, except new ones whose permissions udev has not set yet.
  ///
  /// When udev sets them, another event causes a new listing.
  private func inspectMicrophones(_ state: inout State) {
    let list = ALSASystem.$calls.withValue(audioCalls) { MicrophoneList() }
    state.microphones = list.devices.filter { device in
      guard device.problem != nil, case .alsa(let node) = device.source else { return true }
      return !SystemFiles.isForOwnerOnly("\(audioCalls.nodeDirectory)/\(node.controlName)")
    }
  }

  private func inspectAll(_ state: inout State) {
    let identity = DeviceIdentity(nodeDirectory: directory)
    state.held = []
    state.cameras = [:]
    for path in calls.nodes() { state.cameras[path] = NodeProbe(path, identity).device }
  }

  /// The device nodes that events refer to, and the nodes among them that were removed.
  ///
  /// A path is listed as removed even if a new node has taken it since, because the new node
  /// belongs to another device.
  private func nodes(
    _ events: [DirectoryWatcher.Event], _ state: State
  ) -> (touched: Set<String>, gone: Set<String>) {
    var touched: Set<String> = []
    var gone: Set<String> = []
    for event in events {
      let path = "\(event.directory)/\(event.name)"
      if event.directory == directory {
        guard VideoDevice.number(ofNode: path) != nil else { continue }
        touched.insert(path)
        if event.change == .disappeared { gone.insert(path) }
      } else if event.change == .appeared, let node = SystemFiles.resolved(path),
        state.held.contains(node)
      {
        touched.insert(node)
      }
    }
    return (touched, gone)
  }

  private func inspect(_ path: String, _ identity: DeviceIdentity, _ state: inout State) {
    // Until udev sets the permissions of a new node, only its owner may open it. Such a node is
    // held back and not reported as forbidden. When udev changes the permissions, another event
    // follows. The permissions must be read before the probe, because udev may change them right
    // after a failed probe.
    let isForOwnerOnly = SystemFiles.isForOwnerOnly(path)
    let node = NodeProbe(path, identity)
    if node.isForbidden, state.cameras[path] == nil, isForOwnerOnly {
      state.held.insert(path)
      return
    }
    state.held.remove(path)
    state.cameras[path] = node.device
  }

  private func reported(_ state: State) -> [CaptureDevice] {
    let cameras = CaptureDevice.inOrder(state.cameras.keys).compactMap { state.cameras[$0] }
    return CaptureDevice.withUniqueIDs(cameras) + [.synthetic] + state.microphones
  }

  private func changes(_ state: inout State, _ replaced: Set<String>) -> [CaptureDeviceChange] {
    let now = reported(state)
    func stays(_ device: CaptureDevice) -> Bool {
      now.contains(device) && !replaced.contains(device.path ?? "")
    }
    let gone = state.reported.filter { !stays($0) }
    let stayed = Set(state.reported.filter(stays))
    state.reported = now
    return gone.map { .removed(id: $0.id, path: $0.path) }
      + now.filter { !stayed.contains($0) }.map { .added($0) }
  }
}
