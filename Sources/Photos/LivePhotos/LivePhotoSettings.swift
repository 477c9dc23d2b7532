// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The options of a Live Photo: a photo and a movie of 1.5 s before and after it.
///
/// Photo and movie are paired in two ways. Both have one content identifier, and the movie marks the
/// frame of the photo, as Apple's Live Photos. A JPEG file also contains the movie, as Google's
/// Motion Photo format 1.0 defines.
public struct LivePhotoSettings: Hashable, Sendable {
  /// The path of the movie, or nil for the photo's path with the extension `.mov`.
  public var moviePath: String?
  /// Whether the photo's file also contains the movie (Motion Photo).
  ///
  /// Ignored for formats other than JPEG.
  public var embedsMovie = true

  /// Whether the photo is delayed until 1.5 s of frames before it are in memory.
  ///
  /// Matters only soon after the start of the session. Default: false, so that the photo is the
  /// frame at the request.
  public var waitsForPreRoll = false

  /// Creates settings for a movie beside the photo.
  public init(moviePath: String? = nil) { self.moviePath = moviePath }
}

/// The movie of a Live Photo.
public struct LivePhotoMovie: Hashable, Sendable {
  /// The path of the movie.
  public let path: String
  /// The identifier that the photo and its movie have in common.
  public let contentIdentifier: String
  /// The duration of the movie.
  public let duration: MediaTime
  /// The time of the photo's frame in the movie.
  public let photoDisplayTime: MediaTime
  /// Whether the photo's file contains the movie too.
  public let isEmbedded: Bool
}
