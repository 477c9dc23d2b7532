// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// A source of media for a session, such as ``DeviceInput`` or ``MicrophoneInput``.
///
/// Only this library's inputs conform. A session rejects other conforming types.
public protocol CaptureInput: AnyObject, Sendable {
  /// The device that the input captures from.
  var device: CaptureDevice { get }
  /// The input's ports, one for each media type.
  var ports: [InputPort] { get }
}

extension CaptureInput {
  /// The ports of one media type.
  public func ports(for mediaType: MediaType) -> [InputPort] {
    ports.filter { $0.mediaType == mediaType }
  }
}

/// A media type that an input provides.
///
/// Ports are equal if their inputs are the same object, and media type and audio format are equal.
public struct InputPort: Hashable, Sendable {
  /// The input that provides the media.
  public let input: any CaptureInput
  /// The port's media type.
  public let mediaType: MediaType
  /// The format of the audio samples, or nil for video.
  public let audioFormat: AudioFormat?

  init(of input: any CaptureInput, mediaType: MediaType, audioFormat: AudioFormat? = nil) {
    self.input = input
    (self.mediaType, self.audioFormat) = (mediaType, audioFormat)
  }

  /// Whether two ports provide the same media of the same input.
  public static func == (left: Self, right: Self) -> Bool {
    left.input === right.input && left.mediaType == right.mediaType
      && left.audioFormat == right.audioFormat
  }

  /// Hashes the input and the media type.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(input))
    hasher.combine(mediaType)
  }
}

/// The requirements of an input that a session can run.
package protocol CapturingInput: CaptureInput {
  /// Creates a capture that waits for ``InputCapture/begin()``.
  ///
  /// - Parameters:
  ///   - connections: The input's connections, with the outputs that receive its media.
  ///   - control: The control that stops the capture.
  ///   - whenEnded: Called on the capture thread after a running stream has stopped.
  /// - Returns: The capture, not yet running.
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  func makeCapture(
    into connections: [CaptureConnection], control: CaptureControl,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void
  ) throws(MediaError) -> any InputCapture

  /// The system calls through which the device is opened. Tests replace them.
  var reach: DeviceEnvironment { get }

  /// Whether the device can be reopened.
  ///
  /// False if the caller supplied the driver.
  var canReopen: Bool { get }

  /// Whether the session runs without the input if its device, or another one beside it, cannot start.
  var isOptional: Bool { get }

  /// Closes a lost device, because the handle of a lost device stays unusable even after the device
  /// returns.
  func close()

  /// Opens the device if it is closed.
  ///
  /// - Throws: `MediaError` from the device. The input then stays closed.
  func openIfClosed() throws(MediaError)

  /// Reopens the device at its current location, in the same mode.
  ///
  /// The device must not be streaming.
  ///
  /// - Throws: `MediaError` from the device. The input is then closed.
  func reopen(at device: CaptureDevice) throws(MediaError)
}

/// A capture from one input.
package protocol InputCapture: AnyObject, Sendable {
  /// Starts the stream.
  ///
  /// Call this method at most once.
  ///
  /// - Throws: `MediaError` from the device. The sinks have not ended then: another capture may fill
  ///   them, or ``cancel(_:)`` ends them.
  func begin() throws(MediaError)

  /// Ends the sinks of a capture that has not begun, or could not begin.
  ///
  /// Do not call ``begin()`` afterwards.
  ///
  /// - Parameter error: The error with which the capture could not begin; nil if it is not wanted any
  ///   more.
  func cancel(_ error: MediaError?)

  /// Replaces the connections that receive the media.
  ///
  /// - Returns: False if the capture has ended.
  /// - Throws: `MediaError` with `.outOfMemory` if memory or a thread for a connection is
  ///   unavailable.
  func connect(_ connections: [CaptureConnection]) throws(MediaError) -> Bool

  /// Blocks until the capture ends, and returns its final state.
  @discardableResult
  func waitUntilEnded() -> CaptureEnd
}

extension CapturingInput {
  package var isOptional: Bool { false }

  /// Whether this input and another input use the same device node.
  func isSameNode(as other: any CapturingInput) -> Bool {
    (device.kind == .v4l2 || device.kind == .alsa) && device.path == other.device.path
  }
}
