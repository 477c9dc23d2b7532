// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

/// Converts frames of an asset to raw bytes, row by row without padding.
public struct RawFrameWriter: ~Copyable {
  private var converter: FrameConverter
  private let appliesRotation: Bool
  /// The width of the last converted frame in pixels; 0 before the first one.
  public private(set) var frameWidth = 0
  /// The height of the last converted frame in pixels; 0 before the first one.
  public private(set) var frameHeight = 0

  /// Creates a writer for frames of any size.
  ///
  /// - Parameters:
  ///   - format: The pixel format.
  ///   - isFullRange: Whether YUV formats have full range (0 to 255) and not video range (luma from 16
  ///     to 235). Gray and RGB always have full range.
  ///   - appliesRotation: Whether the track's rotation and mirroring are applied, as ffmpeg does
  ///     for `rawvideo`. Rotations that are not a multiple of 90 degrees are never applied. At 90
  ///     and 270 degrees, a row has ``VideoTrack/height`` pixels.
  /// - Throws: `MediaError` for a format that libswscale does not support.
  public init(
    _ format: PixelFormat, isFullRange: Bool = false, appliesRotation: Bool = true
  ) throws(MediaError) {
    self.appliesRotation = appliesRotation
    converter = try FrameConverter(frames: format, isFullRange: isFullRange)
  }

  /// Returns the bytes of a frame.
  ///
  /// - Throws: `MediaError` as ``FrameReader`` does.
  public mutating func data(
    of index: Int, from reader: inout FrameReader
  ) throws(MediaError) -> [UInt8] {
    let image = try image(of: index, from: &reader)
    do throws(CallFailure) { return try image.packedBytes() } catch {
      throw MediaError(reading: error)
    }
  }

  /// Returns a frame in the pixel format.
  ///
  /// The frame may share memory with the decoder.
  ///
  /// - Throws: `MediaError` as ``FrameReader`` does.
  mutating func image(
    of index: Int, from reader: inout FrameReader
  ) throws(MediaError) -> MediaFrame {
    let frame = try reader.mediaFrame(at: index)
    let rotation = appliesRotation ? reader.frameRotation : .none
    do throws(CallFailure) {
      let image = try converter.convert(frame).rotated(by: rotation)
      (frameWidth, frameHeight) = (image.width, image.height)
      return image
    } catch {
      throw MediaError(reading: error)
    }
  }
}

/// Encodes frames of an asset as PNG files.
public struct PNGWriter: ~Copyable {
  private var converter = FrameConverter(to: .rgb24, isFullRange: true)
  private let appliesRotation: Bool

  /// Creates a writer for frames of any size.
  ///
  /// - Parameter appliesRotation: Whether the track's rotation and mirroring are applied. Rotations
  ///   that are not a multiple of 90 degrees are never applied.
  public init(appliesRotation: Bool = true) { self.appliesRotation = appliesRotation }

  /// Encodes a frame as a PNG file in RGB with 8 bits per channel.
  ///
  /// Video range is expanded to full range. Frames with a high dynamic range (PQ, HLG) are not
  /// tone-mapped, and their file says so in the chunk `cICP`.
  ///
  /// - Throws: `MediaError` as ``FrameReader`` does.
  public mutating func data(
    of index: Int, from reader: inout FrameReader
  ) throws(MediaError) -> [UInt8] {
    let frame = try reader.mediaFrame(at: index)
    let rotation = appliesRotation ? reader.frameRotation : .none
    do throws(CallFailure) {
      return try converter.convert(frame).rotated(by: rotation).pngBytes(convertedFrom: frame)
    } catch {
      throw MediaError(reading: error)
    }
  }
}
