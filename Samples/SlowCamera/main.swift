// SPDX-License-Identifier: Apache-2.0

// A camera for slow motion: enables the high frame rate, records two seconds, and plays them slowly.
//
//   SlowCamera [DEVICE] [RATE]     RATE is the rate of playback, such as 1/8
import Overcrank

let clock = MonotonicHostClock()

/// Records two seconds at the camera's high frame rate.
func record(_ camera: CaptureDevice) throws -> Asset {
  let format = try camera.highFrameRateFormat()
  let session = try CaptureSession(device: camera, format: format)
  var take = RecordingSettings(path: "slow-camera.mov")
  take.limit = CaptureLimit(duration: MediaTime(seconds: 2))
  let report = try MovieFileOutput(session: session, settings: take).record()
  print("recorded \(report.ledger.stored) of \(report.ledger.expected) frames in \(format.id)")
  return try Asset(path: "slow-camera.mov")
}

/// Plays an asset for a second, and takes the frames that a 60 Hz screen would show.
func play(_ asset: Asset, at rate: Speed) throws {
  let player = try Player(asset)
  // The clock of the player stands still until the first frame is decoded.
  while player.state == .seeking {
    clock.sleep(until: try MediaTime(clock.now + MediaTime(1, over: 1_000)))
  }
  try player.setRate(rate.fraction)
  let end = try MediaTime(clock.now + MediaTime(seconds: 1))
  var shown: Set<Int> = []
  while clock.now < end {
    let refresh = try MediaTime(clock.now + MediaTime(nanoseconds: 16_666_667))
    if let frame = player.frame(at: refresh) { shown.insert(frame.index) }
    clock.sleep(until: refresh)
  }
  print("played \(shown.count) frames at \(rate)")
}

let arguments = CommandLine.arguments.dropFirst()
let camera = try CaptureDevice.named(arguments.first ?? "synthetic:640x480@240")
if try camera.supportsHighFrameRateCapture {
  try play(record(camera), at: Speed(parsing: arguments.dropFirst().first ?? "1/8"))
} else {
  print("\(camera.name) has no high frame rate")
}
