// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankMediaCore

extension SampleBuffer {
  /// Encodes the frame as a JPEG file with the values of ``exif`` and a thumbnail.
  ///
  /// Without a quality, a JPEG frame of the camera keeps its compressed data. Any thread may call
  /// this method, and calls run concurrently.
  ///
  /// - Parameter quality: The quality from 1 to 100. Nil keeps the camera's compressed data, or
  ///   selects 90.
  /// - Returns: The bytes of the file.
  /// - Throws: `MediaError` with `.badConfiguration` for another quality, `.invalidData` for a
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
