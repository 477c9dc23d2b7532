// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A step in the life cycle of a capture of photos.
///
/// The events have this order. Each occurs at most once, except
/// ``didFinishProcessingPhoto(id:_:)``. ``willBeginCapture(_:)`` and
/// ``didFinishCapture(id:error:)`` always occur. In a burst or a time lapse, photos may be finished
/// before the last frame is captured.
public enum PhotoEvent: Sendable {
  /// The output accepted the request.
  case willBeginCapture(ResolvedPhotoSettings)
  /// The first frame of the capture was chosen.
  case willCapturePhoto(id: Int64)
  /// The frames for all photos of the capture were captured.
  case didCapturePhoto(id: Int64)
  /// A photo is finished, or could not be encoded or written.
  case didFinishProcessingPhoto(id: Int64, Result<Photo, MediaError>)
  /// The last frame of a Live Photo's movie was recorded.
  ///
  /// The file is not finished yet. May occur before the photo is finished. Does not occur if the
  /// movie fails before.
  case didFinishRecordingLivePhotoMovie(id: Int64)
  /// The movie of a Live Photo is finished, or failed with its own error.
  ///
  /// Occurs after the photo, at most once.
  case didFinishLivePhotoMovie(id: Int64, Result<LivePhotoMovie, MediaError>)
  /// The capture ended.
  ///
  /// If errors occurred, `error` is the first one.
  ///
  /// The exposure, light and mode that the camera had before the capture are restored by then.
  case didFinishCapture(id: Int64, error: MediaError?)

  /// The number that identifies the capture: `PhotoSettings.uniqueID`.
  public var id: Int64 {
    switch self {
    case .willBeginCapture(let settings): settings.uniqueID
    case .willCapturePhoto(let id), .didCapturePhoto(let id),
      .didFinishProcessingPhoto(let id, _), .didFinishRecordingLivePhotoMovie(let id),
      .didFinishLivePhotoMovie(let id, _),
      .didFinishCapture(let id, _):
      id
    }
  }
}
