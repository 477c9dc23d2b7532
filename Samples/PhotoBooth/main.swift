// SPDX-License-Identifier: Apache-2.0

// A photo booth without a window: counts down from 3, then takes a burst of four photos.
//
//   PhotoBooth [DEVICE]
import Overcrank

let name = CommandLine.arguments.dropFirst().first ?? "synthetic:640x480@120"
let session = try CaptureSession(CaptureDevice.named(name))
let photos = PhotoOutput()
try session.addOutput(photos)
// The clock of the camera counts down: the output delivers one frame per second.
let seconds = VideoDataOutput()
seconds.minFrameDuration = MediaTime(seconds: 1)
try session.addOutput(seconds)
try session.startRunning()
var count = 3
for await _ in seconds.frames {
  guard count > 0 else { break }
  print(count)
  count -= 1
}
var burst = PhotoSettings()
burst.photoCount = 4
burst.destination = .files(overwrites: true) { photo in "booth_\(photo.index + 1).jpg" }
for photo in try photos.photos(with: burst) {
  print("\(photo.path ?? ""): frame \(photo.sequence)")
}
session.stopRunning()
