// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
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

extension SampleBuffer {
  /// Encodes the frame as a JPEG file with a thumbnail and with the values of ``exif``.
  ///
  /// Without a quality, a JPEG frame of the camera keeps its compressed data. This method may be
  /// called from any thread, also concurrently.
  ///
  /// - Parameter quality: The quality from 1 to 100. Nil keeps the compressed data of a JPEG frame,
  ///   and selects 90 for other frames.
  /// - Returns: The bytes of the file.
  /// - Throws: `MediaError` with `.badConfiguration` for an invalid quality, `.invalidData` for a
  ///   damaged frame, `.notConvertible` for a codec with inter-frame prediction or pixels that
  ///   libswscale cannot read.
  public func jpegData(quality: Int? = nil) throws(MediaError) -> [UInt8] {
    if let quality { try PhotoWriter.check(quality: quality) }
    let metadata = ExifMetadata(exif, nil)
    return try withBytes { bytes throws(MediaError) in
      try PhotoWriter().data(
        of: bytes, formatDescription, as: .jpeg, quality: quality, metadata, hasThumbnail: true)
    }
  }
}
