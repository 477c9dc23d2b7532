// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// Encodes frames of a movie as PNG or JPEG files, by the extension of their names.
struct FrameImageWriter: ~Copyable {
  private let asset: Asset
  private let exif: MovieExif
  private let appliesRotation: Bool
  private var png: PNGWriter

  init(_ asset: Asset, appliesRotation: Bool) {
    self.asset = asset
    self.appliesRotation = appliesRotation
    exif = MovieExif(tags: asset.metadata)
    png = PNGWriter(appliesRotation: appliesRotation)
  }

  /// Encodes a frame for a file.
  mutating func data(
    of index: Int, from reader: inout FrameReader, for path: String
  ) throws -> [UInt8] {
    guard PhotoFormat(path: path) == .jpeg, let track = asset.videoTrack else {
      return try png.data(of: index, from: &reader)
    }
    var image = try reader.pixelBuffer(ofFrame: index, as: PixelFormat(rawValue: "yuvj444p"))
    image.attachments = exif.values(
      at: try track.frames.time(ofFrame: Int64(index)),
      // Viewers rotate the image as players rotate the movie.
      orientation: appliesRotation ? reader.frameRotation.exifOrientation : nil)
    return try image.jpegData(location: exif.location)
  }
}
