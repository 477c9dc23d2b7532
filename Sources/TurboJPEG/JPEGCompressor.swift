// SPDX-License-Identifier: Apache-2.0

import CTurboJPEG

/// An encoder of libjpeg-turbo.
///
/// It must be used by one thread only.
package struct JPEGCompressor: ~Copyable {
  /// The chroma subsampling of an image.
  package enum ChromaSampling {
    case gray, yuv420, yuv422, yuv444

    fileprivate var number: Int32 {
      switch self {
      case .gray: Int32(TJSAMP_GRAY.rawValue)
      case .yuv420: Int32(TJSAMP_420.rawValue)
      case .yuv422: Int32(TJSAMP_422.rawValue)
      case .yuv444: Int32(TJSAMP_444.rawValue)
      }
    }
  }

  /// The full-range planes of an image, which belong to the caller.
  package struct Image {
    package var width: Int
    package var height: Int
    package var sampling: ChromaSampling
    /// The luma plane, followed by the chroma planes.
    ///
    /// In a direction in which chroma is subsampled, the number of rows or columns must be even.
    package var planes: [UnsafePointer<UInt8>]
    package var bytesPerRow: [Int]

    package init(
      width: Int, height: Int, sampling: ChromaSampling, planes: [UnsafePointer<UInt8>],
      bytesPerRow: [Int]
    ) {
      (self.width, self.height, self.sampling) = (width, height, sampling)
      (self.planes, self.bytesPerRow) = (planes, bytesPerRow)
    }
  }

  private let handle: tjhandle

  /// Creates an encoder.
  ///
  /// Returns nil if memory is exhausted.
  package init?() {
    guard let handle = tjInitCompress() else { return nil }
    self.handle = handle
  }

  deinit { tjDestroy(handle) }

  /// Encodes an image as a JPEG file without metadata.
  ///
  /// - Parameters:
  ///   - image: The image.
  ///   - quality: The quality from 1 to 100, on the scale of the Independent JPEG Group.
  /// - Returns: The bytes of the file, or nil if libjpeg-turbo rejects the image.
  package mutating func compress(_ image: Image, quality: Int) -> [UInt8]? {
    var planes = image.planes.map { Optional($0) }
    let strides = image.bytesPerRow.map { Int32(clamping: $0) }
    let capacity = Int(
      tjBufSize(Int32(clamping: image.width), Int32(clamping: image.height), image.sampling.number))
    guard capacity > 0 else { return nil }
    var isDone = false
    let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
      var target: UnsafeMutablePointer<UInt8>? = buffer.baseAddress
      var size = UInt(capacity)
      let flags = Int32(TJFLAG_NOREALLOC | TJFLAG_FASTDCT)
      let status = tjCompressFromYUVPlanes(
        handle, &planes, Int32(clamping: image.width), strides, Int32(clamping: image.height),
        image.sampling.number, &target, &size, Int32(clamping: quality), flags)
      isDone = status == 0
      count = isDone ? Int(size) : 0
    }
    return isDone ? bytes : nil
  }
}
