// SPDX-License-Identifier: Apache-2.0

// Saves five video frames of a camera, a tenth of a second apart, as PNG files. Each file name
// contains the frame's sequence number.
//
//   FramesToPNG [DEVICE]
import Foundation
import Overcrank

let name = CommandLine.arguments.dropFirst().first ?? "synthetic:640x480@240"
let camera = try CaptureDevice.named(name)
let session = try CaptureSession(camera)
let output = VideoDataOutput()
output.minFrameDuration = MediaTime(1, over: 10)
try session.addOutput(output)
try session.startRunning()
var count = 0
for await sample in output.frames {
  let file = "frame-\(sample.attachments.sequence).png"
  try Data(sample.pngData()).write(to: URL(fileURLWithPath: file))
  print("\(file): \(sample.formatDescription.width)x\(sample.formatDescription.height)")
  count += 1
  if count == 5 { break }
}
session.stopRunning()
