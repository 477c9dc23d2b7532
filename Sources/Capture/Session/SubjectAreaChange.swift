// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import Synchronization

/// A substantial change of the scene in front of a camera.
public struct SubjectAreaChange: Hashable, Sendable {
  /// The capture time of the first changed frame, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  /// The mean luma of the first changed frame, from 0 (black) to 1.
  public let meanLevel: Double
  /// The fraction of the image area whose luma changed, from 0 to 1.
  public let changedShare: Double
}

/// Detects scene changes: compares each frame with the frame of the last reported change or, before
/// any change, with the first frame.
struct SubjectAreaDetector {
  /// The smallest luma difference at which a grid cell counts as changed.
  ///
  /// Luma ranges from 0 to 255.
  private static let step = 16.0
  /// The smallest fraction of changed grid cells that counts as a scene change.
  private static let share = 0.25
  /// The shortest time between two reported changes, in microseconds.
  private static let quietPeriod: Int64 = 1_000_000

  private var reference: [Double] = []
  private var lastChange: Int64?

  /// Returns the scene change that a frame shows, or nil if the scene has not changed
  /// substantially.
  ///
  /// `time` is the frame's capture time in microseconds.
  mutating func see(_ grid: BrightnessGrid, at time: Int64) -> SubjectAreaChange? {
    guard reference.count == grid.averages.count, !reference.isEmpty else {
      reference = grid.averages
      return nil
    }
    if let lastChange, time &- lastChange < Self.quietPeriod, time >= lastChange { return nil }
    let changed = zip(grid.averages, reference).count { abs($0 - $1) >= Self.step }
    let share = Double(changed) / Double(reference.count)
    guard share >= Self.share else { return nil }
    reference = grid.averages
    lastChange = time
    return SubjectAreaChange(
      presentationTimeStamp: MediaTime(microseconds: time), meanLevel: grid.meanLevel,
      changedShare: share)
  }
}

extension DeviceInput {
  /// Substantial changes of the scene.
  ///
  /// A change is reported when light or motion has changed the luma of at least a quarter of the
  /// image.
  ///
  /// Corresponds to `subjectAreaDidChangeNotification`. Monitoring is on while a sequence exists.
  /// Five frames per second are measured, on a thread other than the capture thread. Reported
  /// changes are at least one second apart. H.264 frames are not measured. The sequence ends when
  /// the input is destroyed.
  public var subjectAreaChanges: some AsyncSequence<SubjectAreaChange, Never> & Sendable {
    let (stream, continuation) = AsyncStream<SubjectAreaChange>.makeStream(
      bufferingPolicy: .bufferingNewest(256))
    let detector = Detector()
    let number = scene.add(
      SceneMonitor.Listener(
        see: { grid, time in
          if let change = detector.see(grid, time) { continuation.yield(change) }
        }, end: { continuation.finish() }))
    if let number {
      continuation.onTermination = { [weak scene = scene] _ in scene?.remove(number) }
    } else {
      continuation.finish()
    }
    return stream
  }

  private final class Detector: Sendable {
    private let detector = Mutex(SubjectAreaDetector())

    func see(_ grid: BrightnessGrid, _ time: Int64) -> SubjectAreaChange? {
      detector.withLock { $0.see(grid, at: time) }
    }
  }
}
