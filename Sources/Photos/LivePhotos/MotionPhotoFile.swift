// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMediaCore

/// Makes a JPEG file with Exif metadata a Motion Photo.
enum MotionPhotoFile {
  /// Appends a movie to a photo, and describes it in XMP.
  ///
  /// The photo is replaced as a whole, so it stays complete if the disk is full.
  ///
  /// - Parameters:
  ///   - movie: The path of the movie.
  ///   - path: The path of the photo.
  ///   - time: The time of the photo in the movie.
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
    // Exif comes first.
    let exifEnd = photo.count >= 6 ? 4 + (Int(photo[4]) << 8 | Int(photo[5])) : 0
    guard photo.starts(with: [0xFF, 0xD8, 0xFF, 0xE1]), exifEnd <= photo.count else {
      throw MediaError(.invalidData, "\(path) is not a JPEG file with Exif metadata")
    }
    // The photo may have had an XMP segment without the movie.
    let earlier = XMPPacket(properties: properties).segment
    let rest = photo[exifEnd...]
    let image = rest.starts(with: earlier) ? rest.dropFirst(earlier.count) : rest
    do throws(FileCreationError) {
      try WholeFile.write(
        photo[..<exifEnd] + segment + image + content, to: path, overwrites: true)
    } catch { throw MediaError(error) }
  }

  private static func contents(_ path: String) throws(MediaError) -> [UInt8] {
    do throws(SystemError) {
      let file = try RandomAccessFile(opening: path, forWriting: false)
      return file.read(Int(file.count()), at: 0)
    } catch {
      throw MediaError(FileCreationError(path: path, errorNumber: error.errorNumber))
    }
  }
}
