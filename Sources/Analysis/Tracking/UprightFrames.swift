// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// Frames of an asset as they are displayed: rotated, in gray or RGB with full range.
struct UprightFrames: ~Copyable {
  /// One plane of bytes without padding.
  struct Image {
    var width: Int
    var height: Int
    var bytes: [UInt8]
  }

  private var reader: FrameReader
  private var converter: FrameConverter
  private let rotation: FrameRotation
  private let path: String
  private let isColor: Bool
  let frameCount: Int

  /// Opens the video of an asset.
  ///
  /// - Throws: `MediaError` with `.invalidData` for an asset without decodable video.
  init(_ asset: Asset, isColor: Bool) throws(MediaError) {
    reader = try FrameReader(asset)
    rotation = asset.videoTrack?.frameRotation ?? .none
    converter = FrameConverter(to: isColor ? .rgb24 : .gray8, isFullRange: true)
    path = asset.path
    self.isColor = isColor
    frameCount = asset.videoTrack?.frameCount ?? 0
  }

  /// Sets the size, as displayed, to which all later frames are scaled.
  mutating func scale(toWidth width: Int, height: Int) {
    converter = FrameConverter(
      to: isColor ? .rgb24 : .gray8, isFullRange: true,
      width: rotation.isTransposed ? height : width,
      height: rotation.isTransposed ? width : height)
  }

  /// Decodes a frame.
  ///
  /// - Throws: `MediaError` as ``FrameReader`` does.
  mutating func image(at index: Int) throws(MediaError) -> Image {
    let frame = try reader.mediaFrame(at: index)
    do throws(CallFailure) {
      let upright = try converter.convert(frame).rotated(by: rotation)
      return Image(
        width: upright.width, height: upright.height, bytes: try upright.packedBytes())
    } catch {
      throw MediaError(
        error, at: CallStage(other: .init(.notConvertible, "choose a movie that plays")),
        message: "a frame of \(path) cannot be converted: \(error)")
    }
  }
}
