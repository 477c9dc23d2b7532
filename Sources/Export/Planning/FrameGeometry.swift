// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import OvercrankRetiming

/// The scaling, cropping and rotation of frames before encoding.
struct FrameGeometry: Sendable {
  /// The scaling, cropping and rotation of one source's frames.
  struct Placement: Hashable, Sendable {
    /// The size of the scaled frames before rotation.
    let scaled: VideoSize
    let rotation: FrameRotation
    /// Whether the frames are smaller than the output.
    ///
    /// Black fills the rest.
    let isInset: Bool
    /// Whether frames are cropped to the aspect ratio of `scaled`.
    ///
    /// If false, they keep their aspect ratio.
    fileprivate let isCropped: Bool
    fileprivate let sourceAspect: Encoder.PixelAspect?
  }

  /// The scaling, cropping and rotation for each source.
  let placements: [Placement]
  /// The size of the encoded frames after rotation.
  ///
  /// Width and height are even if the codec requires it.
  let encoded: VideoSize
  /// The pixel aspect ratio of the output; nil for square pixels, or if it is unknown.
  let pixelAspect: Encoder.PixelAspect?
  /// The pixel format of the output.
  let format: LibAVPixelFormat
  /// Whether the output has full range.
  ///
  /// If false, it has limited range.
  let isFullRange: Bool

  /// Creates the geometry of sources, each with the display matrix by which its frames are rotated.
  ///
  /// The first source determines the format, the pixel aspect ratio and, unless the settings
  /// request a size, the size. Frames with another aspect ratio are scaled to fit into this size.
  init(
    _ tracks: [(track: VideoTrack, matrix: [Int32])], _ settings: RenderSettings
  ) throws(MediaError) {
    guard let (track, matrix) = tracks.first else {
      throw MediaError(
        .emptyRange, "the composition is empty", recovery: "append a range of a movie")
    }
    let source = track.format.parameters
    let requested = FrameRotation(displayMatrix: matrix)
    let rotation = try Self.rotation(matrix, settings)
    // Frames with alpha cannot be synthesized, so a synthesizing export has no alpha.
    let chosen = settings.encoding.pixelFormat(
      for: source.pixelFormat, keepsAlpha: !settings.sampling.synthesizesFrames)
    let isTransposed = tracks.contains {
      FrameRotation(displayMatrix: $0.matrix)?.isTransposed == true
    }
    format = settings.rotatesFrames && isTransposed ? chosen.withEvenChroma : chosen
    // FFV1 is lossless, so it keeps the source's range. The other codecs use limited range, because
    // many players ignore the full-range flag.
    isFullRange =
      format.isFullRange || (settings.encoding == .ffv1 && !format.isRGB && source.keepsRange)
    let needsEven = PixelComponents(format)?.chromaShift.y == 1 && settings.encoding.needsEvenSides
    let scaled: VideoSize
    if let box = settings.box {
      guard (1...16_384).contains(box.width), (1...16_384).contains(box.height),
        !needsEven || (box.width % 2 == 0 && box.height % 2 == 0)
      else {
        throw MediaError(
          .boxRefused,
          "a box of \(box.width)x\(box.height) cannot be stored as \(settings.encoding.codec)",
          recovery: "choose even sides, such as 1280x720")
      }
      // The requested size is the size after rotation, but frames are scaled before they are
      // rotated. Width and height are therefore swapped if the rotation swaps them.
      scaled = requested?.isTransposed == true ? box.transposed : box
      pixelAspect = nil
    } else if settings.encoding.animatedImage != nil {
      // Animated images have square pixels, so the width is multiplied by the source's pixel aspect
      // ratio.
      let aspect = source.pixelAspect?.ratio ?? (width: 1, height: 1)
      let (above, below) = (Int128(track.width) * Int128(aspect.width), Int128(aspect.height))
      let width = Int(clamping: (2 * above + below) / (2 * below))
      scaled = VideoSize(width: min(max(width, 1), 16_383), height: track.height)
      pixelAspect = nil
    } else {
      scaled = VideoSize(width: track.width, height: track.height)
      pixelAspect = rotation.isTransposed ? source.pixelAspect?.transposed : source.pixelAspect
    }
    let rotated = rotation.isTransposed ? scaled.transposed : scaled
    // 4:2:0 chroma needs an even width and height. If one is odd, the last column or row is
    // repeated.
    encoded =
      needsEven
      ? VideoSize(
        width: rotated.width + rotated.width % 2, height: rotated.height + rotated.height % 2)
      : rotated
    var placements = [
      Placement(
        scaled: scaled, rotation: rotation, isInset: false, isCropped: settings.box != nil,
        sourceAspect: source.pixelAspect)
    ]
    for (track, matrix) in tracks.dropFirst() {
      let rotation = try Self.rotation(matrix, settings)
      let aspect = track.format.parameters.pixelAspect
      let size =
        settings.box == nil
        ? Self.fitted(track, rotation, in: rotated, pixelAspect: pixelAspect) : rotated
      placements.append(
        Placement(
          scaled: rotation.isTransposed ? size.transposed : size, rotation: rotation,
          isInset: size != rotated, isCropped: settings.box != nil, sourceAspect: aspect))
    }
    self.placements = placements
  }

