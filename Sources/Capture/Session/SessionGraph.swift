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

  /// The connections of an input that was removed in the same configuration.
  private struct Removal {
    let mediaTypes: [MediaType]
    let links: [CaptureConnection]
    /// The outputs that were in the session then.
    let outputs: Set<ObjectIdentifier>
  }

  private var removals: [Removal] = []
  /// The modes to which cameras are set in this configuration.
  private var modes: [(input: DeviceInput, mode: CameraMode)] = []

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

  /// The error that adding a connection to the session would throw, or nil if the connection can be
  /// added.
  func refusal(of connection: CaptureConnection) -> MediaError? {
    let (address, mediaType) = (connection.input.device.address, connection.mediaType)
    func refusal(_ why: String, _ recovery: Recovery) -> MediaError {
      MediaError(.badConfiguration, why, recovery: recovery)
    }
    guard inputs.contains(where: { $0 === connection.input }) else {
      return refusal(
        "\(address) is not an input of the session", "call addInputWithNoConnections first")
    }
    guard let output = outputs.first(where: { $0 === connection.output }) else {
      return refusal(
        "the output of a connection from \(address) is not in the session",
        "call addOutputWithNoConnections first")
    }
    guard Self.accepts(output, mediaType) else {
      return refusal(
        "\(type(of: output)) does not accept \(mediaType.rawValue)", "connect another port")
    }
    guard let other = links.first(where: { $0.output === output && $0.mediaType == mediaType })
    else { return nil }
    return refusal(
      "\(type(of: output)) is already connected to \(other.input.device.address)",
      "remove that connection first, or add another output")
  }

  mutating func add(_ input: any CaptureInput, connects: Bool = true) throws(MediaError) {
    if let refusal = refusal(of: input) { throw refusal }
    guard let input = input as? any CapturingInput else { return }
    inputs.append(input)
    guard connects else { return }
    let mediaTypes = input.ports.map(\.mediaType)
    guard let index = removals.firstIndex(where: { $0.mediaTypes == mediaTypes }) else {
      for output in outputs { connect(input, output) }
      return
    }
    // The input replaces one that was removed in the same configuration, so it gets that input's
    // connections. Only outputs that were added meanwhile are connected as usual.
    let removal = removals.remove(at: index)
    for link in removal.links {
      guard let output = outputs.first(where: { $0 === link.output }) else { continue }
      connect(input, output, like: link)
    }
    for output in outputs where !removal.outputs.contains(ObjectIdentifier(output)) {
      connect(input, output)
    }
  }

  mutating func add(_ output: any CaptureOutput, connects: Bool = true) throws(MediaError) {
    if let refusal = refusal(of: output) { throw refusal }
    guard let output = output as? any FrameOutput else { return }
    members.append(Member(output: output))
    guard connects else { return }
    for input in inputs { connect(input, output) }
  }

  mutating func add(_ connection: CaptureConnection) throws(MediaError) {
    if let refusal = refusal(of: connection) { throw refusal }
    links.append(connection)
  }

  mutating func remove(_ input: any CaptureInput) {
    guard let removed = inputs.first(where: { $0 === input }) else { return }
    removals.append(
      Removal(
        mediaTypes: removed.ports.map(\.mediaType), links: connections(from: removed),
        outputs: Set(outputs.map { ObjectIdentifier($0) })))
    inputs.removeAll { $0 === input }
    links.removeAll { $0.input === input }
  }

  /// Puts an input in the place of a camera.
  ///
  /// Each port of the input gets the connections and settings of the camera's port with the same media
  /// type. A port that the camera does not have is connected as in ``add(_:connects:)``.
  mutating func replace(_ old: DeviceInput, by input: DeviceInput) throws(MediaError) {
    guard old !== input, let index = inputs.firstIndex(where: { $0 === old }) else { return }
    let (mediaTypes, links) = (old.ports.map(\.mediaType), connections(from: old))
    inputs.remove(at: index)
    self.links.removeAll { $0.input === old }
    if let refusal = refusal(of: input) { throw refusal }
    inputs.insert(input, at: index)
    for link in links {
      if let output = link.output as? any FrameOutput { connect(input, output, like: link) }
    }
    for output in outputs { connect(input, output, without: mediaTypes) }
  }

  mutating func remove(_ connection: CaptureConnection) {
    links.removeAll { $0 === connection }
  }

  /// The mode to which a camera is set in this configuration, or nil.
  func explicitMode(of input: DeviceInput) -> CameraMode? {
    modes.last { $0.input === input }?.mode
  }

  /// Sets a camera to a mode.
  ///
  /// The preset no longer applies. The other cameras keep the modes that it has given them.
  mutating func setMode(_ mode: CameraMode, of input: DeviceInput) {
    if preset != .inputPriority {
      modes = cameras.map { ($0, explicitMode(of: $0) ?? $0.mode) }
      preset = .inputPriority
    }
    modes.append((input, mode))
  }

  /// Makes the modes set in this configuration those that the cameras have without a preset.
  func keepModes() {
    guard preset == .inputPriority else { return }
    for (input, mode) in modes { input.chosenMode = mode }
  }

  /// Forgets what concerns one configuration only, because it has ended.
  mutating func endConfiguration() {
    removals = []
    modes = []
  }

  mutating func remove(_ output: any CaptureOutput) {
    members.removeAll { $0.output === output }
    links.removeAll { $0.output === output }
  }

  /// The connections of an input.
  func connections(from input: any CaptureInput) -> [CaptureConnection] {
    connections.filter { $0.input === input }
  }

  /// Connects each port of an input to an output that accepts it.
  ///
  /// An output accepts each media type from one input only: the first input that was connected. With
  /// a `former` connection, only the port of its media type is connected, with its settings. Ports of
  /// the media types in `connected` are left out.
  private mutating func connect(
    _ input: any CapturingInput, _ output: any FrameOutput, like former: CaptureConnection? = nil,
    without connected: [MediaType] = []
  ) {
    for port in input.ports
    where former.map({ $0.mediaType == port.mediaType }) ?? !connected.contains(port.mediaType) {
      let connection = CaptureConnection(input, output, port.mediaType)
      guard refusal(of: connection) == nil else { continue }
      if let former { connection.takeSettings(of: former) }
      links.append(connection)
    }
  }

  private static func accepts(_ output: any FrameOutput, _ mediaType: MediaType) -> Bool {
    output.mediaTypes.contains(mediaType) && (mediaType != .audio || output.takesAudioBlocks)
  }
}
