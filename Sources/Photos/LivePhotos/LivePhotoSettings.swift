// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The options of a Live Photo, which is a photo with a movie of 1.5 s before and 1.5 s after it.
///
/// Photo and movie are paired in two ways. As in Apple's Live Photos, both have the same content
/// identifier, and the movie marks the frame of the photo. In addition, a JPEG file contains the
/// movie, as Google's Motion Photo format 1.0 requires.
public struct LivePhotoSettings: Hashable, Sendable {
  /// The path of the movie.
  ///
  /// Nil selects the path of the photo with the extension `.mov`.
  public var moviePath: String?
  /// Whether the photo's file also contains the movie (Motion Photo).
  ///
  /// Ignored for formats other than JPEG.
  public var embedsMovie = true

  /// Whether the photo is delayed until the frames of 1.5 s before it are in memory.
  ///
  /// This matters only within 1.5 s after the start of the session. The default is false, so that
  /// the photo is the frame at the time of the request.
  public var waitsForPreRoll = false

  /// Creates settings with the path of the movie.
  public init(moviePath: String? = nil) { self.moviePath = moviePath }
}

/// The movie of a Live Photo.
public struct LivePhotoMovie: Hashable, Sendable {
  /// The path of the movie.
  public let path: String
  /// The content identifier that the photo and its movie share.
  public let contentIdentifier: String
  /// The duration of the movie.
  public let duration: MediaTime
  /// The time in the movie at which the photo was taken.
  public let photoDisplayTime: MediaTime
  /// Whether the file of the photo also contains the movie.
  public let isEmbedded: Bool
}
