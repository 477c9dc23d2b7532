// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A step in the life cycle of a capture of photos.
///
/// The steps have this order, and each except ``didFinishProcessingPhoto(id:_:)`` comes at most once.
/// ``willBeginCapture(_:)`` and ``didFinishCapture(id:error:)`` always come. In a burst or a time
/// lapse, photos may be finished before the last frame is captured.
public enum PhotoEvent: Sendable {
  /// The output accepted the request.
  case willBeginCapture(ResolvedPhotoSettings)
  /// The first frame was chosen.
  case willCapturePhoto(id: Int64)
  /// All frames are captured.
  case didCapturePhoto(id: Int64)
  /// A photo is finished, or could not be encoded or written.
  case didFinishProcessingPhoto(id: Int64, Result<Photo, MediaError>)
  /// The movie of a Live Photo is finished, or failed with its own error.
  ///
  /// Comes after the photo, at most once.
  case didFinishLivePhotoMovie(id: Int64, Result<LivePhotoMovie, MediaError>)
  /// The capture ended, with the first error if any.
  ///
  /// The camera then has the exposure, light and mode that it had before.
  case didFinishCapture(id: Int64, error: MediaError?)

  /// The number of the capture: `PhotoSettings.uniqueID`.
  public var id: Int64 {
    switch self {
    case .willBeginCapture(let settings): settings.uniqueID
    case .willCapturePhoto(let id), .didCapturePhoto(let id),
      .didFinishProcessingPhoto(let id, _), .didFinishLivePhotoMovie(let id, _),
      .didFinishCapture(let id, _):
      id
    }
  }
}
