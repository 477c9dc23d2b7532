// SPDX-License-Identifier: Apache-2.0

/// An image that owns its memory.
///
/// The planes follow each other without gaps, and so do the rows of each plane.
public struct PixelBuffer: Hashable, Sendable {
  /// The position of one plane in ``PixelBuffer/bytes``.
  public struct Plane: Hashable, Sendable {
    /// The index of the plane's first byte in ``PixelBuffer/bytes``.
    public let offset: Int
    /// Bytes from one row to the next.
    public let bytesPerRow: Int
    /// The number of rows: that of the image, or half of it for a chroma plane that is subsampled
    /// vertically.
    public let rowCount: Int

    package init(offset: Int, bytesPerRow: Int, rowCount: Int) {
      (self.offset, self.bytesPerRow, self.rowCount) = (offset, bytesPerRow, rowCount)
    }
  }

  /// The pixel format.
  public let format: PixelFormat
  /// The width in pixels.
  public private(set) var width = 0
  /// The height in pixels.
  public private(set) var height = 0
  /// The planes in FFmpeg's order: luma, then chroma.
  ///
  /// Packed formats have one plane.
  public private(set) var planes: [Plane] = []
  /// The bytes of all planes, in the order of ``planes``.
  public private(set) var bytes: [UInt8] = []
  /// Metadata of the image, such as the exposure time, by Exif names.
  public var attachments: [String: String] = [:]

  /// Makes an empty image, as the destination of a conversion.
  public init(format: PixelFormat) { self.format = format }

  /// Resizes the image.
  ///
  /// The memory is reused if it is large enough. The pixels are undefined afterwards.
  package mutating func resize(width: Int, height: Int, planes: [Plane], byteCount: Int) {
    (self.width, self.height, self.planes) = (width, height, planes)
    if bytes.count > byteCount {
      bytes.removeLast(bytes.count - byteCount)
    } else {
      bytes.append(contentsOf: repeatElement(0, count: byteCount - bytes.count))
    }
  }

  /// Gives access to the bytes of a plane.
  ///
  /// The pointer is valid only inside the closure.
  ///
  /// - Parameters:
  ///   - index: An index into ``planes``; an index out of range traps.
  ///   - body: The closure that receives the plane's contiguous rows.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`.
  public func withUnsafeBytes<Result, Failure: Error>(
    ofPlane index: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let plane = planes[index]
    let range = plane.offset..<(plane.offset + plane.bytesPerRow * plane.rowCount)
    return try bytes.span.withUnsafeBytes { (bytes) throws(Failure) in
      try body(UnsafeRawBufferPointer(rebasing: bytes[range]))
    }
  }

  /// Gives write access to the bytes of a plane.
  ///
  /// - Parameters:
  ///   - index: An index into ``planes``; an index out of range traps.
  ///   - body: The closure that receives the plane's contiguous rows.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`.
  public mutating func withUnsafeMutableBytes<Result, Failure: Error>(
    ofPlane index: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let plane = planes[index]
    let range = plane.offset..<(plane.offset + plane.bytesPerRow * plane.rowCount)
    return try bytes.withUnsafeMutableBufferPointer { (bytes) throws(Failure) in
      let whole = UnsafeMutableRawBufferPointer(bytes)
      return try body(UnsafeMutableRawBufferPointer(rebasing: whole[range]))
    }
  }

  /// Gives write access to the bytes of all planes.
  package mutating func withUnsafeMutableBytes<Result>(
    _ body: (UnsafeMutableRawBufferPointer) -> Result
  ) -> Result { bytes.withUnsafeMutableBytes(body) }
}
