// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// Where captured frames and sound go; ``VideoDataOutput``, ``AudioDataOutput`` and
/// `MovieFileOutput` are such.
///
/// An output belongs to one session at a time. Outputs are this library's own: a session refuses
/// those of others, which get frames and sound through the data outputs.
public protocol CaptureOutput: AnyObject, Sendable {
  /// What the output can take.
  var mediaTypes: [MediaType] { get }
}

/// What a session asks of its outputs.
package protocol FrameOutput: CaptureOutput {
  /// Where the frames of a connection go; nil while the output wants none.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` when there is no memory or thread for them.
  func sink(for connection: CaptureConnection) throws(MediaError) -> (any FrameSink)?

  /// Whether the output takes sound block by block; only then is it connected to what hears.
  var takesAudioBlocks: Bool { get }

  /// Where the sound of a connection goes; nil while the output wants none.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` when there is no memory or thread for it.
  func audioSink(for connection: CaptureConnection) throws(MediaError) -> (any AudioSink)?

  /// Learns the session that it now belongs to; nil when it was taken out.
  func didJoin(_ session: CaptureSession?)
}

extension FrameOutput {
  package func sink(for connection: CaptureConnection) throws(MediaError) -> (any FrameSink)? {
    nil
  }
  package var takesAudioBlocks: Bool { false }
  package func audioSink(for connection: CaptureConnection) throws(MediaError)
    -> (any AudioSink)?
  { nil }
}