  /// Returns the rotation that a display matrix requires, or none if frames are not rotated.
  private static func rotation(
    _ matrix: [Int32], _ settings: RenderSettings
  ) throws(MediaError) -> FrameRotation {
    guard settings.rotatesFrames else { return .none }
    guard let rotation = FrameRotation(displayMatrix: matrix) else {
      throw MediaError(
        .unsupportedSource, "the rotation of the video is not a multiple of 90 degrees",
        recovery: Recovery("keep the rotation as it is stored", .change(.rotation)))
    }
    return rotation
  }

  /// Returns the greatest size inside the output at which a track's rotated frames keep their
  /// aspect ratio.
  ///
  /// A width or height within one pixel of the output's is replaced by the output's.
  private static func fitted(
    _ track: VideoTrack, _ rotation: FrameRotation, in output: VideoSize,
    pixelAspect: Encoder.PixelAspect?
  ) -> VideoSize {
    let own = track.format.parameters.pixelAspect?.ratio ?? (width: 1, height: 1)
    let target = pixelAspect?.ratio ?? (width: 1, height: 1)
    // The displayed aspect ratio, in pixels of the output. In a damaged file, the terms of the
    // pixel aspect ratio may be huge.
    var across = Int128(track.width) * Int128(own.width)
    var down = Int128(track.height) * Int128(own.height)
    if rotation.isTransposed { swap(&across, &down) }
    let ratio =
      Rational(across, over: down) * Rational(Int128(target.height), over: Int128(target.width))
    func even(_ exact: Rational, _ whole: Int) -> Int {
      guard let length = try? exact.rounded(.halfAwayFromZero), length + 1 < whole else {
        return whole
      }
      return max(2, Int(length) / 2 * 2)
    }
    return VideoSize(
      width: min(even(Rational(Int64(output.height)) * ratio, output.width), output.width),
      height: min(even(Rational(Int64(output.width)) / ratio, output.height), output.height))
  }
}

extension FrameGeometry.Placement {
  /// Returns the part in the center of a frame that has the aspect ratio of the requested output
  /// size.
  func cropped(_ frame: MediaFrame) throws(CallFailure) -> MediaFrame {
    guard isCropped else { return frame }
    // The products exceed 64 bits if a damaged file has a pixel aspect ratio with huge terms.
    let aspect = sourceAspect?.ratio ?? (width: 1, height: 1)
    let across = Int128(frame.width) * Int128(aspect.width) * Int128(scaled.height)
    let down = Int128(frame.height) * Int128(aspect.height) * Int128(scaled.width)
    var (width, height) = (frame.width, frame.height)
    if across > down {
      width = max(1, min(width, Int((Int128(width) * down + across / 2) / across)))
    } else if down > across {
      height = max(1, min(height, Int((Int128(height) * across + down / 2) / down)))
    }
    // The offsets are even, because chroma is shared by pairs of pixels.
    return try frame.cropped(
      x: (frame.width - width) / 4 * 2, y: (frame.height - height) / 4 * 2, width: width,
      height: height)
  }
}

extension CodecParameters {
  /// Whether the samples are full range, in a format that also exists in limited range.
  ///
  /// This is not the case for RGB, which is always full range.
  fileprivate var keepsRange: Bool { isFullRange && !pixelFormat.isRGB }
}
