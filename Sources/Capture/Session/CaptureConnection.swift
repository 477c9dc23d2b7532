// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
public import OvercrankDeviceDiscovery
import OvercrankLibAV
public import OvercrankMediaCore
package import Synchronization

/// A connection that carries one media type from an input to an output.
///
/// A session creates a connection for each input and output that match. A program that feeds several
/// outputs from several inputs adds its own:
///
/// ```swift
/// let session = CaptureSession()
/// let cameras = try ["synthetic:640x480@240", "synthetic:320x240@120"].map { name in
///   let camera = try CaptureDevice.named(name)
///   return try DeviceInput(device: camera, format: camera.fastestFormat())
/// }
/// let outputs = [VideoDataOutput(), VideoDataOutput()]
/// for (camera, output) in zip(cameras, outputs) {
///   try session.addInputWithNoConnections(camera)
///   try session.addOutputWithNoConnections(output)
///   try session.addConnection(CaptureConnection(inputPorts: camera.ports(for: .video), output: output))
/// }
/// ```
///
/// All calls may come from any thread, also while frames flow. A call blocks only if its
/// documentation says so.
public final class CaptureConnection: Sendable {
  /// The source of the frames or audio.
  public let input: any CaptureInput
  /// The destination of the frames or audio, or nil if the output was destroyed.
  public weak let output: (any CaptureOutput)?
  /// The media type that the connection carries.
  public let mediaType: MediaType
  package let gate = ConnectionGate()
  /// The rotation, mirroring and zoom of the connection.
  package let geometry: ConnectionGeometry

  init(_ input: any CaptureInput, _ output: any CaptureOutput, _ mediaType: MediaType) {
    (self.input, self.output, self.mediaType) = (input, output, mediaType)
    geometry = ConnectionGeometry((input as? DeviceInput)?.geometry)
    adjustMirroring()
  }

  /// Creates a connection, to be added with `CaptureSession.addConnection(_:)`.
  ///
  /// - Parameters:
  ///   - inputPorts: One port of an input. A movie with audio needs one connection for each port.
  ///   - output: The destination. It is not kept alive.
  /// - Throws: `MediaError` with `.badConfiguration` for no port or several.
  public convenience init(
    inputPorts: [InputPort], output: any CaptureOutput
  ) throws(MediaError) {
    guard let port = inputPorts.first, inputPorts.count == 1 else {
      throw MediaError(
        .badConfiguration, "a connection carries one port, not \(inputPorts.count)",
        recovery: "create a connection for each port")
    }
    self.init(port.input, output, port.mediaType)
  }

  /// The port that the connection reads, as the only element.
  ///
  /// Empty if the input has lost the port.
  public var inputPorts: [InputPort] { input.ports(for: mediaType) }

  /// Takes over the settings of a connection that this one replaces, as far as the output can apply
  /// them to this camera.
  func takeSettings(of former: CaptureConnection) {
    isEnabled = former.isEnabled
    guard canTransform else { return }
    let settings = former.geometry.settings.withLock { $0 }
    geometry.change { $0 = settings }
    adjustMirroring()
    former.geometry.coordinator?.follow(self)
  }

  /// The camera at the input, or nil if the input is not a camera.
  package var camera: DeviceInput? { input as? DeviceInput }
  /// Whether the input is a camera, or one that the session may omit.
  package var isOptional: Bool {
    (input as? any CapturingInput).map { $0.isOptional || $0 is DeviceInput } ?? false
  }
  /// The format of the audio that the input provides, or nil for a video connection.
  package var audioFormat: AudioFormat? {
    input.ports.first { $0.mediaType == mediaType }?.audioFormat
  }

  /// Whether frames or audio pass through the connection.
  ///
  /// A change takes effect with the next frame or audio block.
  public var isEnabled: Bool {
    get { gate.isOpen.load(ordering: .relaxed) }
    set { gate.isOpen.store(newValue, ordering: .relaxed) }
  }
}

