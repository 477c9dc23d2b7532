// SPDX-License-Identifier: Apache-2.0

/// An image in memory of its own: planes one behind the other, rows of each without gaps.
public struct PixelBuffer: Hashable, Sendable {
  /// Where the pixels of a plane lie.
  public struct Plane: Hashable, Sendable {
    /// The place of its first byte in ``PixelBuffer/bytes``.
    public let offset: Int
    /// Bytes from row to row.
    public let bytesPerRow: Int
    /// Rows from top to bottom: fewer than the image has where chroma is halved.
    public let rowCount: Int

    package init(offset: Int, bytesPerRow: Int, rowCount: Int) {
      (self.offset, self.bytesPerRow, self.rowCount) = (offset, bytesPerRow, rowCount)
    }
  }

  /// How its pixels are stored.
  public let format: PixelFormat
  /// Pixels from left to right.
  public private(set) var width = 0
  /// Pixels from top to bottom.
  public private(set) var height = 0
  /// The planes, in FFmpeg's order: luma first, then chroma; one where pixels are packed.
  public private(set) var planes: [Plane] = []
  /// The bytes of all planes.
  public private(set) var bytes: [UInt8] = []

  /// Makes an image without pixels, for an image to be converted into.
  public init(format: PixelFormat) { self.format = format }

  /// Gives the image another size; its memory is kept where it is large enough, its bytes mean
  /// nothing then.
  package mutating func resize(width: Int, height: Int, planes: [Plane], byteCount: Int) {
    (self.width, self.height, self.planes) = (width, height, planes)
    if bytes.count > byteCount {
      bytes.removeLast(bytes.count - byteCount)
    } else {
      bytes.append(contentsOf: repeatElement(0, count: byteCount - bytes.count))
    }
  }

  /// Shows the bytes of a plane, which are valid inside the closure.
  ///
  /// - Parameters:
  ///   - index: Which of ``planes``; one that is not there is a mistake of the program, which stops.
  ///   - body: Given the rows one behind the other.
  /// - Returns: What `body` does.
  /// - Throws: What `body` does.
  public func withUnsafeBytes<Result, Failure: Error>(
    ofPlane index: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let plane = planes[index]
    let range = plane.offset..<(plane.offset + plane.bytesPerRow * plane.rowCount)
    return try bytes.withUnsafeBytes { bytes in
      Swift.Result { () throws(Failure) in try body(UnsafeRawBufferPointer(rebasing: bytes[range]))
      }
    }.get()
  }

  /// Lets all bytes be filled.
  package mutating func withUnsafeMutableBytes<Result>(
    _ body: (UnsafeMutableRawBufferPointer) -> Result
  ) -> Result { bytes.withUnsafeMutableBytes(body) }
}
