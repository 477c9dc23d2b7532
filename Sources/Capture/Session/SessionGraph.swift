// SPDX-License-Identifier: Apache-2.0
import FormatDiscovery

/// The inputs, outputs and connections of a session, as a value: changes are made to a copy and
/// then take effect together, or not at all.
struct SessionGraph {
  /// Which modes the inputs are set to.
  var preset = SessionPreset.inputPriority
  private(set) var inputs: [DeviceInput] = []
  private(set) var outputs: [any FrameOutput] = []
  private(set) var connections: [CaptureConnection] = []

  /// Why a device cannot come in, or nil.
  func refusal(of input: DeviceInput) -> CaptureError? {
    // Two handles of one node could not both stream.
    guard inputs.contains(where: { $0 === input || $0.isSameNode(as: input) }) else { return nil }
    return CaptureError(
      .badConfiguration, "\(input.deviceName) is an input of the session already",
      hint: "remove the other input first")
  }

  /// Why an output cannot come in, or nil.
  func refusal(of output: any CaptureOutput) -> CaptureError? {
    guard output is any FrameOutput else {
      return CaptureError(
        .badConfiguration, "an output of another make takes no frames",
        hint: "take them from a VideoDataOutput")
    }
    guard outputs.contains(where: { $0 === output }) else { return nil }
    return CaptureError(
      .badConfiguration, "the output is in the session already", hint: "add it once")
  }

  mutating func add(_ input: DeviceInput) throws(CaptureError) {
    if let refusal = refusal(of: input) { throw refusal }
    inputs.append(input)
    for output in outputs { connect(input, output) }
  }

  mutating func add(_ output: any CaptureOutput) throws(CaptureError) {
    if let refusal = refusal(of: output) { throw refusal }
    guard let output = output as? any FrameOutput else { return }
    outputs.append(output)
    for input in inputs { connect(input, output) }
  }

  mutating func remove(_ input: DeviceInput) {
    inputs.removeAll { $0 === input }
    connections.removeAll { $0.input === input }
  }

  mutating func remove(_ output: any CaptureOutput) {
    outputs.removeAll { $0 === output }
    connections.removeAll { $0.output === output }
  }

  /// The connections that come from an input.
  func connections(from input: DeviceInput) -> [CaptureConnection] {
    connections.filter { $0.input === input }
  }

  private mutating func connect(_ input: DeviceInput, _ output: any FrameOutput) {
    // An output takes the pictures of one camera: the first.
    let isTaken = connections.contains { $0.output === output && $0.mediaType == .video }
    if output.mediaTypes.contains(.video), !isTaken {
      connections.append(CaptureConnection(input, output, .video))
    }
  }
}

extension DeviceInput {
  /// Whether both stand for the same node of the system.
  fileprivate func isSameNode(as other: DeviceInput) -> Bool {
    device.kind == .v4l2 && device.path == other.device.path
  }
}
