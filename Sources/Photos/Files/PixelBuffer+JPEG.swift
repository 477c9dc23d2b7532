// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankMediaCore

extension PixelBuffer {
  /// Encodes the image as a JPEG file, with its ``attachments`` as Exif values and a thumbnail.
  ///
  /// - Parameters:
  ///   - quality: The quality from 1 to 100.
  ///   - location: The geographic location to store, or nil.
  /// - Returns: The bytes of the file.
  /// - Throws: `MediaError` with `.badConfiguration` for an invalid quality, `.notConvertible` for
  ///   pixels that libswscale cannot read.
  public func jpegData(
    quality: Int = 90, location: GeographicLocation? = nil
  ) throws(MediaError) -> [UInt8] {
    try PhotoWriter.check(quality: quality)
    var exif = attachments
    (exif["PixelXDimension"], exif["PixelYDimension"]) = ("\(width)", "\(height)")
    let metadata = ExifMetadata(exif, location)
    let description = FormatDescription(
      mediaSubType: .pixels(format), width: width, height: height)
    return try bytes.span.withUnsafeBytes { (bytes) throws(MediaError) in
      try PhotoWriter().data(
        of: bytes, description, as: .jpeg, quality: quality, metadata, hasThumbnail: true)
    }
  }
}
