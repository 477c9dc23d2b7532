// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
package import OvercrankLibAV
public import OvercrankMediaCore

/// An encoder of a file format that needs an additional library, such as HEIC.
///
/// The encoders are passed to a ``PhotoOutput`` when it is created. The product `OvercrankHEIC`
/// contains an encoder for ``PhotoFormat/heic``.
public protocol PhotoEncoder: Sendable {
  /// The format of the encoded files.
  var format: PhotoFormat { get }

  /// Encodes an image as a file.
  ///
  /// Called on a thread of the output, for one photo at a time. Frames of further photos wait in
  /// memory meanwhile.
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
  /// The planes Y, Cb and Cr, one after the other.
  ///
  /// They have 8 bits per sample in full range, with the BT.601 matrix.
  ///
  /// Rows have no padding. The chroma planes have half the columns and half the rows, rounded up.
  public let pixels: [UInt8]
  /// The encoding quality from 1 to 100.
  public let quality: Int
  /// The Exif metadata, beginning with its TIFF header.
  public let exif: [UInt8]
  /// The XMP packet as UTF-8; empty without XMP values.
  public let xmp: [UInt8]
  /// The length in pixels of the thumbnail's longer side; nil for no thumbnail.
  public let thumbnailSide: Int?
}

/// The rotation, mirroring and zoom of a photo.
struct PhotoTransform: Sendable {
  var rotation = FrameRotation.none
  /// The factor by which the center of the image is enlarged.
  var factor = 1.0

  static let none = PhotoTransform()
}

extension FrameRotation {
  /// The value of Exif's field `Orientation`; nil if the image is not rotated or mirrored.
  ///
  /// Viewers apply this rotation, so JPEG data need not be encoded again.
  package var exifOrientation: Int? {
    switch (isTransposed, flipsX, flipsY) {
    case (false, false, false): nil
    case (false, true, false): 2
    case (false, true, true): 3
    case (false, false, true): 4
    case (true, false, false): 5
    case (true, true, false): 6
    case (true, true, true): 7
    case (true, false, true): 8
    }
  }
}
