// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
public import OvercrankMediaCore

/// The picture track of an asset.
public struct VideoTrack: Sendable {
  /// The codec.
  public let codec: VideoCodec
  /// Pixels from left to right, as stored.
  public let width: Int
  /// Pixels from top to bottom, as stored.
  public let height: Int
  /// Degrees by which a player turns the picture clockwise: 0, 90, 180, 270.
  public let rotation: Int
  /// Whether players are asked to rotate by a multiple of 90 degrees, and to mirror, at most.
  public var rotatesByRightAngles: Bool { turn != nil }
  /// When each frame is shown.
  public let frames: FrameTable
  package let format: TrackFormat
  /// What players are asked to do to the images; nil for a rotation by another angle.
  package var turn: FrameRotation? { FrameRotation(displayMatrix: format.displayMatrix) }

  /// The number of frames.
  public var frameCount: Int { frames.entries.count }
  /// Ticks per second.
  public var timescale: Int32 { frames.timescale }
  /// The rate that the times of the frames are those of; see ``FrameTable/nominalFrameRate``.
  public var nominalFrameRate: FrameRate? { frames.nominalFrameRate }
}

/// The sound track of an asset.
public struct AudioTrack: Sendable {
  /// The codec.
  public let codec: AudioCodec
  /// Samples per second and channel.
  public let sampleRate: Int
  /// The number of channels.
  public let channelCount: Int
  /// Samples in each channel that are presented, what the encoder put before them left out.
  public let sampleCount: Int64
  /// The sample's place, from the first picture, of the first sample presented.
  public let startSample: Int64
  package let format: TrackFormat
  /// Where the asset's zero lies, in samples of the file's own count.
  package let originSample: Int64
}
