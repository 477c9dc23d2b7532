// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A finished photo.
public struct Photo: Sendable {
  /// The number that identifies the capture: `PhotoSettings.uniqueID`.
  public let uniqueID: Int64
  /// The index of the photo in its capture, from 0.
  public let index: Int
  /// The format of the photo's file.
  public let format: PhotoFormat
  /// The width in pixels of the stored image, before viewers apply Exif's `Orientation`.
  public let width: Int
  /// The height in pixels of the stored image.
  public let height: Int
  /// The number of frames that the camera delivered to the output before the frame of this photo.
  public let frameIndex: Int64
  /// The driver's frame counter for the frame of the photo, which wraps at 2^32.
  public let sequence: UInt32
  /// The capture time of the frame, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  /// The time for which the photo was requested, on the capture clock.
  public let requestTime: MediaTime
  /// The Exif values in the file, by name.
  public let exif: [String: String]
  /// The path of the file, or nil if the destination is memory.
  public internal(set) var path: String?
  /// The bytes of the file, or nil if they were written to a file.
  public internal(set) var data: [UInt8]?

  /// The image of `PhotoSettings.previewPhotoFormat`, or nil if none was requested.
  public internal(set) var previewPixelBuffer: PixelBuffer?

  /// The movie of a Live Photo, or nil.
  ///
  /// Set only in photos that `PhotoOutput.photos(with:at:)` returns, because the movie is finished
  /// after the photo.
  public internal(set) var livePhotoMovie: LivePhotoMovie?

  /// The time from the request to the capture of the frame.
  ///
  /// Negative if the frame was captured before the request.
  public var shutterLag: MediaTime {
    // Both times are whole microseconds, so their difference can be represented exactly.
    MediaTime(exactly: presentationTimeStamp - requestTime) ?? .zero
  }
}
