// SPDX-License-Identifier: Apache-2.0
public import FormatDiscovery
import Synchronization

/// Joins cameras to what uses their frames.
///
/// ```
///              addInput, addOutput                 startRunning
///   empty ───────────────────────────▶ stopped ───────────────────▶ running
///                                         ▲  ▲                         │
///                                         │  └────── stopRunning ──────┤
///                                         └── runtimeError, interrupted ┘
/// ```
///
/// Inputs, outputs and the connections between them may be changed in every state; between
/// ``beginConfiguration()`` and ``commitConfiguration()`` changes wait, and then take effect
/// together. All calls may come from any thread; those that wait for a device say so.
public final class CaptureSession: Sendable {
  private struct State {
    var graph = SessionGraph()
    /// The graph as it is being changed, and how often the change was begun.
    var draft: (graph: SessionGraph, depth: Int)?
    var running: [(input: DeviceInput, capture: RunningCapture, control: CaptureControl)] = []
    /// The graph as it is, or is to be.
    var latest: SessionGraph { draft?.graph ?? graph }
  }

  private let state = Mutex(State())
  /// Taken by who starts, stops or changes what runs; never while `state` is.
  private let work = Mutex(())
  private let hub = EventHub<SessionEvent>()

  /// Makes a session without inputs and outputs.
  public init() {}

  /// Makes a session of one camera in one mode.
  ///
  /// - Throws: `CaptureError` as ``DeviceInput/init(device:format:)``.
  public convenience init(device: CaptureDevice, format: CaptureFormat) throws(CaptureError) {
    self.init(try DeviceInput(device: device, format: format))
  }

  /// Makes a session of one camera.
  public convenience init(_ input: DeviceInput) {
    self.init()
    state.withLock { try? $0.graph.add(input) }
  }

  /// What happens to the session, from now on.
  public var events: AsyncStream<SessionEvent> { hub.events() }

  /// Whether frames flow from an input.
  public var isRunning: Bool { state.withLock { !$0.running.isEmpty } }
  /// The inputs, in the order in which they were added.
  public var inputs: [DeviceInput] { state.withLock { $0.graph.inputs } }
  /// The outputs, in the order in which they were added.
  public var outputs: [any CaptureOutput] { state.withLock { $0.graph.outputs } }
  /// The ways from inputs to outputs.
  public var connections: [CaptureConnection] { state.withLock { $0.graph.connections } }

  // MARK: - The graph

  /// Whether ``addInput(_:)`` would take it.
  public func canAddInput(_ input: DeviceInput) -> Bool {
    state.withLock { $0.latest.refusal(of: input) == nil }
  }

  /// Whether ``addOutput(_:)`` would take it.
  public func canAddOutput(_ output: any CaptureOutput) -> Bool {
    state.withLock { $0.latest.refusal(of: output) == nil }
  }

  /// Adds an input, and connects it to every output that has no camera yet.
  ///
  /// - Throws: `CaptureError` with `.badConfiguration`; while the session runs also where the
  ///   device cannot be started.
  public func addInput(_ input: DeviceInput) throws(CaptureError) {
    try change { graph throws(CaptureError) in try graph.add(input) }
  }

  /// Adds an output, and connects it to the first camera.
  ///
  /// - Throws: `CaptureError` with `.badConfiguration`.
  public func addOutput(_ output: any CaptureOutput) throws(CaptureError) {
    try change { graph throws(CaptureError) in try graph.add(output) }
  }

  /// Takes an input out, with its connections.
  public func removeInput(_ input: DeviceInput) {
    try? change { graph throws(CaptureError) in graph.remove(input) }
  }

