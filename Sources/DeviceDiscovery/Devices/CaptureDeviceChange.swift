// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankALSA
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// A device that came, or one that went.
public enum CaptureDeviceChange: Hashable, Sendable {
  /// The device is there now.
  case added(CaptureDevice)
  /// The device of that id, at that node, is gone; one that comes back has the same id if it has
  /// a serial number, and perhaps another path.
  case removed(id: String, path: String?)
}

extension CaptureDevice {
  /// Watches devices come and go: first an `.added` for each that is there, in the order of
  /// ``discover()``, then every change.
  ///
  /// The folder of the nodes is watched before it is listed, so that nothing is missed in between,
  /// and nothing is asked again and again. A node that appears and may not be opened yet is told
  /// of when udev has given it to more than its owner; one that is taken out and put
  /// back is removed and added, even if it comes back as it was.
  ///
  /// There is no end but cancelling the task that asks. Changes that nobody has asked for yet are
  /// kept; only one task at a time may ask.
  ///
  /// - Throws: `MediaError` with `.deviceFailed` when this user watches too many files.
  public static func changes() throws(MediaError)
    -> some AsyncSequence<CaptureDeviceChange, Never> & Sendable
  {
    let calls = DeviceSystem.calls
    let watch: DirectoryWatcher
    do throws(SystemError) {
      watch = try DirectoryWatcher()
    } catch {
      throw MediaError(
        discovering: DeviceError(.watch, calls.nodeFolder, code: error.errorNumber))
    }
    let (stream, continuation) = AsyncStream.makeStream(of: CaptureDeviceChange.self)
    let monitor = DeviceMonitor(watch, calls, ALSASystem.calls)
    let queue = DispatchQueue(label: "devices")
    let source = DispatchSource.makeReadSource(fileDescriptor: watch.descriptor, queue: queue)
    source.setEventHandler { for change in monitor.update() { continuation.yield(change) } }
    // The descriptor must stay open until nobody waits for it.
    source.setCancelHandler { withExtendedLifetime(watch) {} }
    // A dispatch source may be cancelled from any thread.
    nonisolated(unsafe) let cancellable = source
    continuation.onTermination = { _ in cancellable.cancel() }
    queue.async {
      for change in monitor.begin() { continuation.yield(change) }
      cancellable.activate()
    }
    return stream
  }
}

/// What is known of the devices while they are watched; used by one queue.
final class DeviceMonitor: Sendable {
  private struct State {
    /// The cameras by their node, with the ids that they have by themselves.
    var cameras: [String: CaptureDevice] = [:]
    /// Nodes that appeared without permission, which udev is about to give.
    var held: Set<String> = []
    var microphones: [CaptureDevice] = []
    /// What was told, ids made different.
    var told: [CaptureDevice] = []
  }

  private let watch: DirectoryWatcher
  private let calls: any VideoSystemCalls
  private let audioCalls: any ALSACalls
  private let state = Mutex(State())

  init(_ watch: DirectoryWatcher, _ calls: any VideoSystemCalls, _ audioCalls: any ALSACalls) {
    self.watch = watch
    self.calls = calls
    self.audioCalls = audioCalls
  }

  private var folder: String { calls.nodeFolder }
  private var linkFolders: [String] {
    ["\(folder)/v4l", "\(folder)/v4l/by-id", "\(folder)/v4l/by-path"] + audioFolders
  }
  private var audioFolders: [String] {
    let folder = audioCalls.nodeFolder
    return [folder, "\(folder)/by-id", "\(folder)/by-path"]
  }

  /// Begins to watch, and answers with what is there.
  func begin() -> [CaptureDeviceChange] {
    watch.add(folder)
    return state.withLock { state in
      watchLinks()
      DeviceSystem.$calls.withValue(calls) { inspectAll(&state) }
      inspectMicrophones(&state)
      state.told = told(state)
      return state.told.map { .added($0) }
    }
  }

