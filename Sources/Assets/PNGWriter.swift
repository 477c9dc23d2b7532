// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// Writes pictures as PNG files.
public struct PNGWriter: ~Copyable {
  private var converter = PictureConverter(to: .rgb24, isFullRange: true)
  private let appliesRotation: Bool

  /// Makes a writer; it may be used for pictures of any size.
  ///
  /// - Parameter appliesRotation: Whether images are rotated and mirrored as the file asks players to,
  ///   by multiples of 90 degrees; else, and by other angles, they are as they are stored.
  public init(appliesRotation: Bool = true) { self.appliesRotation = appliesRotation }

  /// The bytes of a frame as a PNG file, in RGB with 8 bits each.
  ///
  /// Black and white of the source are black and white of the file, whichever range it stores.
  ///
  /// - Throws: `AssetError` as ``FrameReader`` does.
  public mutating func data(
    of index: Int, from reader: inout FrameReader
  ) throws(AssetError) -> [UInt8] {
    let picture = try reader.picture(at: index)
    let turn = appliesRotation ? reader.turn : .none
    do throws(LibAVError) { return try converter.convert(picture).turned(turn).pngBytes() } catch {
      throw AssetError(error)
    }
  }
}

/// How the bytes of an uncompressed picture lie, by FFmpeg's names.
public enum RawPictureFormat: String, Hashable, Sendable, CaseIterable {
  /// Brightness, a byte a pixel, from 0 for black to 255 for white.
  case gray8
  /// Red, green and blue, a byte each, from 0 to 255.
  case rgb24
  /// Brightness, then both colours at half the width and height, in the video range 16 to 235.
  case yuv420p
}

/// Writes pictures as their bytes alone, row after row without padding.
public struct RawPictureWriter: ~Copyable {
  private var converter: PictureConverter
  private let appliesRotation: Bool

  /// Makes a writer; it may be used for pictures of any size.
  ///
  /// - Parameters:
  ///   - format: How the bytes lie.
  ///   - appliesRotation: Whether images are rotated and mirrored as the file asks players to, as
  ///     ffmpeg does for its `rawvideo`, by multiples of 90 degrees; else, and by other angles, they
  ///     are as they are stored. At 90 and 270 degrees a row has ``VideoTrack/height`` pixels.
  public init(_ format: RawPictureFormat, appliesRotation: Bool = true) {
    self.appliesRotation = appliesRotation
    converter =
      switch format {
      case .gray8: PictureConverter(to: .gray8, isFullRange: true)
      case .rgb24: PictureConverter(to: .rgb24, isFullRange: true)
      case .yuv420p: PictureConverter(to: .yuv420p, isFullRange: false)
      }
  }

  /// The bytes of a frame.
  ///
  /// - Throws: `AssetError` as ``FrameReader`` does.
  public mutating func data(
    of index: Int, from reader: inout FrameReader
  ) throws(AssetError) -> [UInt8] {
    let picture = try reader.picture(at: index)
    let turn = appliesRotation ? reader.turn : .none
    do throws(LibAVError) { return try converter.convert(picture).turned(turn).packedBytes() } catch
    {
      throw AssetError(error)
    }
  }
}
