// SPDX-License-Identifier: Apache-2.0

package import OvercrankCapture
import OvercrankDeviceDiscovery

/// The error of a camera that ends without a frame.
private struct NoSample: Error {}

extension SampleBuffer {
  /// Takes the first frame of a synthetic camera in a mode, or in its fastest format.
  ///
  /// When it returns, the session has stopped, and the frame still holds the camera's buffer.
  package static func first(of name: String, mode: String? = nil) async throws -> SampleBuffer {
    let camera = try CaptureDevice.named(name)
    let format =
      try mode.map { try camera.format(matching: ModeRequest(parsing: $0)) }
      ?? camera.fastestFormat()
    let session = try CaptureSession(device: camera, format: format)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    let samples = await output.samples(1)
    await session.stopRunning()
    guard let sample = samples.first else { throw NoSample() }
    return sample
  }
}
