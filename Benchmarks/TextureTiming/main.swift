// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankTextures

// Measures the upload of frames as textures: 1280x720, in three formats.
//
//   TextureTiming     prints the median and the 95th percentile of 200 frames

let clock = MonotonicHostClock()
let goal = 0.5

for mode in ["1280x720/yuyv", "1280x720/grey", "1280x720/mjpg"] {
  let camera = try CaptureDevice.named("synthetic:1280x720@240")
  let session = try CaptureSession(
    device: camera, format: camera.format(matching: ModeRequest(parsing: mode)))
  let video = VideoDataOutput()
  try session.addOutput(video)
  let context = try OffscreenContext(width: 64, height: 36)
  let cache = try TextureCache()
  let renderer = try TextureRenderer()
  try session.startRunning()
  var times: [Double] = []
  while times.count < 200 {
    let uploaded = try video.withNextFrame { frame in
      let start = clock.now
      let texture = try cache.texture(for: frame)
      times.append((clock.now - start).doubleValue * 1_000)
      return texture
    }
    guard let texture = uploaded else { break }
    renderer.draw(texture)
    context.clear()
  }
  session.stopRunning()
  times.sort()
  let (median, late) = (times[times.count / 2], times[times.count * 95 / 100])
  func text(_ value: Double) -> String { "\((value * 1_000).rounded() / 1_000) ms" }
  // The time of MJPEG includes its decoding, for which there is no goal.
  let verdict = mode.hasSuffix("mjpg") ? "" : median <= goal ? ", goal met" : ", goal missed"
  print("upload of \(mode): median \(text(median)), 95 % \(text(late))\(verdict)")
}