  /// Takes an output out, with its connections.
  public func removeOutput(_ output: any CaptureOutput) {
    try? change { graph throws(CaptureError) in graph.remove(output) }
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
  /// - Throws: `CaptureError` where a device that comes in cannot be started; everything is then
  ///   as it was.
  public func commitConfiguration() throws(CaptureError) {
    let graph: SessionGraph? = state.withLock { state in
      guard let draft = state.draft else { return nil }
      state.draft = draft.depth > 1 ? (draft.graph, draft.depth - 1) : nil
      return draft.depth > 1 ? nil : draft.graph
    }
    if let graph { try apply(graph) }
  }

  private func change(
    _ body: (inout SessionGraph) throws(CaptureError) -> Void
  ) throws(CaptureError) {
    beginConfiguration()
    let result = state.withLock { state in
      Result { () throws(CaptureError) in
        var graph = state.latest
        try body(&graph)
        state.draft?.graph = graph
      }
    }
    do throws(CaptureError) { try result.get() } catch {
      try commitConfiguration()  // Of what was to be changed, this changed nothing.
      throw error
    }
    try commitConfiguration()
  }

  // MARK: - Running

  /// Starts every input that has a connection; returns when their streams are being switched on.
  ///
  /// Does nothing while the session runs.
  ///
  /// - Throws: `CaptureError` with `.badConfiguration` where there is no input, or as the devices
  ///   say; none runs then.
  public func startRunning() throws(CaptureError) {
    _ = try run(with: CaptureControl())
  }

  /// Stops every input; returns when their streams are off.
  public func stopRunning() {
    let running = state.withLock { $0.running }
    for entry in running { entry.control.stop(.signal) }
    for entry in running { entry.capture.waitUntilEnded() }
  }

  /// Starts the session, the first input with a control of the caller's.
  ///
  /// - Returns: Whether it does; false where it ran already.
  package func run(with control: CaptureControl) throws(CaptureError) -> Bool {
    let result = work.withLock { _ in
      Result { () throws(CaptureError) -> Bool in
        guard !isRunning else { return false }
        let graph = state.withLock { $0.graph }
        guard let first = graph.inputs.first else {
          throw CaptureError(
            .badConfiguration, "the session has no input", hint: "add one with addInput")
        }
        for input in graph.inputs {
          do throws(CaptureError) {
            try start(input, in: graph, control: input === first ? control : CaptureControl())
          } catch {
            stopRunning()
            throw error
          }
        }
        return true
      }
    }
    let isStarted = try result.get()
    if isStarted { hub.send(.didStartRunning) }
    return isStarted
  }

  /// Asks an output anew where its frames go, while the session runs.
  ///
  /// - Returns: Whether frames go there now.
  package func refresh(_ output: any CaptureOutput) -> Bool {
    work.withLock { _ in
      let (graph, running) = state.withLock { ($0.graph, $0.running) }
      let inputs = graph.connections.filter { $0.output === output }.map(\.input)
      return running.filter { entry in inputs.contains { $0 === entry.input } }
        .contains { $0.capture.setSinks(graph.sinks(for: $0.input)) }
    }
  }

  private func start(
    _ input: DeviceInput, in graph: SessionGraph, control: CaptureControl
  ) throws(CaptureError) {
    let capture = try RunningCapture(
      input: input, sinks: graph.sinks(for: input), control: control
    ) { [weak self] end in self?.didEnd(input, end) }
    state.withLock { $0.running.append((input, capture, control)) }
    do throws(CaptureError) { try capture.begin() } catch {
      state.withLock { state in state.running.removeAll { $0.input === input } }
      throw error
    }
  }

  /// On the capture thread, when the stream of an input is off.
  private func didEnd(_ input: DeviceInput, _ end: CaptureEnd) {
    let isLast = state.withLock { state in
      state.running.removeAll { $0.input === input }
      return state.running.isEmpty
    }
    if let error = end.error {
      if error.code == .deviceLost {
        hub.send(.wasInterrupted(.deviceGone))
      } else if error.code == .deviceBusy {
        hub.send(.wasInterrupted(.deviceInUse))
      } else {
        hub.send(.runtimeError(error))
      }
    }
    if isLast { hub.send(.didStopRunning) }
  }

  /// Makes a graph the one in force, or leaves the one that is.
  private func apply(_ graph: SessionGraph) throws(CaptureError) {
    let result = work.withLock { _ in
      Result { () throws(CaptureError) in
        let (before, wasRunning) = state.withLock { ($0.graph, !$0.running.isEmpty) }
        put(graph, insteadOf: before)
        guard wasRunning else { return }
        do throws(CaptureError) { try adjust(to: graph) } catch {
          put(before, insteadOf: graph)
          // What ran before is asked to run again; where it does not, its end is an event.
          try? adjust(to: before)
          throw error
        }
      }
    }
    try result.get()
  }

  private func put(_ graph: SessionGraph, insteadOf before: SessionGraph) {
    for output in graph.outputs where !before.outputs.contains(where: { $0 === output }) {
      output.didJoin(self)
    }
    for output in before.outputs where !graph.outputs.contains(where: { $0 === output }) {
      output.didJoin(nil)
    }
    state.withLock { $0.graph = graph }
  }

  /// Has just the inputs of a graph run, into its outputs.
  private func adjust(to graph: SessionGraph) throws(CaptureError) {
    // A device must have stopped before another that shares its bus can start.
    for entry in state.withLock({ $0.running })
    where !graph.inputs.contains(where: { $0 === entry.input }) {
      entry.control.stop(.signal)
      entry.capture.waitUntilEnded()
    }
    let running = state.withLock { $0.running }
    for entry in running { _ = entry.capture.setSinks(graph.sinks(for: entry.input)) }
    for input in graph.inputs where !running.contains(where: { $0.input === input }) {
      try start(input, in: graph, control: CaptureControl())
    }
  }
}

extension SessionGraph {
  /// Where the frames of an input go.
  ///
  /// What can be lent is shared out evenly: an output that keeps all it may takes nothing from
  /// the others.
  fileprivate func sinks(for input: DeviceInput) -> [any FrameSink] {
    let sinks = connections(from: input).compactMap { connection in
      (connection.output as? any FrameOutput)?.sink(for: connection)
    }
    let keepers = sinks.filter(\.keepsFrames)
    for sink in keepers { sink.allow(keeping: max(1, input.loans.capacity / keepers.count)) }
    return sinks
  }
}
