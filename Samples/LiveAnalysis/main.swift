// SPDX-License-Identifier: Apache-2.0

// Looks at each frame of a camera at 240 fps while it is captured, without a copy and without a
// request for memory: how bright the brightest of 240 frames is.
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
