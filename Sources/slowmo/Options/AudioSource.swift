// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The audio source of a recording, as selected by `--audio`.
struct AudioSource {
  /// The microphone.
  ///
  /// Nil if the camera's own audio or no audio is recorded.
  var microphone: CaptureDevice?
  /// Whether audio is recorded if the device has any.
  var isWanted: Bool

  /// Finds a microphone by name.
  ///
  /// Without a name, the camera's own audio is recorded if it has any. `none` disables audio.
  ///
  /// - Throws: `MediaError` if the device is missing or access is denied; `CommandError` if the
  ///   device is not a microphone.
  init(named name: String?) throws {
    isWanted = name != "none"
    guard let name, isWanted else { return }
    let device = try CaptureDevice.named(name)
    guard device.media == [.audio] else {
      throw CommandError(
        .unavailable, code: "not_a_capture_device", "\(device.address) is not a microphone",
        hint: "choose one listed by slowmo devices; omit --audio for the audio of the source")
    }
    microphone = device
  }

  /// Creates a session of a camera and, if there is one, the microphone.
  ///
  /// - Throws: `MediaError` if the microphone cannot be opened.
  func session(of camera: DeviceInput) throws -> CaptureSession {
    guard let microphone else { return CaptureSession(camera) }
    // The microphone is added before the camera, so that its audio covers the first frame. With a
    // microphone, the camera's own audio is not recorded.
    let session = CaptureSession(try MicrophoneInput(device: microphone))
    try session.addInput(camera)
    return session
  }
}
