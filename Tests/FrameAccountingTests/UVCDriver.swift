// SPDX-License-Identifier: Apache-2.0

import TestSupport

@testable import OvercrankFrameAccounting

/// A model of an isochronous camera behind the kernel's driver `uvcvideo`.
///
/// The driver counts the changes of the frame ID, which each payload carries, and takes the time of a
/// frame when the transfer with its first payload completes. It is a function of the camera's faults
/// alone, so a take of it needs no emulated machine (Tests/Tools/Lab/UsbCamera).
struct UVCDriver {
  /// A fault of the camera, as Tests/Tools/Lab/UsbCamera describes it.
  enum Fault: CaseIterable {
    case skip, packets, errorBit, silent, truncate, stuck, noEnd, mute, allPackets, header

    /// The number of frames that are lost or damaged.
    var cost: Int64 {
      switch self {
      case .noEnd: 0
      case .mute: 2
      case .allPackets: 3
      default: 1
      }
    }

    /// The number of those frames that arrive damaged.
    func corruptCount(deliversDamaged: Bool) -> Int64 {
      switch self {
      case .silent, .truncate: 1
      case .packets, .errorBit, .allPackets: deliversDamaged ? 1 : 0
      case .skip, .stuck, .noEnd, .mute, .header: 0
      }
    }
  }

  var rate: Int
  var ppm = 0.0
  /// The duration of a transfer in microseconds: 32 packets of 125 microseconds.
  var transfer = 4_000.0
  /// The greatest delay of a timestamp after the end of its transfer, in microseconds.
  var jitter = 0.0
  /// The share of frames whose times are late by up to half a transfer more.
  var lateShare = 0.0
  /// The time of the first frame in microseconds.
  var phase = 0.0
  /// Whether the driver delivers damaged frames with an error flag (its parameter `nodrop`).
  var deliversDamaged = false
  /// The faults by the number of their frame.
  var faults: [Int: Fault] = [:]

  /// The buffers that a program dequeues, for the frames from `first` on.
  func frames(
    _ count: Int, from first: Int = 0, random: inout SeededGenerator
  ) -> [FrameObservation] {
    var frames: [FrameObservation] = []
    var (sequence, hasError) = (-1, false)
    // The frame ID of the camera and the last one that the driver saw, and a buffer without data.
    var (id, lastID) = (false, true)
    var waiting: FrameObservation?
    let period = 1e6 / Double(rate) * (1 + ppm * 1e-6)
    for number in 0..<count {
      let fault = faults[number]
      if fault == .skip { continue }
      if fault != .stuck { id.toggle() }
      if fault == .mute { continue }
      if fault == .allPackets {
        hasError = true
        continue
      }
      // A payload with the frame ID of the last frame is dropped.
      if id == lastID, waiting == nil { continue }
      // The driver also counts when it notices the end of a frame by the next frame ID.
      if id != lastID { sequence += faults[number - 1] == .noEnd ? 2 : 1 }
      lastID = id
      let completed = ((phase + Double(number) * period) / transfer).rounded(.up) * transfer
      var time = 5e8 + completed + Double.random(in: 0...1, using: &random) * jitter
      if Double.random(in: 0..<1, using: &random) < lateShare {
        time += Double.random(in: 0...transfer / 2, using: &random)
      }
      var frame =
        waiting ?? FrameObservation(sequence: UInt32(sequence), microseconds: Int64(time))
      waiting = fault == .header ? frame : nil
      if fault == .header { continue }
      if fault == .packets || fault == .errorBit { hasError = true }
      frame.isMarkedCorrupt = hasError
      hasError = false
      let isDamaged = frame.isMarkedCorrupt || fault == .silent || fault == .truncate
      if isDamaged { frame.outcome = .corrupt }
      if number >= first, deliversDamaged || !frame.isMarkedCorrupt { frames.append(frame) }
    }
    return frames
  }
}
