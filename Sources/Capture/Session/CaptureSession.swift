// SPDX-License-Identifier: Apache-2.0

import Logging
public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// Joins cameras and microphones to what uses their frames and their sound.
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
/// Each input goes this way by itself: the others go on while one is interrupted, and then the
/// session is both. It starts none of them where one cannot be started. Full queues of a movie
/// interrupt nothing but that movie.
///
/// Inputs, outputs and the connections between them may be changed in every state; between
/// `beginConfiguration()` and `commitConfiguration()` changes wait, and then take effect
/// together. All calls may come from any thread; those that wait for a device say so, and have a
/// form beside them that suspends its task instead.
public final class CaptureSession: Sendable {
  /// An input that runs.
  typealias Running = (
    input: any CapturingInput, capture: any InputCapture, control: CaptureControl
  )

  struct State {
    var graph = SessionGraph()
    /// The graph as it is being changed, and how often the change was begun.
    var draft: (graph: SessionGraph, depth: Int)?
    var running: [Running] = []
    /// Those that run, in a list of their own: the sanitizer for threads cannot see that shared
    /// memory of a list is only changed when its last reader has counted itself out.
    var runningNow: [Running] { running.map { $0 } }
    /// Whether frames are to flow, and whether inputs that are interrupted are to come back.
    var (isWanted, resumes) = (false, false)
    /// The session itself while frames are to flow into outputs; see ``retain(_:)``.
    private(set) var retained: CaptureSession?
    var interruptions: [Interruption] = []
    /// What is told when inputs have been started or exchanged; nil while none are.
    var change: Change?
    /// Outputs whose queues are full.
    var pressed: Set<ObjectIdentifier> = []
    /// The graph as it is, or is to be.
    var latest: SessionGraph { draft?.graph ?? graph }

    /// Keeps the session alive as long as it runs and has outputs, and no longer.
    ///
    /// To be called by a method of the session after either has changed, so that it is never freed
    /// in here.
    mutating func retain(_ session: CaptureSession) {
      retained = isWanted && !graph.outputs.isEmpty ? session : nil
    }
  }

  let state = Mutex(State())
  /// Taken by who starts, stops or changes what runs; never while `state` is.
  let work = Mutex(())
  let hub = EventHub<SessionEvent>()
  let journal = Mutex(Logger.quiet)
  /// How often an input that was interrupted is tried again, in milliseconds.
  let retryMilliseconds: Int

  /// Makes a session without inputs and outputs.
  public init() { retryMilliseconds = 1_000 }

  package init(_ input: any CaptureInput, retryMilliseconds: Int) {
    self.retryMilliseconds = retryMilliseconds
    state.withLock { try? $0.graph.add(input) }
  }

  deinit { for interruption in state.withLock({ $0.interruptions }) { interruption.end() } }

  /// Makes a session of one camera in the fastest of its formats that can be stored.
  ///
  /// - Parameters:
  ///   - camera: The camera, which is opened.
  ///   - frameRate: The rate to lock; the highest where nil.
  /// - Throws: `MediaError` as ``CaptureDevice/format(matching:where:)`` and
  ///   ``DeviceInput/init(device:format:)``.
  public convenience init(
    _ camera: CaptureDevice, frameRate: FrameRate? = nil
  ) throws(MediaError) {
    let request = ModeRequest(rate: frameRate)
    try self.init(device: camera, format: camera.format(matching: request))
  }

  /// Makes a session of one camera in one mode.
  ///
  /// - Throws: `MediaError` as ``DeviceInput/init(device:format:)``.
  public convenience init(device: CaptureDevice, format: CaptureFormat) throws(MediaError) {
    self.init(try DeviceInput(device: device, format: format))
  }

  /// Makes a session of one camera.
  public convenience init(_ input: any CaptureInput) {
    self.init()
    state.withLock { try? $0.graph.add(input) }
  }

  /// What happens to the session, from now on.
  public var events: some AsyncSequence<SessionEvent, Never> & Sendable { hub.events() }

  /// Whether frames flow from an input.
  public var isRunning: Bool { state.withLock { !$0.running.isEmpty } }
  /// Whether an input was interrupted, and is waited for; or a movie's queue is full.
  public var isInterrupted: Bool {
    state.withLock { !$0.interruptions.isEmpty || !$0.pressed.isEmpty }
  }
  /// The inputs, in the order in which they were added.
  public var inputs: [any CaptureInput] { state.withLock { $0.graph.inputs } }
  /// The outputs, in the order in which they were added.
  public var outputs: [any CaptureOutput] { state.withLock { $0.graph.outputs } }
  /// The ways from inputs to outputs.
  public var connections: [CaptureConnection] { state.withLock { $0.graph.connections } }

  // MARK: - The graph

  /// Whether ``addInput(_:)`` would take it.
  public func canAddInput(_ input: any CaptureInput) -> Bool {
    state.withLock { $0.latest.refusal(of: input) == nil }
  }

  /// Whether ``addOutput(_:)`` would take it.
  public func canAddOutput(_ output: any CaptureOutput) -> Bool {
    state.withLock { $0.latest.refusal(of: output) == nil }
  }

  /// Adds an input, and connects it to every output that has no camera, or no microphone, yet.
  ///
  /// - Throws: `MediaError` with `.badConfiguration`; while the session runs also where the
  ///   device cannot be started.
  public func addInput(_ input: any CaptureInput) throws(MediaError) {
    try change { graph throws(MediaError) in try graph.add(input) }
  }

  /// Adds an output, and connects it to the first camera, or microphone, that it takes.
  ///
  /// - Throws: `MediaError` with `.badConfiguration`.
  public func addOutput(_ output: any CaptureOutput) throws(MediaError) {
    try change { graph throws(MediaError) in try graph.add(output) }
  }

  /// Takes an input out, with its connections.
  public func removeInput(_ input: any CaptureInput) {
    // Nothing has to be started for it, so that nothing can fail.
    try? change { graph throws(MediaError) in graph.remove(input) }
  }

  /// Takes an output out, with its connections.
  public func removeOutput(_ output: any CaptureOutput) {
    try? change { graph throws(MediaError) in graph.remove(output) }
  }

  /// Has changes wait until they are committed; may be nested.
  public func beginConfiguration() {
    state.withLock { state in
      state.draft = (state.latest, (state.draft?.depth ?? 0) + 1)
    }
  }

  /// Makes all changes since the first ``beginConfiguration()`` take effect, or none.
  ///
  /// While the session runs it waits for the capture threads to take the change, a tenth of a
  /// second at most, and for devices that come in to start.
  ///
  /// - Throws: `MediaError` where a device that comes in cannot be started; everything is then
  ///   as it was.
  public func commitConfiguration() throws(MediaError) {
    let graph: SessionGraph? = state.withLock { state in
      guard let draft = state.draft else { return nil }
      state.draft = draft.depth > 1 ? (draft.graph, draft.depth - 1) : nil
      return draft.depth > 1 ? nil : draft.graph
    }
    if let graph { try apply(graph) }
  }

  func change(
    _ body: (inout SessionGraph) throws(MediaError) -> Void
  ) throws(MediaError) {
    beginConfiguration()
    let result = state.withLock { state in
      Result { () throws(MediaError) in
        var graph = state.latest
        try body(&graph)
        state.draft?.graph = graph
      }
    }
    do throws(MediaError) { try result.get() } catch {
      try commitConfiguration()  // Of what was to be changed, this changed nothing.
      throw error
    }
    try commitConfiguration()
  }
}
