// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// An encoder of a file format that needs a library of its own, such as HEIC.
///
/// A ``PhotoOutput`` gets its encoders when it is created. The product `OvercrankHEIC` has one for
/// ``PhotoFormat/heic``.
public protocol PhotoEncoder: Sendable {
  /// The format of the files.
  var format: PhotoFormat { get }

  /// Encodes an image as a file.
  ///
  /// Called on a thread of the output, for one photo after the other. Frames wait in memory
  /// meanwhile.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` or `.notConvertible`.
  func encode(_ image: PhotoImage) throws(MediaError) -> [UInt8]
}

/// An image for a ``PhotoEncoder``.
public struct PhotoImage: Sendable {
  /// The width in pixels, after the rotation of the connection.
  public let width: Int
  /// The height in pixels, after the rotation of the connection.
  public let height: Int
  /// The planes Y, Cb and Cr, one after the other, with 8 bits in full range of BT.601.
  ///
  /// Rows have no padding. Chroma has half the columns and half the rows, rounded up.
  public let pixels: [UInt8]
  /// The quality from 1 to 100.
  public let quality: Int
  /// The Exif metadata from its TIFF header on.
  public let exif: [UInt8]
  /// The XMP packet as UTF-8, or an empty array without values.
  public let xmp: [UInt8]
  /// The longest side of the thumbnail in pixels, or nil for none.
  public let thumbnailSide: Int?
}
