// SPDX-License-Identifier: Apache-2.0
public import FormatDiscovery
import Synchronization

/// A way from an input to an output; formed by the session for each pair that goes together.
public final class CaptureConnection: Sendable {
  /// Where frames come from.
  public let input: DeviceInput
  /// Where they go.
  public let output: any CaptureOutput
  /// What is carried.
  public let mediaType: MediaType
  private let enabled = Atomic<Bool>(true)

  init(_ input: DeviceInput, _ output: any CaptureOutput, _ mediaType: MediaType) {
    self.input = input
    self.output = output
    self.mediaType = mediaType
  }

  /// Whether frames pass; may be changed at any time, and holds from the next frame on.
  public var isEnabled: Bool {
    get { enabled.load(ordering: .relaxed) }
    set { enabled.store(newValue, ordering: .relaxed) }
  }
}
