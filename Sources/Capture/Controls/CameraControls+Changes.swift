// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// A setting that changed, by whoever's doing.
public struct CameraControlChange: Hashable, Sendable {
  /// The control's name, as ``CameraControl/name`` has it.
  public let name: String
  /// Its value now, or nil where it holds no number.
  public let value: Int64?
  /// Whether an automatic now decides, so that setting it has no effect.
  public let isInactive: Bool
  /// Whether the range or the default is another one than before.
  public let changesRange: Bool
}

extension CameraControls {
  /// The changes of settings as they happen: by this program, by others, by the camera.
  ///
  /// Values that a camera changes all the time are told of only where its driver tells. A thread
  /// waits for them on a handle of its own until the sequence is dropped or its task is
  /// cancelled, and ends at most a tenth of a second later. Of changes that nobody takes, the
  /// newest 256 are kept.
  ///
  /// - Parameter names: The controls to be told of, as ``CameraControl/name`` has them; all, where
  ///   none is named. Those of an LED that has a node of its own are none of them.
  /// - Returns: A sequence that ends with a `MediaError` when the device is gone, and never
  ///   otherwise.
  /// - Throws: `MediaError` with `.controlNotSupported` for a name that the device has not, and
  ///   where its driver tells of none.
  public func changes(
    of names: [String] = []
  ) throws(MediaError) -> AsyncThrowingStream<CameraControlChange, any Error> {
    guard let node else { throw missing("controls") }
    let watched = try ControlledNode(reopening: node)
    var spelled: [ControlID: String] = [:]
    let controls = try watched.use { device throws(DeviceError) in try device.controls() }
    for control in controls
    where control.kind != .heading && (names.isEmpty || names.contains(control.spelledName)) {
      // Some controls have no events although others do.
      let isTold: Void? = try? watched.use { device throws(DeviceError) in
        try device.subscribe(to: .control(control.id))
      }
      if isTold != nil { spelled[control.id] = control.spelledName }
    }
    if let unknown = names.first(where: { name in !controls.contains { $0.spelledName == name } }) {
      throw missing(unknown)
    }
    guard !spelled.isEmpty else { throw missing("events of controls") }

    let (stream, continuation) = AsyncThrowingStream<CameraControlChange, any Error>.makeStream(
      bufferingPolicy: .bufferingNewest(256))
    let watch = ControlWatch(watched, spelled, continuation)
    continuation.onTermination = { _ in watch.stop() }
    try BlockingThread.started { watch.run() }.detach()
    return stream
  }
}

/// What the thread does that waits for changes.
private final class ControlWatch: Sendable {
  private let node: ControlledNode
  private let names: [ControlID: String]
  private let continuation: AsyncThrowingStream<CameraControlChange, any Error>.Continuation
  private let isStopped = Atomic(false)

  init(
    _ node: ControlledNode, _ names: [ControlID: String],
    _ continuation: AsyncThrowingStream<CameraControlChange, any Error>.Continuation
  ) {
    self.node = node
    self.names = names
    self.continuation = continuation
  }

  func stop() { isStopped.store(true, ordering: .relaxed) }

  func run() {
    while !isStopped.load(ordering: .relaxed) {
      do throws(MediaError) {
        let event = try node.use { device throws(DeviceError) in
          try device.nextEvent(timeoutMilliseconds: 100)
        }
        guard case .control(let change) = event?.kind, let name = names[change.id] else { continue }
        continuation.yield(
          CameraControlChange(
            name: name, value: change.value, isInactive: change.flags.contains(.inactive),
            changesRange: change.changesRange))
      } catch {
        continuation.finish(throwing: error)
        return
      }
    }
    continuation.finish()
  }
}
