// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import OvercrankV4L2
import Synchronization
import TestSupport

/// A take from the simulated camera, with the real capture loop on one thread and accounting on
/// another.
struct Take {
  let seed: UInt64
  let frames: Int64

  /// The configuration of the camera, with faults of every kind at rates that depend on the seed.
  private var configuration: String {
    let share = [0.002, 0.01, 0.03][Int(seed % 3)]
    let jitter = [0, 0.1, 0.3][Int(seed / 3 % 3)]
    let wrap = seed % 4 == 0 ? " sequence0=4294960000" : " start=\(seed % 7)"
    return "tiny seed=\(seed) faults=\(share) apart=14 jitter=\(jitter)\(wrap)"
  }

  /// Records a take and compares its ledger with the log of the simulated camera.
  func compare() throws -> Comparison {
    let machine = try FakeVideoSystemCalls(configuration)
    let log = TruthLog(reserving: Int(frames) * 5 / 4)
    machine.onTruth(log)
    let queue = try FrameQueue(capacity: 8 << 20)
    machine.pace { queue.fillLevel < 0.5 }
    let input = try machine.input()
    let control = CaptureControl()
    let capture = try CaptureThread.take(
      from: input, limit: CaptureLimit(frameCount: frames), queue: queue, control: control)
    var account = FrameAccount(frameRate: input.negotiatedFrameRate, trustsCounter: false) {
      control.switchedOn.load(ordering: .relaxed)
    }
    while queue.withNextFrame({ account.record($0.observation) }) != nil {}
    account.close(capture.end?.frames ?? FrameAccount.End())
    return Comparison(account, log.causes)
  }
}
