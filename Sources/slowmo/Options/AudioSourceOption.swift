// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The audio source of a recording, as selected by `--audio`.
struct AudioSourceOption {
  /// The microphone that the user named.
  ///
  /// Nil if the camera's own audio or no audio is recorded.
  private let named: CaptureDevice?
  /// Whether audio is recorded if the device has any.
  let isWanted: Bool

  /// Finds a microphone by name.
  ///
  /// Without a name, the camera's own audio is recorded if it has any: that of the microphone of the
  /// same USB device, of the synthetic camera, or of the played file. `none` disables audio.
  ///
  /// - Throws: `MediaError` if the device is missing or access is denied; `CommandError` if the
  ///   device is not a microphone.
  init(named name: String?) throws {
    isWanted = name != "none"
    guard let name, isWanted else {
      named = nil
      return
    }
    let device = try CaptureDevice.named(name)
    guard device.media == [.audio] else {
      throw CommandError(
        .unavailable, code: "not_a_capture_device", "\(device.address) is not a microphone",
        hint: "choose one listed by slowmo devices; omit --audio for the audio of the source")
    }
    named = device
  }

  /// Returns the microphone that is recorded with a camera: the named one or the camera's own.
  func microphone(of camera: CaptureDevice) -> CaptureDevice? {
    named ?? (isWanted ? camera.microphone : nil)
  }

  /// Creates a session of a camera and, if there is one, the microphone.
  ///
  /// If the camera's own microphone cannot be used, `warn` is called with the reason, and the session
  /// has no audio.
  ///
  /// - Throws: `MediaError` if a named microphone cannot be opened.
  func session(
    of camera: DeviceInput, warn: (String) -> Void
  ) throws -> CaptureSession {
    guard let microphone = try openMicrophone(of: camera.device, warn: warn) else {
      return CaptureSession(camera)
    }
    // The microphone is added before the camera, so that its audio covers the first frame. With a
    // microphone, the camera's own audio is not recorded.
    let session = CaptureSession(microphone)
    try session.addInput(camera)
    return session
  }

  private func openMicrophone(
    of camera: CaptureDevice, warn: (String) -> Void
  ) throws -> MicrophoneInput? {
    if let named { return try MicrophoneInput(device: named) }
    guard isWanted else { return nil }
    do throws(MediaError) { return try MicrophoneInput(ofCamera: camera) } catch {
      warn(Self.warning(of: camera, error))
      return nil
    }
  }

  /// Returns the warnings about a camera's microphone that a session has omitted since it started.
  func warnings(of camera: CaptureDevice, in session: CaptureSession) -> [String] {
    session.omittedInputs.map { Self.warning(of: camera, $0.error) }
  }

  private static func warning(of camera: CaptureDevice, _ error: MediaError) -> String {
    "the microphone of \(camera.address) is not used: \(CommandError(error).line)"
  }
}
