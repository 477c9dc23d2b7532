// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The sink of a delayed preview, which copies each frame into a ring as the camera delivered it.
final class DelaySink: FrameSink {
  let pool: BufferPool
  let queue: FrameQueue
  let gate: ConnectionGate
  let format: FormatDescription
  let geometry: ConnectionGeometry
  private let counters: DataOutputCounters
  private let arrivals: ArrivalCounter

  init(
    _ camera: DeviceInput, _ connection: CaptureConnection, _ queue: FrameQueue,
    _ counters: DataOutputCounters, _ arrivals: ArrivalCounter
  ) {
    pool = camera.pool
    gate = connection.gate
    format = FormatDescription(camera.delivery)
    geometry = connection.geometry
    (self.queue, self.counters, self.arrivals) = (queue, counters, arrivals)
  }

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard gate.isOpen.load(ordering: .relaxed) else { return nil }
    counters.offered.wrappingAdd(1, ordering: .relaxed)
    arrivals.note(frame.observation)
    if !frame.isWhole {
      counters.note(.corrupt)
    } else if !queue.push(QueuedFrame(observation: frame.observation, bytes: frame.bytes)) {
      counters.note(.outOfBuffers)
    }
    return nil
  }

  // This method does nothing, because the frames stay available to the view after the end of the
  // stream.
  func end(_ end: CaptureEnd) {}
}