/// The enabled state of a connection.
///
/// Sinks reference this object instead of the connection.
package final class ConnectionGate: Sendable {
  package let isOpen = Atomic<Bool>(true)
}

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
  /// True for video, unless the output would have to decode a codec with inter-frame prediction that
  /// it does not decode.
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
    geometry.coordinator = nil
    geometry.change { $0.angle = angle }
  }

  /// Rotates frames as a coordinator says, now and whenever its device is rotated.
  ///
  /// If another camera takes the connection over, its frames are level too: the coordinator then
  /// computes the angles for that camera.
  ///
  /// The frames of a preview are then level in the user interface, and all others are level with the
  /// horizon. ``setVideoRotationAngle(_:)`` ends this.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the output cannot rotate the frames.
  public func follow(_ coordinator: CaptureDevice.RotationCoordinator) throws(MediaError) {
    guard canTransform else {
      throw notSupported("rotate frames", advice: "choose another format")
    }
    coordinator.follow(self)
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
  /// Default: true. A preview of a front camera is then mirrored, and all other outputs are not. This
  /// is also the rule of AVFoundation.
  public var automaticallyAdjustsVideoMirroring: Bool {
    get { geometry.settings.withLock { $0.adjustsMirroring } }
    set {
      geometry.change { $0.adjustsMirroring = newValue }
      adjustMirroring()
    }
  }

  /// Chooses the mirroring, if the session does.
  private func adjustMirroring() {
    let isMirrored = canTransform && isPreview && input.device.position == .front
    geometry.change { if $0.adjustsMirroring { $0.isMirrored = isMirrored } }
  }

  /// Whether the output shows frames to the person in front of the screen.
  var isPreview: Bool { (output as? any FrameOutput)?.isPreview ?? false }

  /// Whether the output can rotate, mirror and crop the camera's frames.
  var canTransform: Bool {
    guard mediaType == .video, let camera, let output = output as? any FrameOutput else {
      return false
    }
    return output.canTransform(
      FormatDescription(output.decodesFrames ? camera.imageDelivery : camera.delivery))
  }

  func notSupported(_ what: String, advice: Recovery) -> MediaError {
    MediaError(
      .controlNotSupported,
      "the connection from \(input.device.address) cannot \(what)", recovery: advice)
  }

  /// Whether the camera of the connection has image stabilization.
  ///
  /// The call blocks while the driver answers.
  public var isVideoStabilizationSupported: Bool {
    mediaType == .video && camera?.driver.isStabilizing != nil
  }

  /// The preferred image stabilization, which takes effect if the camera supports it.
  ///
  /// Default: ``VideoStabilizationMode/auto``. If the connections of a camera differ,
  /// ``VideoStabilizationMode/standard`` prevails. After the stream, the camera's previous setting
  /// is restored. A change in a running stream blocks while the driver communicates with the
  /// camera.
  public var preferredVideoStabilizationMode: VideoStabilizationMode {
    get { geometry.settings.withLock { $0.stabilization } }
    set {
      geometry.change { $0.stabilization = newValue }
      camera?.geometry.capture?.stabilize()
    }
  }

  /// The image stabilization in effect.
  ///
  /// ``VideoStabilizationMode/off`` while the camera does not capture or has no stabilization. The
  /// call blocks while the driver communicates with the camera.
  public var activeVideoStabilizationMode: VideoStabilizationMode {
    guard mediaType == .video, let camera, camera.geometry.capture != nil else { return .off }
    return camera.driver.isStabilizing == true ? .standard : .off
  }
}

extension [CaptureConnection] {
  /// Whether these connections request image stabilization from their camera.
  ///
  /// Nil keeps the camera's own setting.
  var wantsStabilization: Bool? {
    let modes = filter { $0.mediaType == .video }.map(\.preferredVideoStabilizationMode)
    return modes.contains(.standard) ? true : modes.contains(.off) ? false : nil
  }
}

extension CaptureConnection {
  /// The greatest ``videoScaleAndCropFactor``.
  ///
  /// 1 for audio, and for an output that cannot crop frames.
  public var videoMaxScaleAndCropFactor: Double {
    canTransform ? camera?.videoMaxZoomFactor ?? 1 : 1
  }

  /// The factor by which this connection enlarges frames, in addition to the zoom of the camera.
  public var videoScaleAndCropFactor: Double {
    geometry.settings.withLock { $0.scaleAndCropFactor }
  }

  /// Crops the frames of this connection around their center, and scales the crop to the full frame
  /// size.
  ///
  /// Takes effect with the next frame that is processed. A movie that stores the camera's packets
  /// unchanged keeps all pixels. The factor at the movie's first frame then sets the clean aperture
  /// that players show.
  ///
  /// - Parameter factor: From 1 to ``videoMaxScaleAndCropFactor``.
  /// - Throws: `MediaError` with `.controlOutOfRange`.
  public func setVideoScaleAndCropFactor(_ factor: Double) throws(MediaError) {
    let maximum = videoMaxScaleAndCropFactor
    guard factor >= 1, factor <= maximum else {
      throw .zoomOutOfRange("the scale and crop factor", factor, takes: "1 to \(maximum)")
    }
    geometry.change { $0.scaleAndCropFactor = factor }
  }
}

/// The image stabilization that a connection prefers.
public enum VideoStabilizationMode: String, Hashable, Sendable, CaseIterable {
  /// The camera does not stabilize the image.
  case off
  /// The camera stabilizes the image.
  case standard
  /// The camera keeps its own setting.
  case auto
}
