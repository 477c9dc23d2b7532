// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

/// Writes frames as their bytes alone, row after row without padding.
public struct RawFrameWriter: ~Copyable {
  private var converter: FrameConverter
  private let appliesRotation: Bool

  /// Makes a writer; it may be used for frames of any size.
  ///
  /// - Parameters:
  ///   - format: How the bytes lie. Luma of 4:2:0 is in the video range 16 to 235, that of `gray`
  ///     in the full one.
  ///   - appliesRotation: Whether images are rotated and mirrored as the file asks players to, as
  ///     ffmpeg does for its `rawvideo`, by multiples of 90 degrees; else, and by other angles, they
  ///     are as they are stored. At 90 and 270 degrees a row has ``VideoTrack/height`` pixels.
  /// - Throws: `MediaError` for a format that libswscale does not make.
  public init(_ format: PixelFormat, appliesRotation: Bool = true) throws(MediaError) {
    self.appliesRotation = appliesRotation
    converter = try FrameConverter(frames: format)
  }

  /// The bytes of a frame.
  ///
  /// - Throws: `MediaError` as ``FrameReader`` does.
  public mutating func data(
    of index: Int, from reader: inout FrameReader
  ) throws(MediaError) -> [UInt8] {
    let picture = try reader.picture(at: index)
    let turn = appliesRotation ? reader.turn : .none
    do throws(LibAVError) { return try converter.convert(picture).turned(turn).packedBytes() } catch
    {
      throw MediaError(reading: error)
    }
  }
}
