// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// Where a session's media come from; ``DeviceInput`` and ``MicrophoneInput`` are such.
///
/// Inputs are this library's own: a session refuses those of others.
public protocol CaptureInput: AnyObject, Sendable {
  /// The device behind the input.
  var device: CaptureDevice { get }
  /// What it gives, a port for each kind of media.
  var ports: [InputPort] { get }
}

/// A kind of media that an input gives.
public struct InputPort: Hashable, Sendable {
  /// What comes out of it.
  public let mediaType: MediaType
  /// How the samples are given; nil for pictures.
  public let audioFormat: AudioFormat?

  init(mediaType: MediaType, audioFormat: AudioFormat? = nil) {
    self.mediaType = mediaType
    self.audioFormat = audioFormat
  }
}

/// What a session asks of its inputs.
package protocol CapturingInput: CaptureInput {
  /// Makes what captures, which waits to begin.
  ///
  /// - Parameters:
  ///   - connections: Those of the input, with the outputs that the media go to.
  ///   - control: Ends the capture.
  ///   - whenEnded: Called on the capture thread when a stream that was on is off.
  /// - Returns: What captures, not begun yet.
  /// - Throws: `MediaError` with `.outOfMemory` when there is no thread to be had.
  func makeCapture(
    into connections: [CaptureConnection], control: CaptureControl,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void
  ) throws(MediaError) -> any InputCapture

  /// Where the device is reached.
  var reach: DeviceEnvironment { get }

  /// Whether the device can be opened again; not where a driver of the caller's stands for it.
  var canReopen: Bool { get }

  /// Closes the device, which is gone: what is open of it is of no use when it is back.
  func close()

  /// Opens the device where it was closed.
  ///
  /// - Throws: `MediaError` as the device says; the input stays closed then.
  func openIfClosed() throws(MediaError)

  /// Opens the device anew as it was set, where it is now; it must not stream.
  ///
  /// - Throws: `MediaError` as the device says; the input is closed then.
  func reopen(at device: CaptureDevice) throws(MediaError)
}

/// An input while it runs.
package protocol InputCapture: AnyObject, Sendable {
  /// Switches the stream on; to be called once.
  ///
  /// - Throws: `MediaError` as the device says.
  func begin() throws(MediaError)

  /// Ends what waits for ``begin()``, which then is not to be called.
  func cancel()

  /// Sends the media over these connections from now on; false where the capture has ended.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` when there is no memory or thread for one of them.
  func connect(_ connections: [CaptureConnection]) throws(MediaError) -> Bool

  /// Waits for the capture to end, and tells what it knows.
  @discardableResult
  func waitUntilEnded() -> CaptureEnd
}

extension CapturingInput {
  /// Whether both stand for the same node of the system.
  func isSameNode(as other: any CapturingInput) -> Bool {
    (device.kind == .v4l2 || device.kind == .alsa) && device.path == other.device.path
  }
}
