// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
package import OvercrankMediaCore
import OvercrankMovieFormat

/// The description of a file played as a camera: `file:clip.mp4?pace=max`.
///
/// This value only describes the camera. The capture module reads the frames and delivers them at
/// their presentation times.
package struct FileCamera: Hashable, Sendable {
  /// The path of the movie file, as given by the user.
  package let path: String
  /// Whether frames are delivered in real time or as fast as they are consumed.
  package let pace: Pace

  package init(path: String, pace: Pace) {
    (self.path, self.pace) = (path, pace)
  }

  /// Parses a device name, or returns nil for a name of another kind.
  ///
  /// - Throws: `MediaError` with `.badName` for an unknown option.
  init?(parsing name: String) throws(MediaError) {
    guard name.hasPrefix("file:"), let parts = try DeviceSpecifier(name, kind: "file") else {
      return nil
    }
    guard !parts.subject.isEmpty else {
      throw parts.failure("the file name is missing", recovery: "write file:clip.mp4")
    }
    var pace = Pace.realTime
    for option in parts.options {
      guard option.key == "pace", let value = Pace(option: option.value) else {
        throw parts.failure(
          "a file has no option \"\(option.key)=\(option.value)\"", recovery: "write pace=max")
      }
      pace = value
    }
    self.init(path: parts.subject, pace: pace)
  }

  /// The file's single mode: its size and its average frame rate.
  ///
  /// MJPEG and H.264 without reordered frames are delivered compressed. Other codecs are decoded to
  /// planar 4:2:0 (`YU12`).
  ///
  /// - Throws: `MediaError` with `.fileNotFound`, `.noPermission`, or `.invalidData` for a file
  ///   without video.
  package func formats() throws(MediaError) -> [CaptureFormat] {
    let tracks: [TrackFormat]
    do throws(CallFailure) {
      tracks = try Demuxer(opening: path).tracks
    } catch {
      throw MediaError(error, at: stage)
    }
    guard let track = tracks.preferred(where: { $0.kind == .video }) else {
      throw MediaError(
        .invalidData, "\(path) contains no video",
        recovery: Recovery("choose a movie with video", .inspect(file: path)))
    }
    guard let rate = track.averageFrameRate ?? track.nominalFrameRate,
      track.parameters.width > 0, track.parameters.height > 0
    else {
      throw MediaError(
        .invalidData, "the video of \(path) has no size or no frame rate",
        recovery: Recovery("choose a movie with video", .inspect(file: path)))
    }
    if let references = DataReferences(of: path), references.tracksElsewhere.contains(true) {
      throw MediaError(
        .invalidData, DataReferences.refusal(of: path), recovery: DataReferences.recovery)
    }
    let fourcc: FourCC =
      switch track.parameters.codecName {
      case "mjpeg": .mjpg
      case "h264" where !track.parameters.isReordered: .h264
      default: .yu12
      }
    return [
      CaptureFormat(
        fourcc: fourcc, width: track.parameters.width, height: track.parameters.height,
        isCompressed: fourcc != .yu12, frameRateRange: FrameRateRange(rate), driverOrder: 0)
    ]
  }

  /// Opening the movie.
  private var stage: CallStage {
    CallStage(
      [
        .notFound: .init(.fileNotFound, "check the path"),
        .noPermission: .init(.noPermission, "make the file readable"),
      ],
      other: .init(.invalidData, Recovery("choose a movie with video", .inspect(file: path))))
  }
}
