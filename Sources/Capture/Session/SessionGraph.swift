// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore

/// The inputs, outputs and connections of a session, as a value.
///
/// Changes are made to a copy, which takes effect as a whole or not at all.
struct SessionGraph {
  /// The preset that selects the cameras' modes.
  var preset = SessionPreset.inputPriority
  private(set) var inputs: [any CapturingInput] = []
  /// The inputs that are cameras.
  var cameras: [DeviceInput] { inputs.compactMap { $0 as? DeviceInput } }
  private var members: [Member] = []
  /// The outputs that still exist.
  var outputs: [any FrameOutput] { members.compactMap(\.output) }
  private var links: [CaptureConnection] = []
  /// The connections to outputs that still exist.
  var connections: [CaptureConnection] { links.filter { $0.output != nil } }

  private struct Member {
    weak var output: (any FrameOutput)?
  }

  /// The error that adding an input to the session would throw, or nil if the input can be added.
  func refusal(of input: any CaptureInput) -> MediaError? {
    guard let input = input as? any CapturingInput else {
      return MediaError(
        .badConfiguration, "the session does not support this type of input",
        recovery: "use a DeviceInput or a MicrophoneInput")
    }
    // A device node can stream through one handle only, so two inputs cannot use the same node.
    guard inputs.contains(where: { $0 === input || $0.isSameNode(as: input) }) else { return nil }
    return MediaError(
      .badConfiguration, "\(input.device.address) is already an input of the session",
      recovery: "remove the other input first")
  }

  /// The error that adding an output to the session would throw, or nil if the output can be added.
  func refusal(of output: any CaptureOutput) -> MediaError? {
    guard output is any FrameOutput else {
      return MediaError(
        .badConfiguration, "the session does not support this type of output",
        recovery: "use a VideoDataOutput and an AudioDataOutput")
    }
    guard outputs.contains(where: { $0 === output }) else { return nil }
    return MediaError(
      .badConfiguration, "the output is already in the session", recovery: "add it once")
  }

  mutating func add(_ input: any CaptureInput) throws(MediaError) {
    if let refusal = refusal(of: input) { throw refusal }
    guard let input = input as? any CapturingInput else { return }
    inputs.append(input)
    for output in outputs { connect(input, output) }
  }

  mutating func add(_ output: any CaptureOutput) throws(MediaError) {
    if let refusal = refusal(of: output) { throw refusal }
    guard let output = output as? any FrameOutput else { return }
    members.append(Member(output: output))
    for input in inputs { connect(input, output) }
  }

  mutating func remove(_ input: any CaptureInput) {
    inputs.removeAll { $0 === input }
    links.removeAll { $0.input === input }
  }

  mutating func remove(_ output: any CaptureOutput) {
    members.removeAll { $0.output === output }
    links.removeAll { $0.output === output }
  }

  /// The connections of an input.
  func connections(from input: any CaptureInput) -> [CaptureConnection] {
    connections.filter { $0.input === input }
  }

  private mutating func connect(_ input: any CapturingInput, _ output: any FrameOutput) {
    for port in input.ports where output.mediaTypes.contains(port.mediaType) {
      if port.mediaType == .audio, !output.takesAudioBlocks { continue }
      // An output accepts each media type from one input only: the first input that was connected.
      let isTaken = connections.contains {
        $0.output === output && $0.mediaType == port.mediaType
      }
      if !isTaken { links.append(CaptureConnection(input, output, port.mediaType)) }
    }
  }
}
