// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat

/// A photo in a file, and the movie that belongs to it.
///
/// Reads Live Photos, whose movie is a file beside the photo with the same content identifier, and
/// Motion Photos, which contain their movie.
public struct LivePhoto: Hashable, Sendable {
  /// The place of a movie.
  public enum Movie: Hashable, Sendable {
    /// A file with this path.
    case file(String)
    /// The last bytes of the photo's file.
    case embedded(byteCount: Int64)
  }

  /// The path of the photo, or nil if a movie has an identifier but no photo beside it.
  public let photoPath: String?
  /// The place of the movie.
  public let movie: Movie
  /// The identifier that photo and movie have in common, or nil for a Motion Photo without one.
  public let contentIdentifier: String?
  /// The time of the photo in the movie, or nil if it is not stored.
  public let photoDisplayTime: MediaTime?

  /// The key of the identifier in a movie's metadata.
  package static let contentIdentifierKey = "com.apple.quicktime.content.identifier"
  /// The key of the value at the photo's frame in a movie's timed metadata.
  package static let stillImageTimeKey = TimedValue.stillImageTime

  private static let photoExtensions = ["jpg", "jpeg", "heic", "JPG", "JPEG", "HEIC"]
  private static let movieExtensions = ["mov", "MOV", "mp4", "MP4"]

  /// Reads the pair that a photo or a movie belongs to.
  ///
  /// A movie beside a photo belongs to it only if both have the same identifier. If a photo has both
  /// a movie beside it and one of its own, the pair has the former.
  ///
  /// Blocks. Nil for a file that is not part of a pair, or that cannot be read.
  ///
  /// - Parameter path: The path of the photo or of the movie.
  public init?(path: String) {
    // Opening a pipe would wait for its writer.
    guard SystemFiles.kind(of: path) == .regular else { return nil }
    if let header = PhotoHeader(readingFrom: path) {
      self.init(photo: path, header)
    } else {
      self.init(movie: path)
    }
  }

  private init?(photo path: String, _ header: PhotoHeader) {
    photoPath = path
    contentIdentifier = header.contentIdentifier
    if let identifier = header.contentIdentifier,
      let found = Self.siblings(of: path, Self.movieExtensions)
        .first(where: { Self.identifier(ofMovie: $0) == identifier })
    {
      movie = .file(found)
      photoDisplayTime = Self.stillImageTime(ofMovie: found) ?? header.presentationTime
    } else if let count = header.embeddedByteCount {
      movie = .embedded(byteCount: count)
      photoDisplayTime = header.presentationTime
    } else {
      return nil
    }
  }

  private init?(movie path: String) {
    guard let identifier = Self.identifier(ofMovie: path) else { return nil }
    movie = .file(path)
    contentIdentifier = identifier
    photoDisplayTime = Self.stillImageTime(ofMovie: path)
    photoPath = Self.siblings(of: path, Self.photoExtensions).first {
      PhotoHeader(readingFrom: $0)?.contentIdentifier == identifier
    }
  }

  /// The paths of regular files with the same name and other extensions.
  private static func siblings(of path: String, _ extensions: [String]) -> [String] {
    let name = path.withoutExtension
    return extensions.map { "\(name).\($0)" }.filter { SystemFiles.kind(of: $0) == .regular }
  }

  private static func identifier(ofMovie path: String) -> String? {
    (try? Demuxer(opening: path, probes: false))?.metadata[contentIdentifierKey]
  }

  private static func stillImageTime(ofMovie path: String) -> MediaTime? {
    TimedMetadataReader.read(from: path).first { $0.key == stillImageTimeKey }
      .flatMap { MediaTime(exactly: $0.seconds) }
  }

  /// Opens the movie.
  ///
  /// A movie inside a photo is copied to a temporary file without a name.
  ///
  /// - Throws: `MediaError` if the photo cannot be read, or no temporary file can be written.
  public func openMovie() throws(MediaError) -> LivePhotoMovieFile {
    switch movie {
    case .file(let path): return LivePhotoMovieFile(path: path, file: nil)
    case .embedded(let count):
      let path = photoPath ?? ""
      let directory = getenv("TMPDIR").map { String(systemPath: $0) } ?? "/tmp"
      do throws(FileCreationError) {
        let made = try TemporaryName.create(beside: "\(directory)/movie", TemporaryName.part)
        unlink(made.path.systemPath)
        let copy = OpenFile(adopting: made.descriptor, path: path)
        do throws(SystemError) {
          let photo = try RandomAccessFile(opening: path, forWriting: false)
          let start = photo.count() - count
          let target = RandomAccessFile(copy)
          var done: Int64 = 0
          while done < count {
            let bytes = photo.read(Int(min(1 << 20, count - done)), at: start + done)
            if bytes.isEmpty { break }
            try target.write(bytes, at: done)
            done += Int64(bytes.count)
          }
        } catch {
          throw FileCreationError(path: directory, errorNumber: error.errorNumber, isWriting: true)
        }
        return LivePhotoMovieFile(path: copy.pathToReopen, file: copy)
      } catch { throw MediaError(error) }
    }
  }
}

/// The movie of a Live Photo, which can be read while this object exists.
public final class LivePhotoMovieFile: Sendable {
  /// The path of the movie.
  public let path: String
  private let file: OpenFile?

  init(path: String, file: OpenFile?) {
    self.path = path
    self.file = file
  }
}
