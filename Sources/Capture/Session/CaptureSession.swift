// SPDX-License-Identifier: Apache-2.0

import Logging
public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// A session that connects cameras and microphones to outputs.
///
/// ```
///                startRunning               device gone or taken
///   stopped ──────────────────▶ running ──────────────────────────▶ interrupted
///    ▲   ▲                       │   ▲                                │   │
///    │   └─ stopRunning, ────────┘   └──────── device back ───────────┘   │
///    │      runtimeError, end                                             │
///    └────────────────────── stopRunning, runtimeError ───────────────────┘
/// ```
///
/// Each input has its own state. If one input is interrupted, the others continue. The session runs
/// as long as one of its inputs does. If one input cannot start, the session starts none. If a
/// movie's queue is full, its output reports that as an event; the session is not interrupted.
///
/// The session keeps its inputs and outputs alive. An output keeps its inputs alive too, so a
/// function may return only the output. The output's `session` property then gives access to the
/// session. Inputs, outputs and connections may be changed in every state. Changes between
/// ``beginConfiguration()`` and `commitConfiguration()` take effect together. All calls may come
/// from any thread. If a call blocks on a device, its documentation says so, and an asynchronous
/// form exists.
public final class CaptureSession: Sendable {
  /// A running input.
  typealias Running = (
    input: any CapturingInput, capture: any InputCapture, control: CaptureControl
  )

  struct State {
    var graph = SessionGraph()
    /// The graph that is being configured, and the nesting depth of the calls of
    /// `beginConfiguration()`.
    var draft: (graph: SessionGraph, depth: Int)?
    var running: [Running] = []
    /// A copy of the list of running inputs.
    ///
    /// The thread sanitizer reports a false positive for copy-on-write of a shared array, so every
    /// element is copied.
    var runningNow: [Running] { running.map { $0 } }
    /// Whether the session should run, and whether interrupted inputs restart.
    var (isWanted, resumes) = (false, false)
    /// The session, if the program or `retained` holds it.
    weak var session: CaptureSession?
    /// The reference that keeps the session alive while the session should run and has outputs.
    ///
    /// See ``retain(_:)``.
    private(set) var retained: CaptureSession?
    var interruptions: [Interruption] = []
    /// The events collected while inputs are started or replaced.
    ///
    /// Nil at other times.
    var change: Change?
    /// The graph that is being configured or, if none is, the graph in effect.
    var latest: SessionGraph { draft?.graph ?? graph }

    /// Keeps the session alive while it runs and has outputs.
    ///
    /// Call this from a method of the session whenever either condition changes. During that
    /// method, `self` keeps the session alive, so it is not destroyed while its state is locked.
    mutating func retain(_ session: CaptureSession) {
      retained = isWanted && !graph.outputs.isEmpty ? session : nil
    }
  }

  package let core: SessionCore
  /// Keeps the outputs alive, because the core has only weak references to them.
  private let held: Mutex<[any FrameOutput]>

  /// Creates a session without inputs and outputs.
  public convenience init() { self.init(SessionCore(retryMilliseconds: 1_000)) }

  package convenience init(_ input: any CaptureInput, retryMilliseconds: Int) {
    self.init(SessionCore(retryMilliseconds: retryMilliseconds))
    core.state.withLock { try? $0.graph.add(input) }
  }

  /// Creates a session for a core that has no session object.
  private convenience init(_ core: SessionCore) {
    self.init(core, holding: [])
    core.state.withLock { $0.session = self }
  }

  /// Creates the session of a core whose state the caller has locked.
  init(_ core: SessionCore, holding outputs: [any FrameOutput]) {
    self.core = core
    held = Mutex(outputs)
  }

  /// Creates a session with one camera in its fastest format that a movie can store.
  ///
  /// - Parameters:
  ///   - camera: The camera to open.
  ///   - frameRate: The frame rate to lock. Nil selects the highest.
  /// - Throws: `MediaError` as ``CaptureDevice/format(matching:where:)`` and
  ///   ``DeviceInput/init(device:format:)`` do.
  public convenience init(
    _ camera: CaptureDevice, frameRate: FrameRate? = nil
  ) throws(MediaError) {
    let request = ModeRequest(rate: frameRate)
    try self.init(device: camera, format: camera.format(matching: request))
  }

  /// Creates a session with one camera in a given mode.
  ///
  /// - Throws: `MediaError` as ``DeviceInput/init(device:format:)`` does.
  public convenience init(device: CaptureDevice, format: CaptureFormat) throws(MediaError) {
    self.init(try DeviceInput(device: device, format: format))
  }

  /// Creates a session with one input.
  public convenience init(_ input: any CaptureInput) {
    self.init()
    core.state.withLock { try? $0.graph.add(input) }
  }

