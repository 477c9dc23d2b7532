// SPDX-License-Identifier: Apache-2.0

// A camera with a window: photos, Live Photos and movies.
//
//   AVCam [--script FILE] [DEVICE ...]
//
// Keys: space takes a photo, or starts and ends a movie. m switches between photos and movies, and c
// switches the camera. l enables Live Photos, f changes the flash mode, and q quits. A click focuses
// and exposes at that point. A script presses the same keys; see Script.swift.
import Overcrank

var names = Array(CommandLine.arguments.dropFirst())
var script: Script?
if names.first == "--script", names.count > 1 {
  script = try Script(path: names[1])
  names.removeFirst(2)
}
if names.isEmpty { names = ["synthetic:640x480@60"] }
let app = try CameraApp(names.map { try CaptureDevice.named($0) })
try CameraView(app, script).run()
