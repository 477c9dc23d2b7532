// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankMediaCore

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