  /// The session's events that occur after this call.
  public var events: some AsyncSequence<SessionEvent, Never> & Sendable { core.hub.events() }

  /// Whether at least one input is running.
  public var isRunning: Bool { core.state.withLock { !$0.running.isEmpty } }
  /// Whether no input runs, and at least one waits for its device to return.
  ///
  /// Never true together with ``isRunning``.
  public var isInterrupted: Bool {
    core.state.withLock { $0.running.isEmpty && !$0.interruptions.isEmpty }
  }
  /// The interrupted inputs, which restart when their devices return.
  ///
  /// Other inputs may be running.
  public var interruptedInputs: [any CaptureInput] {
    core.state.withLock { $0.interruptions.map { $0.input } }
  }
  /// The inputs, in the order in which they were added.
  public var inputs: [any CaptureInput] { core.state.withLock { $0.graph.inputs } }
  /// The outputs, in the order in which they were added.
  public var outputs: [any CaptureOutput] { core.state.withLock { $0.graph.outputs } }
  /// The connections from inputs to outputs.
  public var connections: [CaptureConnection] { core.state.withLock { $0.graph.connections } }

  // MARK: - The graph

  /// Whether ``addInput(_:)`` would accept an input.
  public func canAddInput(_ input: any CaptureInput) -> Bool {
    core.state.withLock { $0.latest.refusal(of: input) == nil }
  }

  /// Whether ``addOutput(_:)`` would accept an output.
  public func canAddOutput(_ output: any CaptureOutput) -> Bool {
    core.state.withLock { $0.latest.refusal(of: output) == nil }
  }

  /// Adds an input and connects it to every output that has no input of the same media type yet.
  ///
  /// In a running session the input is started, which blocks.
  ///
  /// - Throws: `MediaError` with `.badConfiguration` if ``canAddInput(_:)`` is false. In a running
  ///   session, also the error of a device that cannot start.
  public func addInput(_ input: any CaptureInput) throws(MediaError) {
    try change { graph throws(MediaError) in try graph.add(input) }
  }

  /// Adds an output and connects it to the first camera or microphone that it accepts.
  ///
  /// - Throws: `MediaError` with `.badConfiguration` if ``canAddOutput(_:)`` is false.
  public func addOutput(_ output: any CaptureOutput) throws(MediaError) {
    try change { graph throws(MediaError) in try graph.add(output) }
  }

  /// Removes an input and its connections.
  public func removeInput(_ input: any CaptureInput) {
    // Errors are ignored, because only the start of a device can fail and a removal starts none.
    try? change { graph throws(MediaError) in graph.remove(input) }
  }

  /// Removes an output and its connections.
  public func removeOutput(_ output: any CaptureOutput) {
    try? change { graph throws(MediaError) in graph.remove(output) }
  }

  /// Defers changes until `commitConfiguration()`.
  ///
  /// Calls may be nested.
  public func beginConfiguration() {
    core.state.withLock { state in
      state.draft = (state.latest, (state.draft?.depth ?? 0) + 1)
    }
  }

  /// Applies all changes since the outermost ``beginConfiguration()`` or, if one fails, none of
  /// them.
  ///
  /// In a running session, this call blocks until the capture threads use the new connections,
  /// which takes at most 0.1 s, and until new devices have started.
  ///
  /// - Throws: `MediaError` if a new device cannot be started. The previous configuration then
  ///   stays in effect.
  public func commitConfiguration() throws(MediaError) {
    let graph: SessionGraph? = core.state.withLock { state in
      guard let draft = state.draft else { return nil }
      state.draft = draft.depth > 1 ? (draft.graph, draft.depth - 1) : nil
      return draft.depth > 1 ? nil : draft.graph
    }
    defer { holdOutputs() }
    if let graph { try apply(graph) }
  }

  func change(
    _ body: (inout SessionGraph) throws(MediaError) -> Void
  ) throws(MediaError) {
    beginConfiguration()
    let result = core.state.withLock { state in
      Result { () throws(MediaError) in
        var graph = state.latest
        try body(&graph)
        state.draft?.graph = graph
      }
    }
    holdOutputs()
    do throws(MediaError) { try result.get() } catch {
      try commitConfiguration()  // Ends the nested configuration without a change.
      throw error
    }
    try commitConfiguration()
  }

  /// Keeps the outputs alive, both those of the graph in effect and those of a graph that is being
  /// configured.
  private func holdOutputs() {
    let released = core.state.withLock { state in
      let outputs = state.graph.outputs + (state.draft?.graph.outputs ?? [])
      return held.withLock { held in
        defer { held = outputs }
        return held
      }
    }
    // The released outputs are destroyed here, because an output must not be destroyed while the
    // state is locked.
    withExtendedLifetime(released) {}
  }
}
