// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import Synchronization

/// Decodes the bytes of camera frames to images for a view.
final class PreviewDecoder: Sendable {
  /// A frame as the camera delivered it.
  struct Source {
    let observation: FrameObservation
    let exposure: ExposureInForce
    let format: FormatDescription
    let geometry: ConnectionGeometry
  }

  private let converter = Mutex(SampleConverter(quality: .fast))

  /// Decodes a frame to an image of the greatest size that fits a view.
  ///
  /// - Returns: The frame, or the error of a damaged frame or an unknown pixel format.
  func frame(
    _ bytes: UnsafeRawBufferPointer, _ source: Source, as format: PixelFormat, _ maximumWidth: Int,
    _ maximumHeight: Int
  ) -> Result<PreviewFrame, MediaError> {
    let observation = source.observation
    let work = SampleConverter.Work(
      settings: Self.settings(format, of: source, maximumWidth, maximumHeight),
      rotation: source.geometry.rotation,
      factor: source.geometry.outputFactor(atMicroseconds: observation.microseconds))
    do {
      let (image, images) = try converter.withLock { converter in
        try converter.convert(bytes, source.format, work)
      }
      return .success(
        PreviewFrame(
          image, of: images, sequence: observation.sequence,
          at: MediaTime(microseconds: observation.microseconds),
          exposureDuration: source.exposure.duration))
    } catch {
      return .failure(
        error as? MediaError
          ?? MediaError(
            .invalidData, "could not show a frame: \(error)",
            recovery: Recovery("choose another format", .change(.format))))
    }
  }

  /// The pixel format and the size of an image for a view: the greatest size that fits the maximum
  /// and the camera's size.
  private static func settings(
    _ format: PixelFormat, of source: Source, _ maximumWidth: Int, _ maximumHeight: Int
  ) -> VideoDataSettings {
    let isTransposed = source.geometry.rotation.isTransposed
    let (width, height) =
      isTransposed
      ? (source.format.height, source.format.width) : (source.format.width, source.format.height)
    let rect = PreviewGeometry(
      imageWidth: width, imageHeight: height, viewWidth: Double(min(width, maximumWidth)),
      viewHeight: Double(min(height, maximumHeight))
    ).imageRect
    return VideoDataSettings(
      pixelFormat: format, width: max(1, Int(rect.width.rounded())),
      height: max(1, Int(rect.height.rounded())))
  }
}

extension MediaError {
  /// The error for a preview in a session without a camera.
  static var noCameraToShow: MediaError {
    MediaError(
      .notConnected, "the session has no camera to show", recovery: "add a camera first")
  }

  /// The error for a preview of a camera whose codec uses inter-frame prediction.
  static func notShownAlone(_ address: String) -> MediaError {
    MediaError(
      .notConvertible, "frames of \(address) depend on others and cannot be shown alone",
      recovery: Recovery("choose a format of MJPEG or uncompressed images", .change(.format)))
  }
}
