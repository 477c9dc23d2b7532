// SPDX-License-Identifier: Apache-2.0

// Analyzes each frame of a live camera at 240 fps, without copying it and without allocating
// memory. Prints the mean luma of the brightest of 240 frames.
//
//   LiveAnalysis [DEVICE]
import Overcrank

let name = CommandLine.arguments.dropFirst().first ?? "synthetic:640x480/grey"
let session = try CaptureSession(CaptureDevice.named(name), frameRate: 240)
let output = VideoDataOutput()
try session.addOutput(output)
try session.startRunning()
var brightest = 0
for _ in 0..<240 {
  let mean = output.withNextFrame { $0.withBytes { $0.reduce(0) { $0 + Int($1) } / $0.count } }
  brightest = max(brightest, mean ?? 0)
}
print("the brightest of 240 frames has a mean of \(brightest)")
