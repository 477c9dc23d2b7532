// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// What is done to the size and the place of pictures before they are encoded.
struct FrameGeometry: Sendable {
  /// The size before anything is turned.
  let scaled: VideoSize
  let turn: FrameRotation
  /// What is encoded: turned, and with even sides where the codec needs them.
  let encoded: VideoSize
  /// The pixels of the result; nil where they are square or unknown.
  let pixelAspect: Encoder.PixelAspect?
  /// The format of the result.
  let format: LibAVPixelFormat
  /// Whether its samples use all values, rather than those of television.
  let isFullRange: Bool
  /// Whether the pictures are cut to the shape of `scaled`.
  private let isBoxed: Bool
  private let sourceAspect: Encoder.PixelAspect?

  /// Decides it for a track whose display matrix is this.
  init(_ track: VideoTrack, matrix: [Int32], _ settings: RenderSettings) throws(MediaError) {
    let source = track.format.parameters
    let asked = FrameRotation(displayMatrix: matrix)
    if settings.appliesRotation, asked == nil {
      throw MediaError(
        .unsupportedSource, "the picture is turned by an angle that is no quarter turn",
        recovery: Recovery("keep the rotation as it is stored", .change(.rotation)))
    }
    turn = settings.appliesRotation ? asked ?? .none : .none
    let chosen = settings.encoding.pixelFormat(for: source.pixelFormat)
    format = turn.isTransposed ? chosen.withEvenChroma : chosen
    // Lossless is the same numbers; the others are stored as most players expect them.
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
      // What is asked for is what is seen, whether turned here or by the player.
      scaled = asked?.isTransposed == true ? box.transposed : box
      isBoxed = true
      pixelAspect = nil
    } else {
      scaled = VideoSize(width: track.width, height: track.height)
      isBoxed = false
      pixelAspect = turn.isTransposed ? source.pixelAspect?.transposed : source.pixelAspect
    }
    let rotated = turn.isTransposed ? scaled.transposed : scaled
    // Halved colour needs even sides: an odd one gets its last row or column twice.
    encoded =
      needsEven
      ? VideoSize(
        width: rotated.width + rotated.width % 2, height: rotated.height + rotated.height % 2)
      : rotated
  }

  /// The part of a picture that is shown: as large as can be, in the middle, of the box's shape.
  func cropped(_ frame: MediaFrame) throws(LibAVError) -> MediaFrame {
    guard isBoxed else { return frame }
    // Below 2^15 for pictures, 2^31 for aspects and 2^14 for boxes: the products fit.
    let aspect = sourceAspect?.ratio ?? (width: 1, height: 1)
    let across = frame.width * aspect.width * scaled.height
    let down = frame.height * aspect.height * scaled.width
    var (width, height) = (frame.width, frame.height)
    if across > down {
      width = max(1, min(width, (width * down + across / 2) / across))
    } else if down > across {
      height = max(1, min(height, (height * across + down / 2) / down))
    }
    // On a whole sample of colour.
    return try frame.cropped(
      x: (frame.width - width) / 4 * 2, y: (frame.height - height) / 4 * 2, width: width,
      height: height)
  }
}

/// A size in pixels.
public struct VideoSize: Hashable, Sendable, CustomStringConvertible {
  /// Pixels from left to right.
  public var width: Int
  /// Pixels from top to bottom.
  public var height: Int

  /// Makes a size in pixels.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// The two sides, such as `1280x720`.
  public var description: String { "\(width)x\(height)" }

  var transposed: VideoSize { VideoSize(width: height, height: width) }
}

extension CodecParameters {
  /// Whether its samples use all values, and can do so in another format too.
  fileprivate var keepsRange: Bool { isFullRange && !pixelFormat.isRGB }
}
