// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// The bytes of a compressed image's first plane, without padding.
package struct DecodedImage {
  /// The error for an image that cannot be decoded, or has an unexpected size.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// The rows of the first plane, one after the other.
  package let bytes: [UInt8]

  /// Decodes one image, which must be whole and of the given size.
  ///
  /// - Throws: `Failure`, or the decoder's error.
  package init(
    decoding data: UnsafeRawBufferPointer, codec: String, width: Int, height: Int,
    bytesPerPixel: Int = 1
  ) throws {
    var decoder = try Decoder(
      parameters: CodecParameters(videoCodec: codec, width: width, height: height),
      subject: "the image", threadCount: 1)
    try decoder.send(Packet(copying: data, pts: 0, dts: 0, duration: 1, isKeyFrame: true))
    try decoder.send(nil)
    guard let frame = try decoder.nextFrame(), !frame.isCorrupt, frame.width == width,
      frame.height == height, let start = frame.planeData(0)
    else { throw Failure(description: "no whole image of \(width)x\(height)") }
    bytes = (0..<height).flatMap { row in
      (0..<width * bytesPerPixel).map { start[row * frame.bytesPerRow(0) + $0] }
    }
  }
}
