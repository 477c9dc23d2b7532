// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

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
  /// Video range is expanded to full range.
  ///
  /// - Throws: `MediaError` as ``FrameReader`` does.
  public mutating func data(
    of index: Int, from reader: inout FrameReader
  ) throws(MediaError) -> [UInt8] {
    let frame = try reader.mediaFrame(at: index)
    let rotation = appliesRotation ? reader.frameRotation : .none
    do throws(CallFailure) {
      return try converter.convert(frame).rotated(by: rotation).pngBytes()
    } catch {
      throw MediaError(reading: error)
    }
  }
}
