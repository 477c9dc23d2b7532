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

  /// The configuration of Dolby Vision, as the boxes `dvcC` and `dvvC` hold it.
  public struct DolbyVision: Hashable, Sendable {
    /// The profile, such as 5 or 8.
    public let profile: Int
    /// The level, which bounds the pixel rate.
    public let level: Int
    /// The image that players without Dolby Vision show: 0 none, 1 HDR10, 2 standard range, 4 HLG.
    public let compatibility: Int
  }

  /// The pixel format of the decoded frames, or nil if it is unknown.
  public var pixelFormat: PixelFormat? {
    let format = format.parameters.pixelFormat
    return format.isKnown ? PixelFormat(rawValue: format.name) : nil
  }
  /// The number of bits per luma sample, or nil if it is unknown.
  public var bitDepth: Int? {
    let format = format.parameters.pixelFormat
    return format.isKnown ? format.depth : nil
  }
  /// FFmpeg's name of the color primaries, such as `bt2020`, or nil if the file states none.
  public var colorPrimaries: String? { format.parameters.colorNames.primaries }
  /// FFmpeg's name of the transfer function, such as `arib-std-b67` (HLG), or nil if the file states
  /// none.
  public var transferFunction: String? { format.parameters.colorNames.transfer }
  /// Whether the transfer function has a high dynamic range: PQ or HLG.
  public var containsHDRVideo: Bool { format.parameters.isHighDynamicRange }
  /// FFmpeg's name of the YCbCr matrix, such as `bt2020nc`, or nil if the file states none.
  public var yCbCrMatrix: String? { format.parameters.colorNames.matrix }
  /// Whether samples use all values of their bits, and not the narrower video range.
  public var isFullRange: Bool { format.parameters.isFullRange }
  /// The bit rate of the track in bits per second, as the headers state it, or nil if they do not.
  public var bitRate: Int64? { format.parameters.bitRate }
  /// The configuration of Dolby Vision, or nil for video without it.
  public var dolbyVision: DolbyVision? {
    format.sideData.lazy.compactMap(\.dolbyVision).first.map {
      DolbyVision(profile: $0.profile, level: $0.level, compatibility: $0.compatibility)
    }
  }

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
