// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// The state of a photo output's camera when its stream started.
struct PhotoSource: Sendable {
  let format: FormatDescription
  /// The camera's frame period in microseconds, rounded down.
  let period: Int64
  /// The name of the camera.
  let model: String
  let pool: BufferPool
  /// The rotation, mirroring and zoom of the output's connection.
  let geometry: ConnectionGeometry

  init(_ camera: DeviceInput, _ geometry: ConnectionGeometry) {
    format = FormatDescription(camera.delivery)
    let duration = camera.negotiatedFrameRate.frameDuration
    let microseconds = try? duration.converted(to: 1_000_000, rounding: .towardNegativeInfinity)
    period = max(1, microseconds?.value ?? 1)
    model = camera.device.name
    pool = camera.pool
    self.geometry = geometry
  }

  /// The current time of the driver's clock, in microseconds.
  var now: Int64 { pool.driver.microseconds() }
}

/// The queues between the program, the capture thread of one stream, and the encoding thread.
final class PhotoChannel: Sendable {
  let source: PhotoSource
  /// Requests to the capture thread.
  let requests: SPSCRing<PhotoRequest>
  /// Messages to the encoding thread: chosen frames, and captures that ended early.
  let selections: SPSCRing<PhotoSelection>
  /// The bytes of the chosen frames.
  let queue: FrameQueue
  /// Signaled for each message in `selections`.
  private let wake: DispatchSemaphore
  private let isClosedNow = Atomic<Bool>(false)
  /// Locked while a request is sent, so that no request is sent after the end of the stream.
  private let sending = Mutex(())

  /// The greatest number of captures that may be pending at the same time.
  static let maximumPending = 64
  /// The number of entries in `selections` that are reserved for captures that ended early, so that
  /// these are always reported.
  private static let reserve = 4 * maximumPending

  init(
    _ camera: DeviceInput, _ geometry: ConnectionGeometry, wake: DispatchSemaphore
  ) throws(MediaError) {
    source = PhotoSource(camera, geometry)
    self.wake = wake
    queue = try FrameQueue(
      capacity: FrameQueue.byteCount(
        largestFrame: camera.maximumByteCount, frameRate: camera.negotiatedFrameRate),
      largestFrame: camera.maximumByteCount)
    do throws(CallFailure) {
      requests = try SPSCRing(capacity: 4 * Self.maximumPending)
      selections = try SPSCRing(capacity: (1 << 13) + Self.reserve, takesMemoryNow: false)
    } catch { throw MediaError(error, at: .resources) }
  }

  /// Whether the camera's stream has ended.
  var isClosed: Bool { isClosedNow.load(ordering: .acquiring) }

  /// Sends a request to the capture thread.
  ///
  /// Any thread may call this.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - before: Called before the capture thread can see the request.
  /// - Returns: False if the stream has ended, or if too many requests already wait.
  func post(_ request: PhotoRequest, before: () -> Void = {}) -> Bool {
    sending.withLock { _ in
      guard !isClosed, requests.count < requests.capacity else { return false }
      before()
      return requests.push(request)
    }
  }

  /// Makes ``post(_:before:)`` reject all later requests.
  func close() { sending.withLock { _ in isClosedNow.store(true, ordering: .releasing) } }

  /// Copies a frame for the encoding thread.
  ///
  /// Called by the capture thread. Returns false if the memory for frames is full.
  func select(_ selected: SelectedFrame, _ bytes: UnsafeRawBufferPointer) -> Bool {
    guard selections.count + Self.reserve < selections.capacity,
      queue.push(QueuedFrame(observation: selected.frame.observation, bytes: bytes))
    else { return false }
    _ = selections.push(.frame(selected))
    wake.signal()
    return true
  }

  /// Reports that a capture ended early.
  ///
  /// Called by the capture thread. The number of pending captures is less than the number of
  /// reserved entries, so the push succeeds.
  func end(id: Int64, takenCount: Int, _ end: PhotoEnd) {
    _ = selections.push(.end(id: id, takenCount: takenCount, end))
    wake.signal()
  }

  /// Wakes the encoding thread, so that it notices the end of the stream.
  func wakeProcessor() { wake.signal() }

  /// Whether a frame of this size could be selected now.
  ///
  /// Called by the capture thread.
  func hasSpace(for byteCount: Int) -> Bool {
    selections.count + Self.reserve < selections.capacity && queue.hasSpace(for: byteCount)
  }
}
