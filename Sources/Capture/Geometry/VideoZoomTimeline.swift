// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import Synchronization

/// The zoom factor of a camera at each capture time.
///
/// Frames may wait in a queue, so the factor belongs to a frame's time and not to the time at which
/// the frame is processed. All calls may come from any thread except the capture thread, because
/// they take a lock.
final class VideoZoomTimeline: Sendable {
  /// A constant zoom factor or a zoom ramp that begins at a capture time.
  struct Piece: Equatable, Sendable {
    /// The capture time at which the constant factor or the ramp begins, in microseconds.
    let begin: Int64
    let start: Double
    let target: Double
    /// The rate of the ramp in powers of two per second; 0 for a constant factor.
    let rate: Double
    /// Whether the driver crops, so that outputs must not crop again.
    let isByDriver: Bool

    init(
      from begin: Int64, start: Double, target: Double, rate: Double = 0, isByDriver: Bool = false
    ) {
      (self.begin, self.start, self.target, self.rate) = (begin, start, target, rate)
      self.isByDriver = isByDriver
    }

    /// The zoom factor at a capture time in microseconds.
    func factor(at time: Int64) -> Double {
      guard rate > 0 else { return target }
      let distance = log2(target / start)
      let passed = rate * Double(max(0, time &- begin)) / 1_000_000
      if passed >= abs(distance) { return target }
      return start * exp2(distance < 0 ? -passed : passed)
    }

    /// The capture time of the end of the ramp, in microseconds.
    var end: Int64 {
      guard rate > 0 else { return begin }
      let microseconds = (abs(log2(target / start)) / rate * 1_000_000).rounded(.up)
      return begin.addingReportingOverflow(Int64(saturating: microseconds)).overflow
        ? .max : begin &+ Int64(saturating: microseconds)
    }
  }

  /// The greatest number of zoom changes (constant factors and ramps) to keep.
  ///
  /// Older ones are discarded. They would be needed only for a frame that waited during thousands
  /// of zoom changes.
  private static let capacity = 4_096

  private let pieces = Mutex<[Piece]>([])
  /// Whether the zoom factor was ever set, so that it may differ from 1.
  private let isSet = Atomic<Bool>(false)

  /// Adds a constant factor or a ramp, and removes all others that begin at the same time or later.
  func append(_ piece: Piece) {
    pieces.withLock { pieces in
      while let last = pieces.last, last.begin >= piece.begin { pieces.removeLast() }
      if pieces.count >= Self.capacity { pieces.removeFirst(Self.capacity / 2) }
      pieces.append(piece)
    }
    isSet.store(true, ordering: .releasing)
  }

  /// The constant factor or the ramp in force at a capture time in microseconds.
  ///
  /// Nil before the factor was first set.
  func piece(at time: Int64) -> Piece? {
    guard isSet.load(ordering: .acquiring) else { return nil }
    return pieces.withLock { pieces in pieces.last { $0.begin <= time } }
  }

  /// The last constant factor or ramp, or nil before the zoom factor was first set.
  var last: Piece? { pieces.withLock { $0.last } }

  /// The zoom factor at a capture time in microseconds.
  func factor(at time: Int64) -> Double { piece(at: time)?.factor(at: time) ?? 1 }

  /// The factor that outputs must apply to a frame, which is 1 if the driver has cropped it.
  func outputFactor(at time: Int64) -> Double {
    guard let piece = piece(at: time), !piece.isByDriver else { return 1 }
    return piece.factor(at: time)
  }
}
