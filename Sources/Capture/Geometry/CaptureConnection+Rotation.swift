// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// A frame is first rotated and then mirrored.
///
/// If all video connections of a camera request the same mirroring or rotation by 180 degrees, the
/// driver applies it (`V4L2_CID_HFLIP`, `V4L2_CID_VFLIP`, `V4L2_CID_ROTATE`). This is decided when
/// the stream starts. In a running stream, the first flipped frame could not be identified, and
/// many drivers reject the change. Otherwise each output applies it: a movie gets a display matrix
/// and is not encoded again; a ``VideoDataOutput`` rotates pixels.
extension CaptureConnection {
  /// Whether the connection can rotate frames.
  ///
  /// True for video, unless the output would have to decode a codec with inter-frame prediction.
  public func isVideoRotationAngleSupported(_ angle: Int) -> Bool {
    angle == 0 || (canTransform && FrameRotation(clockwiseDegrees: angle, isMirrored: false) != nil)
  }

  /// The clockwise rotation of the frames in degrees: 0, 90, 180 or 270.
  public var videoRotationAngle: Int { geometry.settings.withLock { $0.angle } }

  /// Rotates frames clockwise.
  ///
  /// Takes effect with the next frame of a data output, and with the next file of a movie output.
  ///
  /// - Parameter angle: 0, 90, 180 or 270.
  /// - Throws: `MediaError` with `.controlNotSupported` for another angle, or if
  ///   ``isVideoRotationAngleSupported(_:)`` is false.
  public func setVideoRotationAngle(_ angle: Int) throws(MediaError) {
    guard isVideoRotationAngleSupported(angle) else {
      throw notSupported(
        "rotate frames by \(angle) degrees", advice: "choose 0, 90, 180 or 270 degrees")
    }
    geometry.change { $0.angle = angle }
  }

  /// Whether the connection can mirror frames.
  public var isVideoMirroringSupported: Bool { canTransform }

  /// Whether frames are mirrored left to right, after their rotation.
  public var isVideoMirrored: Bool { geometry.settings.withLock { $0.isMirrored } }

  /// Mirrors frames left to right, or stops mirroring them.
  ///
  /// Takes effect as ``setVideoRotationAngle(_:)`` does.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if ``isVideoMirroringSupported`` is false,
  ///   or `.badConfiguration` while ``automaticallyAdjustsVideoMirroring`` is true.
  public func setVideoMirrored(_ isMirrored: Bool) throws(MediaError) {
    guard !isMirrored || canTransform else {
      throw notSupported("mirror frames", advice: "choose another format")
    }
    guard !automaticallyAdjustsVideoMirroring else {
      throw MediaError(
        .badConfiguration, "the connection chooses its mirroring automatically",
        recovery: "set automaticallyAdjustsVideoMirroring to false first")
    }
    geometry.change { $0.isMirrored = isMirrored }
  }

  /// Whether the session chooses ``isVideoMirrored``.
  ///
  /// Default: true. Data outputs and movies are then not mirrored, which is also the rule of
  /// AVFoundation for a front camera.
  public var automaticallyAdjustsVideoMirroring: Bool {
    get { geometry.settings.withLock { $0.adjustsMirroring } }
    set {
      geometry.change { settings in
        settings.adjustsMirroring = newValue
        if newValue { settings.isMirrored = false }
      }
    }
  }

  /// Whether the output can rotate, mirror and crop the camera's frames.
  var canTransform: Bool {
    guard mediaType == .video, let camera, let output = output as? any FrameOutput else {
      return false
    }
    return output.canTransform(FormatDescription(camera.delivery))
  }

  func notSupported(_ what: String, advice: Recovery) -> MediaError {
    MediaError(
      .controlNotSupported,
      "the connection from \(input.device.address) cannot \(what)", recovery: advice)
  }
}
