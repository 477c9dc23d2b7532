// SPDX-License-Identifier: Apache-2.0

/// The range in which the timestamps of a driver with quantized time may lie, relative to the grid.
///
/// The driver rounds times up to its step, so the latest timestamp is at most one step later than
/// the earliest one. The range is known completely when the frames have passed through a whole
/// step. Until then, the unseen part of the step is permitted on both sides.
struct LatenessWindow {
  /// The step of the timestamps in microseconds.
  var quantum: Double
  /// The lateness of the earliest and of the latest timestamp in the window, in microseconds.
  private var (earliest, latest): (Double, Double)

  init(quantum: Double, around lateness: Double) {
    self.quantum = quantum
    (earliest, latest) = (lateness, lateness)
  }

  /// The least and the greatest permitted lateness in microseconds.
  var bounds: ClosedRange<Double> { (latest - quantum)...(earliest + quantum) }

  /// The distance of a timestamp from the permitted range, in microseconds.
  ///
  /// Positive if the timestamp is too late, negative if it is too early, and zero if the step
  /// explains it.
  func excess(of lateness: Double) -> Double {
    max(0, lateness - bounds.upperBound) + min(0, lateness - bounds.lowerBound)
  }

  /// Forgets a part of the known range on both sides.
  ///
  /// Call this as time passes, because the period of the grid is not exactly the camera's.
  mutating func forget(_ microseconds: Double) {
    let amount = min(microseconds, (latest - earliest) / 2)
    earliest += amount
    latest -= amount
  }

  /// Includes a timestamp.
  ///
  /// If the timestamp is outside the permitted range, the window moves, but at most by `limit`.
  mutating func include(_ lateness: Double, movingBy limit: Double = .infinity) {
    let lateness = max(bounds.lowerBound - limit, min(lateness, bounds.upperBound + limit))
    if lateness > latest {
      latest = lateness
      earliest = max(earliest, latest - quantum)
    } else if lateness < earliest {
      earliest = lateness
      latest = min(latest, earliest + quantum)
    }
  }
}
