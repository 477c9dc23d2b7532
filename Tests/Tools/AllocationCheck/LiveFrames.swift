// SPDX-License-Identifier: Apache-2.0

import AllocationCounter
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore

/// A program that reads each live frame with the blocking API.
enum LiveFrames {
  /// Reads frames of the synthetic camera and counts the allocations of the whole process: camera,
  /// session and program.
  ///
  /// The camera waits for the program. So a busy machine drops no frame, which matters because the
  /// runtime allocates type metadata at the first drop.
  static func look(frames: Int) throws -> Outcome {
    let session = try CaptureSession(
      CaptureDevice.named("synthetic:320x240/grey?pace=max"), frameRate: FrameRate(240))
    let output = VideoDataOutput()
    try session.addOutput(output)
    try session.startRunning()
    defer { session.stopRunning() }
    var outcome = Outcome()
    var sum = 0
    var before: Int64 = 0
    for number in 0..<frames {
      if number == warmUp { before = allocation_total() }
      output.withNextFrame { frame in
        sum &+= frame.withBytes { $0.reduce(0) { $0 &+ Int($1) } }
      }
      if waste > 0, number % waste == 0 {
        UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1).deallocate()
      }
    }
    outcome.requests = allocation_total() - before
    outcome.frames = sum > 0 ? frames - warmUp : 0
    return outcome
  }
}
