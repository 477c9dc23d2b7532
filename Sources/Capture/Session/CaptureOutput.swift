// SPDX-License-Identifier: Apache-2.0
public import FormatDiscovery

/// Where captured frames go; ``VideoDataOutput`` and `MovieFileOutput` are such.
///
/// An output belongs to one session at a time. Outputs are this library's own: a session refuses
/// those of others, which get frames through ``VideoDataOutput``.
public protocol CaptureOutput: AnyObject, Sendable {
  /// What the output can take.
  var mediaTypes: [MediaType] { get }
}

/// What a session asks of its outputs.
package protocol FrameOutput: CaptureOutput {
  /// Where the frames of a connection go; nil while the output wants none.
  func sink(for connection: CaptureConnection) -> (any FrameSink)?

  /// Learns the session that it now belongs to; nil when it was taken out.
  func didJoin(_ session: CaptureSession?)
}
