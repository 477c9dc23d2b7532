// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

/// Writes pictures as PNG files.
public struct PNGWriter: ~Copyable {
  private var converter = FrameConverter(to: .rgb24, isFullRange: true)
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
  /// - Throws: `MediaError` as ``FrameReader`` does.
  public mutating func data(
    of index: Int, from reader: inout FrameReader
  ) throws(MediaError) -> [UInt8] {
    let picture = try reader.picture(at: index)
    let turn = appliesRotation ? reader.turn : .none
    do throws(LibAVError) { return try converter.convert(picture).turned(turn).pngBytes() } catch {
      throw MediaError(reading: error)
    }
  }
}
