// SPDX-License-Identifier: Apache-2.0

// A camera with zoom: moves a zoom slider in steps, starts a smooth zoom to the greatest factor, and
// cancels the smooth zoom half-way. Writes an image after each of these: zoom_1.png to zoom_4.png.
//
//   ZoomCamera [DEVICE]
import Glibc
import Overcrank

let name = CommandLine.arguments.dropFirst().first ?? "synthetic:640x480@60"
let device = try CaptureDevice.named(name)
let camera = try DeviceInput(device: device, format: device.fastestFormat())
let session = CaptureSession(camera)
let preview = try VideoPreview(session: session)
let video = VideoDataOutput()
try session.addOutput(video)
try session.startRunning()

func write(_ sample: SampleBuffer, to path: String) throws {
  guard let file = fopen(path, "wb") else { return }
  let data = try sample.pngData()
  fwrite(data, 1, data.count, file)
  fclose(file)
  print("\(path): factor \(sample.attachments.videoZoomFactor)")
}

let greatest = min(16, camera.videoMaxZoomFactor)
var (written, skipped) = (0, 0)
for await sample in video.frames {
  if written == 3, camera.isRampingVideoZoom {
    if camera.videoZoomFactor >= 2 { camera.cancelVideoZoomRamp() }
    continue
  }
  // Frames that were captured before a change may still arrive, and drivers crop with a delay.
  guard sample.attachments.videoZoomFactor == camera.videoZoomFactor else { continue }
  skipped += 1
  if skipped <= 2 { continue }
  skipped = 0
  written += 1
  try write(sample, to: "zoom_\(written).png")
  switch written {
  // A slider from 0 to 1 feels even if each step multiplies the zoom factor.
  case 1, 2: try camera.setVideoZoomFactor(pow(greatest, Double(written) / 4))
  case 3:
    try camera.setVideoZoomFactor(1)
    try camera.ramp(toVideoZoomFactor: 8, withRate: 0.5)
  default: break
  }
  if written == 4 { break }
}
let factor = camera.videoZoomFactor
print((2..<8).contains(factor) ? "cancelled" : "not cancelled")
// A preview shows the same part of the frame as the written image.
if let geometry = preview.geometry(viewWidth: 640, viewHeight: 480) {
  print(geometry.zoomFactor == factor ? "the preview follows" : "the preview differs")
}
session.stopRunning()
