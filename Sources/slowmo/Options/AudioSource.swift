// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// What a take hears, as `--audio` names it.
struct AudioSource {
  /// The microphone; nil for that of a camera that has one, or none.
  var microphone: CaptureDevice?
  /// Whether sound is recorded where there is some.
  var isWanted: Bool

  /// Finds the microphone of this name; `none` is none, and without a name the camera's own sound
  /// is taken where it has one.
  ///
  /// - Throws: `MediaError` where there is no such device, or this user may not use it;
  ///   `CommandError` for one that hears nothing.
  init(named name: String?) throws {
    isWanted = name != "none"
    guard let name, isWanted else { return }
    let device = try CaptureDevice.named(name)
    guard device.media == [.audio] else {
      throw CommandError(
        .unavailable, code: "not_a_capture_device", "\(device.address) is not a microphone",
        hint: "see which there are with: slowmo devices; a camera's own sound needs no --audio")
    }
    microphone = device
  }

  /// A session of a camera, and of the microphone beside it.
  ///
  /// - Throws: `MediaError` where the microphone cannot be opened.
  func session(of camera: DeviceInput) throws -> CaptureSession {
    guard let microphone else { return CaptureSession(camera) }
    // It comes first and begins first, so that nothing is missing under the first picture, and
    // takes the place of what the camera hears.
    let session = CaptureSession(try MicrophoneInput(device: microphone))
    try session.addInput(camera)
    return session
  }
}
