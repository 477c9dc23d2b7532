// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankFrameAccounting
import OvercrankLinuxSystem
public import OvercrankMediaCore
import Synchronization

/// The zoom factor of a frame.
public struct VideoZoomFrame: Hashable, Sendable {
  /// The capture time of the frame, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  /// The zoom factor of the camera in this frame.
  public let videoZoomFactor: Double
  /// Whether a zoom ramp continues after this frame.
  public let isRamping: Bool
}

/// The sink that reports the zoom factor of each frame.
///
/// The sink is created when a program first requests the factors. The capture thread writes capture
/// times to a ring. A thread of the sink reads them and looks up the factors.
final class VideoZoomSink: FrameSink {
  private let timeline: VideoZoomTimeline
  private let times: SPSCRing<Int64>
  private let wake = DispatchSemaphore(value: 0)
  private let isOver = Atomic<Bool>(false)
  let hub = EventHub<VideoZoomFrame>(capacity: 4_096)

  /// Creates the sink and starts its thread.
  ///
  /// - Throws: `MediaError` with `.outOfMemory`.
  init(_ timeline: VideoZoomTimeline) throws(MediaError) {
    self.timeline = timeline
    times = try CallStage.resources.converting { () throws(CallFailure) in
      try SPSCRing(capacity: 1_024)
    }
    try BlockingThread.started { [self] in run() }.detach()
  }

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard frame.isWhole else { return nil }
    // If the ring is full because the sink's thread is late, the factor of this frame is not
    // reported.
    if times.push(frame.observation.microseconds) { wake.signal() }
    return nil
  }

  func hasSpace(for byteCount: Int) -> Bool { times.count < times.capacity }

  func end(_ end: CaptureEnd) {}

  /// Ends the thread and all sequences of zoom factors.
  func finish() {
    isOver.store(true, ordering: .releasing)
    wake.signal()
  }

  private func run() {
    while !isOver.load(ordering: .acquiring) {
      wake.wait()
      while let time = times.pop() {
        let piece = timeline.piece(at: time)
        hub.send(
          VideoZoomFrame(
            presentationTimeStamp: MediaTime(microseconds: time),
            videoZoomFactor: piece?.factor(at: time) ?? 1,
            isRamping: piece.map { $0.rate > 0 && time < $0.end } ?? false))
      }
    }
    hub.finish()
  }
}
