// SPDX-License-Identifier: Apache-2.0

import TestSupport

@testable import OvercrankFrameAccounting

/// A simple model of a camera whose driver takes times when transfers complete.
///
/// The camera makes a frame in each period. The driver's time of a frame is the next multiple of the
/// quantum, plus jitter.
struct QuantizedCamera {
  /// A way in which frames are lost.
  enum Loss: CaseIterable {
    /// The driver's sequence number also counts the lost frames.
    case counted
    /// The sequence number does not show the loss.
    case silent
    /// The driver's sequence number skips a number, but no frame is lost.
    case doubleCount
  }

  /// The frame rate that the driver granted.
  var rate: Double
  /// The relative difference between the true and the granted rate, in parts per million.
  var ppm = 0.0
  /// The step of the driver's timestamps in microseconds.
  var quantum: Double
  /// The greatest delay of a timestamp after the end of its transfer, in microseconds.
  var jitter = 3.0
  var count = 4_000
  var losses: [Loss] = []
  /// The least and greatest number of frames between two losses.
  var distance = 150...400
  var seed: UInt64

  /// The frames that arrive, and the true number of each.
  struct Take {
    var readings: [FrameTimeline.Reading] = []
    var numbers: [Int64] = []
    /// The indices in `readings` of the frames after a loss.
    var lossIndices: [Int] = []
    /// The true frame rate in frames per second.
    var rate = 0.0
  }

  func take() -> Take {
    var random = SeededGenerator(seed: seed)
    let period = 1e6 / rate * (1 + ppm * 1e-6)
    let phase = Double.random(in: 0...max(1, quantum), using: &random)
    var take = Take()
    take.rate = 1e6 / period
    var number: Int64 = 0
    var sequence = UInt32.random(in: 0...3, using: &random)
    var next = losses.isEmpty ? Int.max : 200 + Int.random(in: distance, using: &random)
    for index in 0..<count {
      if index == next, index < count - 100, let loss = losses.randomElement(using: &random) {
        next = index + Int.random(in: distance, using: &random)
        let some = Int64.random(in: 1...4, using: &random)
        take.lossIndices.append(index)
        switch loss {
        case .counted:
          number += some
          sequence &+= UInt32(some)
        case .silent: number += some
        case .doubleCount: sequence &+= 1
        }
      }
      let time = 5e8 + phase + Double(number) * period
      let completed = (time / quantum).rounded(.up) * quantum
      let late = Double.random(in: 0...1, using: &random) * jitter
      take.readings.append(.init(sequence: sequence, microseconds: Int64(completed + late)))
      take.numbers.append(number)
      number += 1
      sequence &+= 1
    }
    return take
  }

  /// Whether one lost frame has the same times as a camera that runs slightly slow.
  ///
  /// This is so if the step is a multiple of the frame period, up to the error of crystals.
  var isAmbiguous: Bool { isMultiple(quantum * rate / 1e6) }

  /// Whether the steps hide some losses for longer than the error of crystals is known.
  ///
  /// This is so if twice the step is a multiple of the frame period.
  var hidesLosses: Bool {
    isAmbiguous || (quantum * rate > 1.2e6 && isMultiple(quantum * rate / 5e5))
  }

  private func isMultiple(_ share: Double) -> Bool {
    share > 0.7 && abs(share - share.rounded()) < 0.02 * share.rounded()
  }
}
