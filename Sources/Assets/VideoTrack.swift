// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
public import OvercrankMediaCore

/// The video track of an asset.
public struct VideoTrack: Sendable {
  /// The codec of the video.
  public let codec: VideoCodec
  /// The stored width of the frames in pixels.
  public let width: Int
  /// The stored height of the frames in pixels.
  public let height: Int
  /// The clockwise rotation that players apply, in degrees: 0, 90, 180 or 270.
  public let rotation: Int
  /// Whether players mirror the frames left to right, after the rotation.
  public var isMirrored: Bool { frameRotation?.isMirrored ?? false }
  /// Whether the track's transformation consists only of mirroring and rotation by multiples of 90
  /// degrees.
  public var rotatesByRightAngles: Bool { frameRotation != nil }
  /// The presentation times of the frames.
  public let frames: FrameTable
  package let format: TrackFormat
  /// Whether frames have different sample descriptions, as after a change of the codec's parameters.
  package let changesDescription: Bool
  /// The transformation that players apply.
  ///
  /// Nil for a rotation by an angle that is not a multiple of 90 degrees.
  package var frameRotation: FrameRotation? { FrameRotation(displayMatrix: format.displayMatrix) }

  /// Whether the frames have an alpha channel.
  ///
  /// WebM stores the alpha channel of VP8 and VP9 separately from the frames. Such an alpha channel
  /// is not decoded.
  package var hasAlpha: Bool {
    format.parameters.pixelFormat.hasAlpha || format.metadata["alpha_mode"] == "1"
  }

  /// Returns true if players apply the same transformation to both tracks.
  package func isRotated(like other: VideoTrack) -> Bool {
    let (own, others) = (frameRotation, other.frameRotation)
    return own == others && (own != nil || format.displayMatrix == other.format.displayMatrix)
  }

  /// The time of the first frame on the file's own time axis, in seconds.
  package var origin: Rational {
    Rational(frames.originTicks) * format.timeBase / Rational(frames.refinement)
  }

  /// The number of frames in the track.
  public var frameCount: Int { frames.entries.count }
  /// The number of ticks per second for the times of the frames.
  public var timescale: Int32 { frames.timescale }
  /// The nominal frame rate, see ``FrameTable/nominalFrameRate``.
  public var nominalFrameRate: FrameRate? { frames.nominalFrameRate }
}

/// The audio track of an asset.
public struct AudioTrack: Sendable {
  /// The codec of the audio.
  public let codec: AudioCodec
  /// The sample rate of the track in hertz.
  public let sampleRate: Int
  /// The number of audio channels.
  public let channelCount: Int
  /// The number of samples per channel that are presented, without encoder padding.
  public let sampleCount: Int64
  /// The index of the first presented sample.
  ///
  /// The sample at the first video frame has the index 0.
  public let startSample: Int64
  package let format: TrackFormat
  /// The asset's time zero on the file's own time axis, in samples of this track.
  package let originSample: Int64
  /// Whether the first sample and the number of samples are exact although times are coarser.
  let hasExactExtent: Bool
  /// Whether each packet has a later time than the one before, as movies need.
  package let hasAscendingTimes: Bool
  /// The end of the presented samples, in seconds after the asset's time zero.
  package var end: Rational {
    Rational(Int128(startSample + sampleCount), over: Int128(sampleRate))
  }
}
