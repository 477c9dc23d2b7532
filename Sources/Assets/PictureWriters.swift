// SPDX-License-Identifier: Apache-2.0
import LibAV

/// Writes pictures as PNG files.
public struct PNGWriter: ~Copyable {
  private var converter = PictureConverter(to: .rgb24, isFullRange: true)

  /// Makes a writer; it may be used for pictures of any size.
  public init() {}

  /// The bytes of a frame as a PNG file, in RGB with 8 bits each.
  ///
  /// Black and white of the source are black and white of the file, whichever range it stores.
  ///
  /// - Throws: `AssetError` as ``FrameReader`` does.
  public mutating func data(
    of index: Int, from reader: inout FrameReader
  ) throws(AssetError) -> [UInt8] {
    let picture = try reader.picture(at: index)
    do throws(LibAVError) { return try converter.convert(picture).pngBytes() } catch {
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

  /// Makes a writer; it may be used for pictures of any size.
  public init(_ format: RawPictureFormat) {
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
    do throws(LibAVError) { return try converter.convert(picture).packedBytes() } catch {
      throw AssetError(error)
    }
  }
}
