// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// A frame encoded for output: an image file, or raw pixels.
struct EncodedFrame {
  /// The encoded bytes: an image file, or raw pixels in one or more parts.
  enum Content {
    case file([UInt8])
    case raw(RawFrameSequence.Element)
  }

  let content: Content
  /// The format of the encoded frame: `png`, `jpeg` or the raw format.
  let format: String
  /// The width and the height of a raw frame; both are nil for an image file, which contains its
  /// size.
  var width: Int?
  var height: Int?

  /// The number of bytes of the encoded frame.
  var byteCount: Int {
    switch content {
    case .file(let bytes): bytes.count
    case .raw(let frame): frame.byteCount
    }
  }

  /// All bytes of the encoded frame in one array.
  ///
  /// - Throws: `MediaError` if memory is exhausted.
  var bytes: [UInt8] {
    get throws {
      switch content {
      case .file(let bytes): return bytes
      case .raw(let frame):
        var bytes: [UInt8] = []
        try frame.withParts { bytes += $0 }
        return bytes
      }
    }
  }

  /// Writes the bytes to standard output, if possible without copying raw frames.
  ///
  /// - Parameter pipe: Standard output as a pipe, which can refer to the memory of raw frames; nil
  ///   if it is not a pipe.
  /// - Throws: As `Output.data(_:)` does.
  func print(to pipe: inout FramePipe?) throws {
    switch content {
    case .file(let bytes): try bytes.withUnsafeBytes { try Output.data($0) }
    case .raw(let frame):
      guard try pipe?.write(frame) == nil else { return }
      try frame.withParts { try Output.data($0) }
    }
  }
}

/// Encodes frames of a movie as PNG or JPEG files, depending on the extension of the file name.
struct FrameImageWriter: ~Copyable {
  private let asset: Asset
  private let exif: MovieExif
  private let appliesRotation: Bool
  private var png: PNGWriter

  init(_ asset: Asset, appliesRotation: Bool) {
    (self.asset, self.appliesRotation) = (asset, appliesRotation)
    exif = MovieExif(tags: asset.metadata)
    png = PNGWriter(appliesRotation: appliesRotation)
  }

  /// Encodes a frame for a file.
  mutating func frame(
    _ index: Int, from reader: inout FrameReader, for path: String
  ) throws -> EncodedFrame {
    guard PhotoFormat(path: path) == .jpeg, let track = asset.videoTrack else {
      return EncodedFrame(content: .file(try png.data(of: index, from: &reader)), format: "png")
    }
    var image = try reader.pixelBuffer(ofFrame: index, as: PixelFormat(rawValue: "yuvj444p"))
    image.attachments = exif.values(
      at: try track.frames.time(ofFrame: Int64(index)),
      // Stores the movie's rotation as Exif orientation, so that image viewers rotate the image as
      // players do.
      orientation: appliesRotation ? reader.frameRotation.exifOrientation : nil)
    return EncodedFrame(
      content: .file(try image.jpegData(location: exif.location)), format: "jpeg")
  }
}
