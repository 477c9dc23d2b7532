// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat

/// A photo and the movie that belongs to it.
///
/// Live Photos and Motion Photos are supported. The movie of a Live Photo is a separate file next
/// to the photo, with the same content identifier. A Motion Photo contains its movie.
public struct LivePhoto: Hashable, Sendable {
  /// The location of the movie.
  public enum Movie: Hashable, Sendable {
    /// The movie is the file with this path.
    case file(String)
    /// The movie consists of the last bytes of the photo's file.
    case embedded(byteCount: Int64)
  }

  /// The path of the photo.
  ///
  /// Nil if the file is a movie with a content identifier, but its photo is not next to it.
  public let photoPath: String?
  /// The location of the movie.
  public let movie: Movie
  /// The content identifier that photo and movie share.
  ///
  /// Nil for a Motion Photo without an identifier.
  public let contentIdentifier: String?
  /// The time in the movie at which the photo was taken; nil if the files do not state it.
  public let photoDisplayTime: MediaTime?

  /// The key of the content identifier in the movie's metadata.
  package static let contentIdentifierKey = "com.apple.quicktime.content.identifier"
  /// The key of the value that marks the frame of the photo in the movie's timed metadata.
  package static let stillImageTimeKey = TimedValue.stillImageTime

  private static let photoExtensions = ["jpg", "jpeg", "heic", "JPG", "JPEG", "HEIC"]
  private static let movieExtensions = ["mov", "MOV", "mp4", "MP4"]

  /// Finds the photo and the movie that belong together, given the path of one of them.
  ///
  /// A movie next to a photo belongs to it only if both have the same content identifier. If a
  /// photo also contains a movie, the movie next to it is used.
  ///
  /// Blocks. Returns nil if the file has no counterpart, or cannot be read.
  ///
  /// - Parameter path: The path of the photo or of the movie.
  public init?(path: String) {
    // Opening a pipe would block until another program writes to it.
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

  /// The paths of regular files that have the same name as a file, but one of the given extensions.
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
  /// A movie that a photo contains is copied to an unnamed temporary file.
  ///
  /// - Throws: `MediaError` if the photo cannot be read, or no temporary file can be written.
  public func openMovie() throws(MediaError) -> LivePhotoMovieFile {
    switch movie {
    case .file(let path): return LivePhotoMovieFile(path: path, file: nil)
    case .embedded(let count):
      let path = photoPath ?? ""
      let directory = getenv("TMPDIR").map { String(systemPath: $0) } ?? "/tmp"
      do throws(CallFailure) {
        let made = try TemporaryName.create(beside: "\(directory)/movie", TemporaryName.part)
        unlink(made.path.systemPath)
        let copy = OpenFile(adopting: made.descriptor, path: path)
        do throws(CallFailure) {
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
          throw CallFailure.writing(directory, error.number)
        }
        return LivePhotoMovieFile(path: copy.pathToReopen, file: copy)
      } catch { throw MediaError(creating: error) }
    }
  }
}

/// The movie of a Live Photo, which can be read while this object exists.
public final class LivePhotoMovieFile: Sendable {
  /// The path of the movie.
  public let path: String
  private let file: OpenFile?

  init(path: String, file: OpenFile?) {
    (self.path, self.file) = (path, file)
  }
}