  /// Answers with what has changed since.
  func update() -> [CaptureDeviceChange] {
    let events = watch.take()
    return state.withLock { state in
      var replaced: Set<String> = []
      watchLinks()
      // One or two nodes that take no time to ask: all are looked at again.
      if events?.contains(where: isAboutAudio) != false { inspectMicrophones(&state) }
      DeviceSystem.$calls.withValue(calls) {
        guard let events else {
          inspectAll(&state)
          return
        }
        let identity = DeviceIdentity(nodeFolder: folder)
        let nodes = nodes(events, state)
        for path in nodes.touched {
          if nodes.gone.contains(path) {
            state.cameras[path] = nil
            state.held.remove(path)
          }
          inspect(path, identity, &state)
        }
        replaced = nodes.gone
        // udev's links come after the node, and name it.
        for (path, camera) in state.cameras {
          let node = SystemFiles.resolved(path) ?? path
          state.cameras[path] = camera.renamed(
            identity.name(of: node, driver: camera.driver, bus: camera.bus))
        }
      }
      return changes(&state, replaced)
    }
  }

  /// Folders of links come with the first camera and go with the last.
  private func watchLinks() {
    for folder in linkFolders { watch.add(folder) }
  }

  private func isAboutAudio(_ event: DirectoryWatcher.Event) -> Bool {
    audioFolders.contains(event.folder)
      || "\(event.folder)/\(event.name)" == audioCalls.nodeFolder
  }

  /// The microphones, but for those that may not be opened and that udev is about to give to more
  /// than their owner, which is a change of the folder.
  private func inspectMicrophones(_ state: inout State) {
    let list = ALSASystem.$calls.withValue(audioCalls) { MicrophoneList() }
    state.microphones = list.devices.filter { device in
      guard device.problem != nil, case .alsa(let node) = device.source else { return true }
      return !SystemFiles.isForOwnerOnly("\(audioCalls.nodeFolder)/\(node.controlName)")
    }
  }

  private func inspectAll(_ state: inout State) {
    let identity = DeviceIdentity(nodeFolder: folder)
    state.held = []
    state.cameras = [:]
    for path in calls.nodes() { state.cameras[path] = NodeProbe(path, identity).device }
  }

  /// The nodes that events are about, and those of them that went, even if others came in their
  /// place since.
  private func nodes(
    _ events: [DirectoryWatcher.Event], _ state: State
  ) -> (touched: Set<String>, gone: Set<String>) {
    var touched: Set<String> = []
    var gone: Set<String> = []
    for event in events {
      let path = "\(event.folder)/\(event.name)"
      if event.folder == folder {
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
    // As the kernel makes it, a node is its owner's alone; udev gives it to others next. Looked at
    // first: whatever changes after this is an event to come.
    let isForOwnerOnly = SystemFiles.isForOwnerOnly(path)
    let node = NodeProbe(path, identity)
    if node.isForbidden, state.cameras[path] == nil, isForOwnerOnly {
      state.held.insert(path)
      return
    }
    state.held.remove(path)
    state.cameras[path] = node.device
  }

  private func told(_ state: State) -> [CaptureDevice] {
    let cameras = CaptureDevice.inOrder(state.cameras.keys).compactMap { state.cameras[$0] }
    return CaptureDevice.withUniqueIDs(cameras) + [.synthetic] + state.microphones
  }

  private func changes(_ state: inout State, _ replaced: Set<String>) -> [CaptureDeviceChange] {
    let now = told(state)
    func stays(_ device: CaptureDevice) -> Bool {
      now.contains(device) && !replaced.contains(device.path ?? "")
    }
    let gone = state.told.filter { !stays($0) }
    let stayed = Set(state.told.filter(stays))
    state.told = now
    return gone.map { .removed(id: $0.id, path: $0.path) }
      + now.filter { !stayed.contains($0) }.map { .added($0) }
  }
}
