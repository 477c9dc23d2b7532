// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// The scaling, cropping and rotation of frames before encoding.
struct FrameGeometry: Sendable {
  /// The size before rotation.
  let scaled: VideoSize
  let rotation: FrameRotation
  /// The encoded size: rotated, and with even sides if the codec needs them.
  let encoded: VideoSize
  /// The pixel aspect ratio of the output; nil for square or unknown.
  let pixelAspect: Encoder.PixelAspect?
  /// The pixel format of the output.
  let format: LibAVPixelFormat
  /// True if the output uses full range, false for limited range.
  let isFullRange: Bool
  /// True if frames are cropped to the aspect ratio of `scaled`, false if they keep their own.
  private let isBoxed: Bool
  private let sourceAspect: Encoder.PixelAspect?

  /// Creates the geometry for a track and its display matrix.
  init(_ track: VideoTrack, matrix: [Int32], _ settings: RenderSettings) throws(MediaError) {
    let source = track.format.parameters
    let requested = FrameRotation(displayMatrix: matrix)
    if settings.rotatesFrames, requested == nil {
      throw MediaError(
        .unsupportedSource, "the rotation of the video is not a multiple of 90 degrees",
        recovery: Recovery("keep the rotation as it is stored", .change(.rotation)))
    }
    rotation = settings.rotatesFrames ? requested ?? .none : .none
    let chosen = settings.encoding.pixelFormat(for: source.pixelFormat)
    format = rotation.isTransposed ? chosen.withEvenChroma : chosen
    // FFV1 is lossless, so it keeps the source's range. The other codecs use limited range, because
    // many players ignore the full-range flag.
    isFullRange =
      format.isFullRange || (settings.encoding == .ffv1 && !format.isRGB && source.keepsRange)
    sourceAspect = source.pixelAspect
    let needsEven = PixelComponents(format)?.chromaShift.y == 1 && settings.encoding.needsEvenSides
    if let box = settings.box {
      guard (1...16_384).contains(box.width), (1...16_384).contains(box.height),
        !needsEven || (box.width % 2 == 0 && box.height % 2 == 0)
      else {
        throw MediaError(
          .boxRefused,
          "a box of \(box.width)x\(box.height) cannot be stored as \(settings.encoding.codec)",
          recovery: "choose even sides, such as 1280x720")
      }
      // The box is the size after rotation, but frames are scaled before they are rotated. Width
      // and height are therefore swapped if the rotation swaps them.
      scaled = requested?.isTransposed == true ? box.transposed : box
      isBoxed = true
      pixelAspect = nil
    } else if settings.encoding.animatedImage != nil {
      // Animated images have square pixels.
      let aspect = source.pixelAspect?.ratio ?? (width: 1, height: 1)
      let (above, below) = (Int128(track.width) * Int128(aspect.width), Int128(aspect.height))
      let width = Int(clamping: (2 * above + below) / (2 * below))
      scaled = VideoSize(width: min(max(width, 1), 16_383), height: track.height)
      isBoxed = false
      pixelAspect = nil
    } else {
      scaled = VideoSize(width: track.width, height: track.height)
      isBoxed = false
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
  }

  /// Returns the centered part of a frame with the aspect ratio of the box.
  func cropped(_ frame: MediaFrame) throws(LibAVError) -> MediaFrame {
    guard isBoxed else { return frame }
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
    // The offsets are even, because two luma samples share one chroma sample.
    return try frame.cropped(
      x: (frame.width - width) / 4 * 2, y: (frame.height - height) / 4 * 2, width: width,
      height: height)
  }
}

/// A frame size in pixels.
public struct VideoSize: Hashable, Sendable, CustomStringConvertible {
  /// The width in pixels.
  public var width: Int
  /// The height in pixels.
  public var height: Int

  /// Creates a size.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// The size as text, such as `1280x720`.
  public var description: String { "\(width)x\(height)" }

  var transposed: VideoSize { VideoSize(width: height, height: width) }
}

extension CodecParameters {
  /// True if the samples are full range and YCbCr, which also exists in limited range; RGB is
  /// always full range.
  fileprivate var keepsRange: Bool { isFullRange && !pixelFormat.isRGB }
}
