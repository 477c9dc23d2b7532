// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
package import OvercrankMediaCore
import OvercrankMovieFormat

/// A movie file that plays a camera: `file:clip.mp4?pace=max`.
///
/// This describes the camera; reading and timing its frames is capture's work.
package struct FileCamera: Hashable, Sendable {
  /// The file, as it was written.
  package let path: String
  /// How its frames are paced.
  package let pace: Pace

  package init(path: String, pace: Pace) {
    self.path = path
    self.pace = pace
  }

  /// Reads a device name; nil when it names something else.
  ///
  /// - Throws: `MediaError` with `.badName` for options it does not know.
  init?(parsing name: String) throws(MediaError) {
    guard name.hasPrefix("file:"), let parts = try DeviceSpecifier(name, kind: "file") else {
      return nil
    }
    guard !parts.subject.isEmpty else {
      throw parts.failure("it names no file", recovery: "write file:clip.mp4")
    }
    var pace = Pace.realTime
    for option in parts.options {
      guard option.key == "pace", let value = Pace(option: option.value) else {
        throw parts.failure(
          "a file has no option \"\(option.key)=\(option.value)\"", recovery: "it has pace=max")
      }
      pace = value
    }
    self.init(path: parts.subject, pace: pace)
  }

  /// The one mode that the file has: its size and average rate, as capture delivers it.
  ///
  /// MJPEG, and H.264 without reordered frames, arrive compressed; everything else decoded, in
  /// three planes (`YU12`).
  ///
  /// - Throws: `MediaError` with `.fileNotFound`, `.noPermission`, or `.badFile` for a file
  ///   without moving pictures.
  package func formats() throws(MediaError) -> [CaptureFormat] {
    let tracks: [TrackFormat]
    do throws(LibAVError) {
      tracks = try Demuxer(opening: path).tracks
    } catch {
      throw failure(error)
    }
    guard let track = tracks.first(where: { $0.kind == .video }) else {
      throw MediaError(
        .invalidData, "There are no moving pictures in \(path)",
        recovery: Recovery("give a movie with video", .inspect(file: path)))
    }
    guard let rate = track.averageFrameRate ?? track.nominalFrameRate,
      track.parameters.width > 0, track.parameters.height > 0
    else {
      throw MediaError(
        .invalidData, "The pictures of \(path) have no size or no frame rate",
        recovery: Recovery("give a movie with video", .inspect(file: path)))
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

  private func failure(_ error: LibAVError) -> MediaError {
    // libav words its errors to stand inside a sentence.
    let message = error.description.prefix(1).uppercased() + error.description.dropFirst()
    switch error.systemErrorNumber {
    case ENOENT:
      return MediaError(.fileNotFound, message, recovery: "check the path")
    case EACCES, EPERM:
      return MediaError(.noPermission, message, recovery: "make the file readable")
    default:
      return MediaError(
        .invalidData, message, recovery: Recovery("give a movie with video", .inspect(file: path)))
    }
  }
}
