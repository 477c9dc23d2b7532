// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// A way from an input to an output; formed by the session for each pair that goes together.
///
/// All calls may come from any thread, also while frames pass; none of them waits.
public final class CaptureConnection: Sendable {
  /// Where frames or sound come from.
  public let input: any CaptureInput
  /// Where they go.
  public let output: any CaptureOutput
  /// What is carried.
  public let mediaType: MediaType
  let gate = ConnectionGate()

  init(_ input: any CaptureInput, _ output: any CaptureOutput, _ mediaType: MediaType) {
    self.input = input
    self.output = output
    self.mediaType = mediaType
  }

  /// The camera that frames come from; nil for another input.
  package var camera: DeviceInput? { input as? DeviceInput }
  /// How the samples of the sound are given; nil for pictures.
  var audioFormat: AudioFormat? { input.ports.first { $0.mediaType == mediaType }?.audioFormat }

  /// Whether frames or sound pass; may be changed at any time, and holds from the next on.
  public var isEnabled: Bool {
    get { gate.isOpen.load(ordering: .relaxed) }
    set { gate.isOpen.store(newValue, ordering: .relaxed) }
  }
}

/// Whether a connection lets anything through, for sinks, which must not keep what they serve.
final class ConnectionGate: Sendable {
  let isOpen = Atomic<Bool>(true)
}
