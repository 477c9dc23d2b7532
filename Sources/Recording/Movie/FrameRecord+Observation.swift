// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV

extension FrameRecord {
  init(_ frame: FrameObservation, _ outcome: FrameOutcome) {
    let entered: Outcome =
      switch outcome {
      case .taken: .taken
      case .corrupt: .corrupt
      case .unshowable: .unshowable
      case .refused: .refused
      case .evicted: .evicted
      case .paused: .paused
      }
    self.init(
      entered, sequence: frame.stamp.sequence, microseconds: frame.microseconds,
      driverMicroseconds: frame.stamp.microseconds, arrival: frame.arrival,
      oldestReturn: frame.oldestReturn)
    isClockJump = frame.isClockJump
    unnoted = UInt32(clamping: frame.unnoted)
    overrunsBefore = frame.stamp.overrunsBefore
  }

  /// What the capture thread saw.
  var observation: FrameObservation {
    var stamp = FrameStamp(sequence: sequence, microseconds: driverMicroseconds)
    stamp.overrunsBefore = overrunsBefore
    var frame = FrameObservation(stamp: stamp, microseconds: microseconds, arrival: arrival)
    frame.isClockJump = isClockJump
    frame.oldestReturn = oldestReturn
    frame.unnoted = Int64(unnoted)
    return frame
  }

  /// What became of it.
  var frameOutcome: FrameOutcome {
    switch outcome {
    case .taken: .taken
    case .corrupt: .corrupt
    case .unshowable: .unshowable
    case .refused: .refused
    case .evicted: .evicted
    case .paused: .paused
    }
  }
}
