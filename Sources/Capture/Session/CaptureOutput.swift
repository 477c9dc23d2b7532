// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// A destination for captured frames and audio.
///
/// Examples are ``VideoDataOutput``, ``AudioDataOutput`` and `MovieFileOutput`. An output belongs
/// to one session at a time. Only this library's outputs conform, and a session rejects other
/// conforming types. Programs receive frames and audio from the data outputs.
public protocol CaptureOutput: AnyObject, Sendable {
  /// The media types that the output accepts.
  var mediaTypes: [MediaType] { get }
}

/// The requirements of an output that a session can feed.
package protocol FrameOutput: CaptureOutput {
  /// Makes the sink for the frames of a video connection.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - camera: The source of the frames: the connection's camera or, if the output decodes frames,
  ///     that camera's ``DeviceInput/imageInput()``.
  /// - Returns: The sink, or nil while the output needs no frames.
  /// - Throws: `MediaError` with `.outOfMemory` if memory or a thread is unavailable.
  func sink(
    for connection: CaptureConnection, from camera: DeviceInput
  ) throws(MediaError) -> (any FrameSink)?

  /// Whether the output decodes frames, and so needs those that can be decoded one by one.
  var decodesFrames: Bool { get }

  /// Whether the output accepts audio blocks. If false, a session does not connect audio to it.
  var takesAudioBlocks: Bool { get }

  /// The sink for the audio of a connection, or nil while the output needs no audio.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if memory or a thread is unavailable.
  func audioSink(for connection: CaptureConnection) throws(MediaError) -> (any AudioBlockSink)?

  /// Whether the output shows frames to the person in front of the screen.
  ///
  /// Such an output mirrors a front camera, and rotates frames for the user interface.
  var isPreview: Bool { get }

  /// Whether the output can rotate, mirror and crop frames of a format: that of its camera or, if it
  /// decodes frames, of the decoded frames.
  func canTransform(_ format: FormatDescription) -> Bool

  /// Called with the session when the output joins it, and with nil when the output was removed.
  func didJoin(_ session: CaptureSession?)

  /// Called before the session stops a connected camera to set it to another mode.
  func willChangeMode()

  /// Called after ``willChangeMode()``, when the camera runs in the new mode or, if that failed, as
  /// before.
  func didChangeMode()

  /// Ends the recordings of the output, and blocks until their files are finished.
  func finishRecordings()
}

extension FrameOutput {
  package func sink(
    for connection: CaptureConnection, from camera: DeviceInput
  ) throws(MediaError) -> (any FrameSink)? { nil }
  package var decodesFrames: Bool { false }
  package func willChangeMode() {}
  package func didChangeMode() {}
  package func finishRecordings() {}
  package var takesAudioBlocks: Bool { false }
  package var isPreview: Bool { false }
  package func canTransform(_ format: FormatDescription) -> Bool { true }
  package func audioSink(for connection: CaptureConnection) throws(MediaError)
    -> (any AudioBlockSink)?
  { nil }
}
