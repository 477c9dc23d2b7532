// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMediaCore

/// Converts a JPEG file with Exif metadata to a Motion Photo.
enum MotionPhotoFile {
  /// Appends a movie to a photo, and adds XMP metadata that describes the movie.
  ///
  /// The file is replaced by a new one, so if the disk is full, the photo stays as it was.
  ///
  /// - Parameters:
  ///   - movie: The path of the movie.
  ///   - path: The path of the photo.
  ///   - time: The time in the movie at which the photo was taken.
  ///   - properties: The other XMP values of the photo.
  /// - Throws: `MediaError` if a file cannot be read or written.
  static func append(
    movie: String, to path: String, at time: MediaTime, _ properties: [String: String]
  ) throws(MediaError) {
    let photo = try contents(path)
    let content = try contents(movie)
    let movie = XMPPacket.Movie(
      byteCount: Int64(content.count), microseconds: time.wholeMicroseconds)
    let segment = XMPPacket(properties: properties, movie: movie).segment
    // The Exif segment is the first one, so the XMP segment is inserted after it.
    let exifEnd = photo.count >= 6 ? 4 + (Int(photo[4]) << 8 | Int(photo[5])) : 0
    guard photo.starts(with: [0xFF, 0xD8, 0xFF, 0xE1]), exifEnd <= photo.count else {
      throw MediaError(.invalidData, "\(path) is not a JPEG file with Exif metadata")
    }
    // If the photo already has an XMP segment without the movie, that segment is removed.
    let earlier = XMPPacket(properties: properties).segment
    let rest = photo[exifEnd...]
    let image = rest.starts(with: earlier) ? rest.dropFirst(earlier.count) : rest
    do throws(CallFailure) {
      try WholeFile.write(
        photo[..<exifEnd] + segment + image + content, to: path, overwrites: true)
    } catch { throw MediaError(creating: error) }
  }

  private static func contents(_ path: String) throws(MediaError) -> [UInt8] {
    do throws(CallFailure) {
      let file = try RandomAccessFile(opening: path, forWriting: false)
      return file.read(Int(file.count()), at: 0)
    } catch {
      throw MediaError(creating: .creating(path, error.number))
    }
  }
}
