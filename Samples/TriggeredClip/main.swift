// SPDX-License-Identifier: Apache-2.0

// Waits for motion, records half a second before and after it, and exports the clip at 1/8 speed.
//
//   TriggeredClip [DEVICE]
import Overcrank

let name = CommandLine.arguments.dropFirst().first ?? "synthetic:640x480@240"
let session = try CaptureSession(CaptureDevice.named(name))
let output = try MovieFileOutput(session: session, settings: RecordingSettings(path: "clip.mov"))
var triggers = TriggerSettings(
  preDuration: MediaTime(1, over: 2), postDuration: MediaTime(1, over: 2))
triggers.motion = MotionTrigger(share: 0.001)
let take = try output.record(on: triggers)
guard let clip = take.clips.first else { throw take.problem ?? MediaError(.cancelled, "no clip") }
var slow = try Composition(Asset(path: clip.path))
try slow.setSpeed(Speed(1, over: 8), in: TimeRange(duration: slow.duration))
let report = try ExportSession(slow).export(
  ExportSettings(path: "slow.mov", mode: .passthrough()))
print("\(report.path): \(report.framesCopied) frames in \(report.duration.displayText) s")
