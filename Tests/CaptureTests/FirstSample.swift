// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import Testing

/// Takes the first frame of a synthetic camera in a mode, or in its fastest format.
///
/// When it returns, the session has stopped, and the frame still holds the camera's buffer.
func firstSample(of name: String, mode: String? = nil) async throws -> SampleBuffer {
  let camera = try CaptureDevice.named(name)
  let format =
    try mode.map { try camera.format(matching: ModeRequest(parsing: $0)) } ?? camera.fastestFormat()
  let session = try CaptureSession(device: camera, format: format)
  let output = VideoDataOutput()
  try session.addOutput(output)
  try await session.startRunning()
  var iterator = output.frames.makeAsyncIterator()
  let sample = try #require(await iterator.next())
  await session.stopRunning()
  return sample
}
