// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore
package import Synchronization

/// A connection that carries one media type from an input to an output.
///
/// A session creates a connection for each input and output that match. All calls may come from any
/// thread, also while frames flow. A call blocks only if its documentation says so.
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
    self.input = input
    self.output = output
    self.mediaType = mediaType
    geometry = ConnectionGeometry((input as? DeviceInput)?.geometry)
  }

  /// The camera at the input, or nil if the input is not a camera.
  package var camera: DeviceInput? { input as? DeviceInput }
  /// The format of the audio that the input provides, or nil for a video connection.
  var audioFormat: AudioFormat? { input.ports.first { $0.mediaType == mediaType }?.audioFormat }

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
