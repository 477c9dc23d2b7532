// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankDeviceDiscovery
import OvercrankLibAV
public import OvercrankMediaCore

/// A file format of photos.
public enum PhotoFormat: String, Hashable, Sendable, CaseIterable, Codable {
  /// JPEG with Exif metadata.
  ///
  /// A JPEG frame of the camera keeps its compressed data.
  case jpeg
  /// PNG in RGB with 8 bits per channel, with Exif metadata.
  case png
  /// DNG with the pixels of a Bayer sensor, for raw converters.
  ///
  /// Available only for cameras that deliver Bayer formats.
  case dng
  /// HEIC (HEVC in HEIF) with 4:2:0 chroma and Exif metadata.
  ///
  /// Available only with a ``PhotoEncoder`` for this format.
  case heic

  /// The extension of file names in this format, without a dot.
  public var fileExtension: String { self == .jpeg ? "jpg" : rawValue }

  /// The format that a file name extension selects; nil for another extension.
  public init?(path: String) {
    switch path.split(separator: ".").last?.lowercased() {
    case "jpg", "jpeg", "jpe": self = .jpeg
    case "png": self = .png
    case "dng": self = .dng
    case "heic", "heif": self = .heic
    default: return nil
    }
  }

  /// The formats in which frames can be stored as photos.
  ///
  /// Empty for a codec that cannot be decoded, and for pixels that libswscale cannot read. The frames
  /// of H.264 are decoded beside the camera's stream. ``heic`` also needs an encoder.
  public static func available(for subType: MediaSubType) -> [PhotoFormat] {
    switch subType {
    case .codec(let codec): return [.mjpeg, .h264].contains(codec) ? [.jpeg, .png, .heic] : []
    case .pixels(let format):
      guard LibAVPixelFormat(format)?.isConvertible == true else { return [] }
      return BayerPattern(format) == nil ? [.jpeg, .png, .heic] : [.jpeg, .png, .dng, .heic]
    }
  }

  /// Whether the image in the file is rotated.
  ///
  /// If false, Exif's `Orientation` describes the rotation.
  var isRotated: Bool { self == .png || self == .heic }

  /// The size in pixels of the photo that is made from a frame.
  ///
  /// In JPEG and DNG files, the image has the size of the frame, and the metadata describes the
  /// rotation.
  func size(ofFrame frame: FormatDescription, _ rotation: FrameRotation) -> (
    width: Int, height: Int
  ) {
    isRotated && rotation.isTransposed
      ? (frame.height, frame.width) : (frame.width, frame.height)
  }

  /// Whether photos in this file format can be taken in a camera mode.
  public func isAvailable(for format: CaptureFormat) -> Bool {
    format.mediaSubType.map { Self.available(for: $0).contains(self) } ?? false
  }
}
