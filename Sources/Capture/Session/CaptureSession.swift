// SPDX-License-Identifier: Apache-2.0

public import Logging
public import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
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
/// A microphone may be optional, such as the one of a camera
/// (``MicrophoneInput/init(ofCamera:)``). An optional input never keeps the others from running. If
/// it cannot start, or if another input can start only without it, the session removes it, closes its
/// device, and continues. ``omittedInputs`` and ``SessionEvent/didOmitInput(_:)`` give the reason.
///
/// The session keeps its inputs and outputs alive. An output keeps its inputs alive too, so a
/// function may return only the output. The output's `session` property then gives access to the
/// session. Inputs, outputs and connections may be changed in every state. Changes between
/// ``beginConfiguration()`` and `commitConfiguration()` take effect together. All calls may come
/// from any thread. If a call blocks on a device, its documentation says so, and an asynchronous
/// form exists.
public final class CaptureSession: Sendable {
  /// A running input.
  fileprivate typealias Running = (
    input: any CapturingInput, capture: any InputCapture, control: CaptureControl
  )

  fileprivate struct State {
    /// The graph in effect.
    var graph = SessionGraph() { didSet { version += 1 } }
    /// The number of graphs that took effect so far.
    private(set) var version = 0
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
    /// The optional inputs that were removed since the session last started.
    var omitted: [OmittedInput] = []
    /// The events collected while inputs are started or replaced.
    ///
    /// Nil at other times.
    var change: Change?

    /// Keeps the session alive while it runs and has outputs.
    ///
    /// Call this from a method of the session whenever either condition changes. During that
    /// method, `self` keeps the session alive, so it is not destroyed while its state is locked.
    mutating func retain(_ session: CaptureSession) {
      retained = isWanted && !graph.outputs.isEmpty ? session : nil
    }
  }

  /// A step of a configuration.
  typealias GraphStep = @Sendable (inout SessionGraph) throws(MediaError) -> Void

  /// A configuration that has not been committed.
  private struct Draft {
    var graph: SessionGraph
    /// The version of the graph to which the steps were applied.
    let version: Int
    var steps: [GraphStep] = []
    /// The nesting depth of the calls of `beginConfiguration()`.
    var depth = 1

    mutating func append(_ step: @escaping GraphStep) throws(MediaError) {
      var changed = graph
      try step(&changed)
      graph = changed
      steps.append(step)
    }

    /// The graph after all steps.
    ///
    /// If another graph took effect meanwhile, the steps are repeated with that one.
    ///
    /// - Throws: `MediaError` of a step that the other graph does not allow.
    func committed(to current: SessionGraph, _ version: Int) throws(MediaError) -> SessionGraph {
      guard version != self.version else { return graph }
      var graph = current
      for step in steps { try step(&graph) }
      return graph
    }
  }

  private struct Configuration {
    var draft: Draft?
    /// Keeps the outputs alive, because the core has only weak references to them.
    var outputs: [any FrameOutput]
  }

  package let core: SessionCore
  /// A thread that holds this lock may acquire that of the core's state.
  private let configuration: Mutex<Configuration>

  /// Creates a session without inputs and outputs.
  public convenience init() { self.init(SessionCore()) }

  package convenience init(_ input: any CaptureInput, retryMilliseconds: Int) {
    self.init(SessionCore(retryMilliseconds: retryMilliseconds), with: input)
  }

  /// Creates a session for a new core, with one input.
  private convenience init(_ core: SessionCore, with input: any CaptureInput) {
    self.init(core)
    core.state.withLock { try? $0.graph.add(input) }
    (input as? DeviceInput)?.didJoin(self)
  }

  /// Creates a session for a core that has no session object.
  private convenience init(_ core: SessionCore) {
    self.init(core, holding: [])
    core.state.withLock { $0.session = self }
  }

  /// Creates the session of a core whose state the caller has locked.
  fileprivate init(_ core: SessionCore, holding outputs: [any FrameOutput]) {
    self.core = core
    configuration = Mutex(Configuration(outputs: outputs))
  }

  /// Creates a session with one camera in its fastest format that a movie can store.
  ///
  /// - Parameters:
  ///   - camera: The camera to open.
  ///   - frameRate: The frame rate to lock. Nil selects the highest.
  /// - Throws: `MediaError` as ``CaptureDevice/format(matching:where:)`` and
  ///   `DeviceInput.init(device:format:)` do.
  public convenience init(
    _ camera: CaptureDevice, frameRate: FrameRate? = nil
  ) throws(MediaError) {
    let request = ModeRequest(rate: frameRate)
    try self.init(device: camera, format: camera.format(matching: request))
  }

  /// Creates a session with one camera in a given mode.
  ///
  /// - Throws: `MediaError` as `DeviceInput.init(device:format:)` does.
  public convenience init(device: CaptureDevice, format: CaptureFormat) throws(MediaError) {
    self.init(try DeviceInput(device: device, format: format))
  }

  /// Creates a session with one input.
  public convenience init(_ input: any CaptureInput) {
    self.init(SessionCore(), with: input)
  }

  /// The session's events that occur after this call.
  public var events: some AsyncSequence<SessionEvent, Never> & Sendable { core.hub.events() }

  /// Whether at least one input is running.
  public var isRunning: Bool { core.state.withLock { !$0.running.isEmpty } }
  /// The inputs that are running.
  public var runningInputs: [any CaptureInput] {
    core.state.withLock { $0.running.map { $0.input } }
  }
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
  /// The optional inputs that the session has removed since it last started, because they or
  /// another input could not start.
  public var omittedInputs: [OmittedInput] { core.state.withLock { $0.omitted } }
  /// The inputs, in the order in which they were added.
  public var inputs: [any CaptureInput] { core.state.withLock { $0.graph.inputs } }
  /// The outputs, in the order in which they were added.
  public var outputs: [any CaptureOutput] { core.state.withLock { $0.graph.outputs } }
  /// The connections from inputs to outputs.
  public var connections: [CaptureConnection] { core.state.withLock { $0.graph.connections } }

  /// The graph that is being configured or, if none is, the graph in effect.
  var latestGraph: SessionGraph {
    configuration.withLock { $0.draft?.graph } ?? core.state.withLock { $0.graph }
  }

  // MARK: - The graph

  /// Whether `addInput(_:)` would accept an input.
  public func canAddInput(_ input: any CaptureInput) -> Bool {
    latestGraph.refusal(of: input) == nil
  }

  /// Whether `addOutput(_:)` would accept an output.
  public func canAddOutput(_ output: any CaptureOutput) -> Bool {
    latestGraph.refusal(of: output) == nil
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

  /// Adds an input without connections, as `addInput(_:)` does otherwise.
  ///
  /// - Throws: `MediaError` as `addInput(_:)` does.
  public func addInputWithNoConnections(_ input: any CaptureInput) throws(MediaError) {
    try change { graph throws(MediaError) in try graph.add(input, connects: false) }
  }

  /// Adds an output without connections, as `addOutput(_:)` does otherwise.
  ///
  /// An input that is added later with `addInput(_:)` is connected to it.
  ///
  /// - Throws: `MediaError` as `addOutput(_:)` does.
  public func addOutputWithNoConnections(_ output: any CaptureOutput) throws(MediaError) {
    try change { graph throws(MediaError) in try graph.add(output, connects: false) }
  }

  /// Whether ``addConnection(_:)`` would accept a connection.
  public func canAddConnection(_ connection: CaptureConnection) -> Bool {
    latestGraph.refusal(of: connection) == nil
  }

  /// Adds a connection between an input and an output of the session.
  ///
  /// An input may be connected to several outputs. An output accepts each media type from one input.
  ///
  /// - Throws: `MediaError` with `.badConfiguration` if ``canAddConnection(_:)`` is false. The
  ///   message says why, and names the camera to which the output is already connected.
  public func addConnection(_ connection: CaptureConnection) throws(MediaError) {
    try change { graph throws(MediaError) in try graph.add(connection) }
  }

  /// Removes a connection.
  ///
  /// Its output then gets nothing from the input. Does nothing if the session does not have the
  /// connection.
  public func removeConnection(_ connection: CaptureConnection) {
    // Errors are ignored, because only the start of a device can fail and a removal starts none.
    try? change { graph throws(MediaError) in graph.remove(connection) }
  }

  /// Removes an input and its connections.
  ///
  /// If an input with the same ports is added in the same configuration, it gets these connections
  /// and their settings.
  public func removeInput(_ input: any CaptureInput) {
    // Errors are ignored, because only the start of a device can fail and a removal starts none.
    try? change { graph throws(MediaError) in graph.remove(input) }
  }

  /// Removes an output and its connections.
  public func removeOutput(_ output: any CaptureOutput) {
    try? change { graph throws(MediaError) in graph.remove(output) }
  }

  /// Replaces a camera by another one, which gets its connections and their settings.
  ///
  /// In a running session, this call blocks until the new camera runs. If it cannot start, the old
  /// camera runs again.
  ///
  /// - Parameters:
  ///   - camera: The new camera.
  ///   - old: The camera to replace. Nil selects the only camera of the session.
  /// - Throws: `MediaError` with `.badConfiguration` if the session does not have the old camera, or
  ///   as `addInput(_:)` does.
  public func switchCamera(
    to camera: DeviceInput, from old: DeviceInput? = nil
  ) throws(MediaError) {
    try change { graph throws(MediaError) in
      let cameras = graph.cameras
      guard let old = old ?? (cameras.count == 1 ? cameras[0] : nil),
        cameras.contains(where: { $0 === old })
      else {
        throw MediaError(
          .badConfiguration,
          old.map { "\($0.device.address) is not a camera of the session" }
            ?? "the session has \(cameras.count) cameras", recovery: "name the camera to replace")
      }
      try graph.replace(old, by: camera)
    }
  }

  /// Defers changes until `commitConfiguration()`.
  ///
  /// Calls may be nested. If all references to the session are released before the commit, the changes
  /// are discarded.
  public func beginConfiguration() {
    configuration.withLock { configuration in
      if configuration.draft != nil {
        configuration.draft?.depth += 1
      } else {
        let (graph, version) = core.state.withLock { ($0.graph, $0.version) }
        configuration.draft = Draft(graph: graph, version: version)
      }
    }
  }

  /// Applies all changes since the outermost ``beginConfiguration()`` or, if one fails, none of
  /// them.
  ///
  /// In a running session, this call blocks until the capture threads use the new connections,
  /// which takes at most 0.1 s, and until new devices have started.
  ///
  /// - Throws: `MediaError` if a new device cannot be started, or with `.badConfiguration` if a change
  ///   on another thread has taken effect meanwhile that excludes one of these. The previous
  ///   configuration then stays in effect.
  public func commitConfiguration() throws(MediaError) {
    let draft = configuration.withLock { configuration -> Draft? in
      guard let draft = configuration.draft else { return nil }
      configuration.draft?.depth -= 1
      if draft.depth == 1 { configuration.draft = nil }
      return draft.depth == 1 ? draft : nil
    }
    defer { holdOutputs() }
    guard let draft else { return }
    try core.work.withLock { (_) throws(MediaError) in
      let (graph, version) = core.state.withLock { ($0.graph, $0.version) }
      try apply(draft.committed(to: graph, version))
    }
  }

  /// Changes the graph, at once or with the configuration that is not committed yet.
  func change(_ step: @escaping GraphStep) throws(MediaError) {
    defer { holdOutputs() }
    let isDeferred = try configuration.withLock { (configuration) throws(MediaError) in
      try configuration.draft?.append(step)
      return configuration.draft != nil
    }
    guard !isDeferred else { return }
    try core.work.withLock { (_) throws(MediaError) in
      var graph = core.state.withLock { $0.graph }
      try step(&graph)
      try apply(graph)
    }
  }

  /// Keeps the outputs alive, both those of the graph in effect and those of a graph that is being
  /// configured.
  private func holdOutputs() {
    let released = configuration.withLock { configuration in
      let outputs = core.state.withLock { $0.graph.outputs }
      defer { configuration.outputs = outputs + (configuration.draft?.graph.outputs ?? []) }
      return configuration.outputs
    }
    // The released outputs are destroyed here, because an output must not be destroyed while the
    // configuration is locked.
    withExtendedLifetime(released) {}
  }

  /// Starts every input and blocks until all streams are on.
  ///
  /// In a running session this restarts the inputs that failed. Interrupted inputs keep waiting for
  /// their devices. While the session runs, an input whose device was lost restarts when the device
  /// returns.
  ///
  /// - Throws: `MediaError` with `.badConfiguration` if the session has no input, or the error of a
  ///   device that cannot start. Only the inputs that were running before the call are then
  ///   running.
  public func startRunning() throws(MediaError) {
    _ = try run(with: CaptureControl(), resumes: true)
  }

  /// Starts every input and suspends the task until all streams are on.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func startRunning() async throws(MediaError) {
    try await BlockingThread.run { _ throws(MediaError) in try self.startRunning() }
  }

  /// Stops every input, including interrupted ones, and blocks until all streams are off.
  public func stopRunning() { stopAll() }

  private func stopAll() {
    let (running, interruptions) = core.state.withLock { state in
      state.isWanted = false
      state.retain(self)
      return (state.runningNow, state.interruptions.removeAndReturnAll())
    }
    for interruption in interruptions { interruption.end() }
    for entry in running { entry.control.stop(.stopped) }
    for entry in running { entry.capture.waitUntilEnded() }
  }

  /// Stops every input and suspends the task until all streams are off.
  public func stopRunning() async {
    do throws(MediaError) {
      try await BlockingThread.run { _ throws(MediaError) in self.stopAll() }
    } catch { stopAll() }  // If no thread can be created, this thread blocks.
  }

  // MARK: - Changes that suspend the task

  /// Commits the configuration as the blocking form does, but suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func commitConfiguration() async throws(MediaError) {
    try await BlockingThread.run { _ throws(MediaError) in try self.commitConfiguration() }
  }

  /// Adds an input as the blocking form does, but suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func addInput(_ input: any CaptureInput) async throws(MediaError) {
    try await BlockingThread.run { _ throws(MediaError) in try self.addInput(input) }
  }

  /// Adds an output as the blocking form does, but suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func addOutput(_ output: any CaptureOutput) async throws(MediaError) {
    try await BlockingThread.run { _ throws(MediaError) in try self.addOutput(output) }
  }

  /// Removes an input as the blocking form does, but suspends the task meanwhile.
  public func removeInput(_ input: any CaptureInput) async {
    let remove: @Sendable () -> Void = { self.removeInput(input) }
    do throws(MediaError) {
      try await BlockingThread.run { _ throws(MediaError) in remove() }
    } catch { remove() }  // If no thread can be created, this thread blocks.
  }

  /// Sets a preset as the blocking form does, but suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func setSessionPreset(_ preset: SessionPreset) async throws(MediaError) {
    try await BlockingThread.run { _ throws(MediaError) in try self.setSessionPreset(preset) }
  }

  /// Replaces a camera as the blocking form does, but suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func switchCamera(
    to camera: DeviceInput, from old: DeviceInput? = nil
  ) async throws(MediaError) {
    try await BlockingThread.run { _ throws(MediaError) in
      try self.switchCamera(to: camera, from: old)
    }
  }

  /// Starts the session, with a control supplied by the caller for one of its inputs.
  ///
  /// That input is the first camera or, without a camera, the first input.
  ///
  /// - Parameters:
  ///   - control: The control that stops the capture of that input.
  ///   - resumes: Whether interrupted inputs restart when their devices return.
  /// - Returns: True if the session started, false if it was already running.
  /// - Throws: `MediaError` as `startRunning()`.
  package func run(
    with control: CaptureControl, resumes: Bool = false
  ) throws(MediaError) -> Bool {
    try core.work.withLock { (_) throws(MediaError) -> Bool in
      let (graph, wasWanted, running) = core.state.withLock { state in
        defer {
          if !state.isWanted {
            (state.isWanted, state.resumes, state.omitted) = (true, resumes, [])
          }
          state.retain(self)
        }
        return (state.graph, state.isWanted, state.runningNow.map(\.input))
      }
      beginChange()
      if wasWanted {
        defer { endChange() }
        _ = try firstInput(of: graph)
        do throws(MediaError) { try adjust(to: graph, starting: graph.inputs) } catch {
          stopInputs(except: running)
          goOn(with: graph, running: running)
          throw error
        }
        keepOmissions()
        return false
      }
      do throws(MediaError) { try startAll(graph, control) } catch {
        stopRunning()
        // The start failed, so the session never ran. The collected events would report an end
        // without a start, so they are discarded.
        core.state.withLock { $0.change = nil }
        throw error
      }
      keepOmissions()
      endChange()
      return true
    }
  }

  private func startAll(
    _ graph: SessionGraph, _ control: CaptureControl
  ) throws(MediaError) {
    let first = try firstInput(of: graph)
    for input in graph.inputs {
      if input === first {
        try start(input, in: graph, control: control)
      } else {
        try startOrOmit(input, in: graph)
      }
    }
  }

  /// The first camera, or the first input if there is no camera.
  private func firstInput(of graph: SessionGraph) throws(MediaError) -> any CapturingInput {
    if let first = graph.cameras.first ?? graph.inputs.first { return first }
    throw MediaError(
      .badConfiguration, "the session has no input", recovery: "add one with addInput")
  }

  /// Requests new sinks from an output while the session runs.
  ///
  /// - Returns: Whether frames now flow to the output.
  /// - Throws: `MediaError` with `.outOfMemory` if memory or a thread is unavailable.
  package func refresh(_ output: any CaptureOutput) throws(MediaError) -> Bool {
    try core.work.withLock { (_) throws(MediaError) -> Bool in
      let (graph, running) = core.state.withLock { ($0.graph, $0.runningNow) }
      let inputs = graph.connections.filter { $0.output === output }.map(\.input)
      let wanted = running.filter { entry in inputs.contains { $0 === entry.input } }
      func connect(_ entry: Running) throws(MediaError) -> Bool {
        try entry.capture.connect(graph.connections(from: entry.input))
      }
      // Audio is connected before video, so that audio is available when the first frame arrives.
      for entry in wanted where !(entry.input is DeviceInput) { _ = try connect(entry) }
      return try wanted.filter { $0.input is DeviceInput }.map(connect).contains(true)
    }
  }

  /// Starts an input, and reopens its device first if it is closed.
  ///
  /// Does nothing if the session was stopped meanwhile.
  ///
  /// Devices on one bus share its bandwidth. If the input cannot start, the running optional inputs are
  /// therefore stopped, and omitted if the input can start without them. Otherwise they start again.
  func start(
    _ input: any CapturingInput, in graph: SessionGraph,
    control: CaptureControl = CaptureControl()
  ) throws(MediaError) {
    try input.openIfClosed()
    guard let first = try attempt(input, in: graph, control) else { return }
    let optional = input.isOptional ? [] : stopOptionalInputs()
    let failure = optional.isEmpty ? first : try attempt(input, in: graph, control)
    guard let failure else {
      for input in optional { omit(input, because: first.error) }
      return
    }
    failure.capture.cancel(failure.error)
    for input in optional {
      do throws(MediaError) { try start(input, in: graph) } catch {
        let second = error
        core.state.withLock { $0.change?.events.append(.runtimeError(second)) }
      }
    }
    throw failure.error
  }

  /// Starts an input, or omits it if it is optional and cannot start.
  private func startOrOmit(
    _ input: any CapturingInput, in graph: SessionGraph
  ) throws(MediaError) {
    do throws(MediaError) { try start(input, in: graph) } catch {
      guard input.isOptional else { throw error }
      omit(input, because: error)
    }
  }

  /// Creates a capture and starts it.
  ///
  /// - Returns: A capture that could not start, whose sinks have not ended, and its error. Nil if the
  ///   capture runs, or is not wanted any more.
  private func attempt(
    _ input: any CapturingInput, in graph: SessionGraph, _ control: CaptureControl
  ) throws(MediaError) -> (capture: any InputCapture, error: MediaError)? {
    // A stream that the session restarts is stopped by a control of its own.
    let control = CaptureControl(following: control)
    let capture = try input.makeCapture(
      into: graph.connections(from: input), control: control
    ) { [weak core] end in core?.session.didEnd(input, end) }
    let isWanted = core.state.withLock { state in
      if state.isWanted { state.running.append((input, capture, control)) }
      return state.isWanted
    }
    guard isWanted else {
      capture.cancel(nil)
      return nil
    }
    do throws(MediaError) { try capture.begin() } catch {
      core.state.withLock { state in state.running.removeAll { $0.input === input } }
      return (capture, error)
    }
    core.state.withLock { $0.change?.hasStarted = true }
    return nil
  }

  /// Stops the running optional inputs, and returns them.
  private func stopOptionalInputs() -> [any CapturingInput] {
    let optional = core.state.withLock { $0.runningNow }.filter { $0.input.isOptional }
    for entry in optional {
      entry.control.stop(.reconfigured)
      entry.capture.waitUntilEnded()
    }
    return optional.map(\.input)
  }

  /// Leaves out an optional input, if the change of the running inputs succeeds.
  private func omit(_ input: any CapturingInput, because error: MediaError) {
    core.state.withLock { $0.change?.omissions.append((input, error)) }
  }

  /// Removes the optional inputs that the change of the running inputs has left out, and closes their
  /// devices.
  private func keepOmissions() {
    let omissions = core.state.withLock { $0.change?.omissions ?? [] }
    for (input, error) in omissions {
      let omitted = OmittedInput(device: input.device, error: error)
      input.close()
      core.state.withLock { state in
        state.graph.remove(input)
        state.graph.endConfiguration()
        state.omitted.append(omitted)
        state.change?.events.append(.didOmitInput(omitted))
      }
    }
  }

  /// Handles the end of the stream from an input.
  ///
  /// Called on the capture thread.
  private func didEnd(_ input: any CapturingInput, _ end: CaptureEnd) {
    let reason = end.error.flatMap(SessionEvent.InterruptionReason.init)
    let event: SessionEvent? =
      reason.map { .wasInterrupted(input.device, $0) } ?? end.error.map(SessionEvent.runtimeError)
    if reason == .deviceGone { input.close() }
    var reported: [SessionEvent] = []
    let isAwaited = core.state.withLock { state in
      state.running.removeAll { $0.input === input }
      let isAwaited =
        reason != nil && input.canReopen && state.isWanted && state.resumes
        && state.graph.inputs.contains { $0 === input }
      if isAwaited, let reason { state.interruptions.append(Interruption(input, reason)) }
      var events = event.map { [$0] } ?? []
      if state.change != nil {
        state.change?.events += events
      } else {
        if state.running.isEmpty { events.append(state.endOfRunning(of: self)) }
        for event in events { core.hub.send(event) }
        reported = events
      }
      return isAwaited
    }
    log(reported)
    if isAwaited { awaitReturn(of: input) }
  }

  /// Starts to collect events while inputs are started or replaced.
  ///
  /// ``endChange(_:)`` sends them. Without the collection, the end of an input could be reported
  /// before its start. Call this method with the `work` lock held.
  func beginChange() {
    core.state.withLock { $0.change = Change(wasRunning: !$0.running.isEmpty) }
  }

  /// Sends the events collected since ``beginChange()``.
  ///
  /// - Parameter earlier: Events to send before the collected ones.
  func endChange(_ earlier: [SessionEvent] = []) {
    let reported = core.state.withLock { state -> [SessionEvent] in
      guard let change = state.change.take() else { return [] }
      var events = earlier
      if change.hasStarted, !change.wasRunning { events.append(.didStartRunning) }
      events += change.events
      if state.running.isEmpty, change.wasRunning || change.hasStarted {
        events.append(state.endOfRunning(of: self))
      }
      for event in events { core.hub.send(event) }
      return events
    }
    log(reported)
  }

  /// Sends an event of an input that continues.
  func report(_ event: SessionEvent) {
    core.hub.send(event)
    log([event])
  }

  /// Replaces the inputs, outputs and connections of the session, or keeps the current ones if an
  /// error occurs.
  ///
  /// Call this with the `work` lock held.
  private func apply(_ graph: SessionGraph) throws(MediaError) {
    let (before, isWanted, running) = core.state.withLock {
      ($0.graph, $0.isWanted, $0.runningNow.map(\.input))
    }
    let changes = try graph.modeChanges(since: before)
    put(graph, insteadOf: before)
    guard isWanted || !changes.isEmpty else { return graph.keepModes() }
    beginChange()
    defer { endChange() }
    let outputs = changes.flatMap { graph.connections(from: $0.input) }
      .compactMap { $0.output as? any FrameOutput }
    for output in outputs { output.willChangeMode() }
    defer { for output in outputs { output.didChangeMode() } }
    do throws(MediaError) {
      for change in changes { try set(change.input, to: change.after) }
      let new = graph.inputs.filter { input in !before.inputs.contains { $0 === input } }
      if isWanted { try adjust(to: graph, starting: new + changes.map(\.input)) }
      endInterruptions(notIn: graph)
      graph.keepModes()
      core.state.withLock { state in
        state.change?.events += changes.map {
          .activeFormatDidChange($0.input.device, $0.after.format)
        }
      }
    } catch {
      put(before, insteadOf: graph)
      // If an input cannot be set back to its previous mode, it stays closed until the next
      // start.
      for change in changes { try? set(change.input, to: change.before) }
      if isWanted { goOn(with: before, running: running) }
      throw error
    }
    keepOmissions()
  }

  /// Starts the inputs again that ran before a change that failed.
  ///
  /// If that fails too, an event reports the second error, because the change throws the first one.
  private func goOn(with graph: SessionGraph, running: [any CapturingInput]) {
    core.state.withLock { $0.change?.omissions = [] }
    do throws(MediaError) {
      try adjust(to: graph, starting: running)
      keepOmissions()
    } catch {
      let second = error
      core.state.withLock { $0.change?.events.append(.runtimeError(second)) }
    }
  }

  /// Stops the inputs that a failed change has started.
  private func stopInputs(except kept: [any CapturingInput]) {
    let started = core.state.withLock { $0.runningNow }
      .filter { entry in !kept.contains { $0 === entry.input } }
    for entry in started {
      entry.control.stop(.stopped)
      entry.capture.waitUntilEnded()
    }
    // The session did not run if no input ran before, so no event reports its start and end.
    if kept.isEmpty { core.state.withLock { $0.change?.hasStarted = false } }
  }

  /// Stops the stream of an input and sets the input to another mode.
  private func set(_ input: DeviceInput, to mode: CameraMode) throws(MediaError) {
    guard input.mode != mode else { return }
    for entry in core.state.withLock({ $0.runningNow }) where entry.input === input {
      entry.control.stop(.reconfigured)
      entry.capture.waitUntilEnded()
    }
    try input.open(as: mode.format, frameRate: mode.frameRate)
  }

  private func put(_ graph: SessionGraph, insteadOf before: SessionGraph) {
    for input in graph.cameras where !before.inputs.contains(where: { $0 === input }) {
      input.didJoin(self)
    }
    for input in before.cameras where !graph.inputs.contains(where: { $0 === input }) {
      input.didLeave(self)
    }
    for output in graph.outputs where !before.outputs.contains(where: { $0 === output }) {
      output.didJoin(self)
    }
    for output in before.outputs where !graph.outputs.contains(where: { $0 === output }) {
      output.didJoin(nil)
    }
    core.state.withLock { state in
      state.graph = graph
      state.graph.endConfiguration()
      state.retain(self)
    }
  }

  /// Stops waiting for the devices of interrupted inputs that the session no longer has.
  private func endInterruptions(notIn graph: SessionGraph) {
    let gone = core.state.withLock { state in
      state.interruptions.removeAndReturnAll { interruption in
        !graph.inputs.contains { $0 === interruption.input }
      }
    }
    for interruption in gone { interruption.end() }
  }

  /// Runs exactly the inputs of a session graph, connected to the graph's outputs.
  ///
  /// - Parameters:
  ///   - graph: The new graph.
  ///   - candidates: The inputs to start. All other stopped inputs stay stopped, because an input
  ///     that failed before would fail again and so prevent this change.
  /// - Throws: `MediaError` if an input cannot be started.
  private func adjust(
    to graph: SessionGraph, starting candidates: [any CapturingInput]
  ) throws(MediaError) {
    // Devices on one bus share its bandwidth. Removed inputs are stopped first, so that new ones
    // can use it.
    for entry in core.state.withLock({ $0.runningNow })
    where !graph.inputs.contains(where: { $0 === entry.input }) {
      entry.control.stop(.reconfigured)
      entry.capture.waitUntilEnded()
    }
    let (running, interruptions) = core.state.withLock { ($0.runningNow, $0.interruptions) }
    for entry in running { _ = try entry.capture.connect(graph.connections(from: entry.input)) }
    for input in graph.inputs
    where candidates.contains(where: { $0 === input })
      && !running.contains(where: { $0.input === input })
      && !interruptions.contains(where: { $0.input === input })
    {
      try startOrOmit(input, in: graph)
    }
  }
}

extension CaptureSession.State {
  /// The event to send because the session's last running input has ended.
  ///
  /// If no input is interrupted, the session has ended too and no longer keeps itself alive.
  fileprivate mutating func endOfRunning(of session: CaptureSession) -> SessionEvent {
    if interruptions.isEmpty { isWanted = false }
    retain(session)
    return .didStopRunning
  }
}

extension CaptureSession {
  /// The events and state collected while inputs are started or replaced.
  fileprivate struct Change {
    let wasRunning: Bool
    var hasStarted = false
    var events: [SessionEvent] = []
    /// The optional inputs to leave out, and why.
    var omissions: [(input: any CapturingInput, error: MediaError)] = []
  }
}

extension Array {
  /// Removes the elements that satisfy a predicate, and returns them.
  mutating func removeAndReturnAll(where isOut: (Element) -> Bool = { _ in true }) -> [Element] {
    let out = filter(isOut)
    removeAll(where: isOut)
    return out
  }
}

extension CaptureSession {
  /// Restarts a running camera in another mode.
  ///
  /// Blocks. The outputs get new sinks. A running take ends with the stop reason `reconfigured`,
  /// unless it is set to wait for a camera that stops.
  ///
  /// If the camera can start in this mode only without the optional inputs, they stop. They stay in the
  /// session, and start again when this method restarts the camera in its former mode.
  ///
  /// - Parameters:
  ///   - input: A camera of the session.
  ///   - format: The mode.
  ///   - frameRate: The frame rate, or nil for the highest of the mode.
  ///   - evenIfStopped: Whether a camera of a session that does not run is set to the mode too.
  /// - Throws: `MediaError` with `.notConnected` if the session is not running, or as
  ///   `DeviceInput.init(device:format:)` does. The camera is then stopped.
  package func restart(
    _ input: DeviceInput, as format: CaptureFormat, frameRate: FrameRate? = nil,
    evenIfStopped: Bool = false
  ) throws(MediaError) {
    try core.work.withLock { (_) throws(MediaError) in
      let (graph, isWanted, running) = core.state.withLock { state in
        (state.graph, state.isWanted, state.runningNow.filter { $0.input === input })
      }
      guard isWanted || evenIfStopped else {
        throw MediaError(
          .notConnected, "the session of \(input.device.address) is not running",
          recovery: "start the session first")
      }
      beginChange()
      defer { endChange() }
      for entry in running {
        entry.control.stop(.reconfigured)
        entry.capture.waitUntilEnded()
      }
      try input.open(as: format, frameRate: frameRate)
      guard isWanted else { return }
      try start(input, in: graph)
      let active = core.state.withLock { state in
        let stopped = state.change?.omissions.removeAndReturnAll() ?? []
        return stopped.map(\.input) + state.runningNow.map(\.input)
          + state.interruptions.map(\.input)
      }
      for input in graph.inputs where input.isOptional && !active.contains(where: { $0 === input })
      {
        try startOrOmit(input, in: graph)
      }
      keepOmissions()
    }
  }

  /// Restarts an input as soon as its device is present and no other program uses it.
  fileprivate func awaitReturn(of input: any CapturingInput) {
    let interruption = core.state.withLock { state in
      state.interruptions.first { $0.input === input }
    }
    // A timer holds the closure until it fires, even after the watch was cancelled. A strong
    // reference to the input would keep the device open that long.
    interruption?.awaitReturn(everyMilliseconds: core.retryMilliseconds) {
      [weak core, weak input] device in
      guard let core, let input else { return true }
      return core.session.resume(input, at: device)
    }
  }

  /// Tries to restart an interrupted input.
  ///
  /// - Returns: True if no further attempt is needed, false if the attempt must be repeated.
  private func resume(_ input: any CapturingInput, at device: CaptureDevice) -> Bool {
    core.work.withLock { _ in
      let (graph, interruption) = core.state.withLock { state in
        (state.graph, state.interruptions.first { $0.input === input })
      }
      guard let interruption else { return true }
      beginChange()
      // The interruption is removed before the input starts, because the input may be interrupted
      // again while it starts.
      core.state.withLock { state in state.interruptions.removeAll { $0.input === input } }
      do throws(MediaError) {
        try input.reopen(at: device)
        try start(input, in: graph)
        keepOmissions()
      } catch {
        return stillInterrupted(interruption, by: error)
      }
      endChange([.interruptionEnded(input.device, interruption.reason)])
      return true
    }
  }

  /// Records why an input could not restart.
  ///
  /// - Returns: True if no further attempt is needed, because the error is not temporary or the
  ///   session was stopped. False if the attempt must be repeated.
  private func stillInterrupted(_ interruption: Interruption, by error: MediaError) -> Bool {
    var interruption = interruption
    let reason = SessionEvent.InterruptionReason(error)
    // A new device node may lack its group permissions until udev has set them, so `.noPermission`
    // may be temporary too.
    guard reason != nil || error.code == .noPermission else {
      core.state.withLock { state in
        if state.running.isEmpty, state.interruptions.isEmpty { state.isWanted = false }
        state.retain(self)
      }
      endChange([.runtimeError(error)])
      return true
    }
    let isNews = reason != nil && reason != interruption.reason
    interruption.reason = reason ?? interruption.reason
    let isWanted = core.state.withLock { state in
      // If the session was stopped meanwhile, it no longer waits for any input.
      if state.isWanted { state.interruptions.append(interruption) }
      return state.isWanted
    }
    let device = interruption.input.device
    endChange(isNews && isWanted ? [.wasInterrupted(device, interruption.reason)] : [])
    return !isWanted
  }

  /// The logger of the session and of movies recorded from it.
  ///
  /// Silent by default.
  ///
  /// Starts and ends are logged as `info`, interruptions and warnings as `warning`, and errors that
  /// end an operation as `error`. Single frames are not logged, nor are errors that a call throws.
  /// The log handler is called on the thread where the event occurs. No lock is held during the
  /// call.
  public var logger: Logger {
    get { core.journal.withLock { $0 } }
    set { core.journal.withLock { $0 = newValue } }
  }

  func log(_ events: [SessionEvent]) {
    guard !events.isEmpty else { return }
    let logger = logger
    for event in events {
      switch event {
      case .didStartRunning: logger.info("the session runs")
      case .didStopRunning: logger.info("the session stopped")
      case .wasInterrupted(let device, let reason):
        logger.warning(
          "an input was interrupted",
          metadata: ["device": "\(device.address)", "reason": "\(reason.rawValue)"])
      case .interruptionEnded(let device, let reason):
        logger.info(
          "the interruption ended",
          metadata: ["device": "\(device.address)", "reason": "\(reason.rawValue)"])
      case .activeFormatDidChange(let device, let format):
        logger.info(
          "a camera has another mode",
          metadata: ["device": "\(device.address)", "mode": "\(format.id)"])
      case .didOmitInput(let omitted):
        logger.warning(
          "an optional input was omitted",
          metadata: ["device": "\(omitted.device.address)", "error": "\(omitted.error)"])
      case .runtimeError(let error):
        logger.error(
          "an input stopped", metadata: ["code": "\(error.code.rawValue)", "error": "\(error)"])
      }
    }
  }
}

/// The part of a session that its outputs keep alive.
///
/// ```
///   CaptureSession ──▶ outputs ──▶ SessionCore ──▶ inputs
///          └───────────────────────────▲
/// ```
///
/// The core refers to the outputs weakly. Otherwise, an output and its session would keep each other
/// alive, and a camera open.
package final class SessionCore: Sendable {
  fileprivate let state = Mutex(CaptureSession.State())
  /// Serializes starts, stops and changes of inputs.
  ///
  /// A thread that holds the lock of `state` must not acquire this lock.
  fileprivate let work = Mutex(())
  fileprivate let hub = EventHub<SessionEvent>()
  fileprivate let journal = Mutex(Logger.quiet)
  /// The interval between restart attempts of an interrupted input, in milliseconds.
  fileprivate let retryMilliseconds: Int

  init(retryMilliseconds: Int = 1_000) { self.retryMilliseconds = retryMilliseconds }

  deinit { for interruption in state.withLock({ $0.interruptions }) { interruption.end() } }

  /// The session of the core.
  ///
  /// If the program has released the session object, a new one is created.
  package var session: CaptureSession {
    state.withLock { state in
      if let session = state.session { return session }
      let session = CaptureSession(self, holding: state.graph.outputs)
      state.session = session
      return session
    }
  }
}

/// An optional input that a session has removed because it, or another input beside it, could not
/// start.
public struct OmittedInput: Hashable, Sendable {
  /// The device of the input.
  public let device: CaptureDevice
  /// The error of the input that could not start.
  public let error: MediaError
}

/// A state change of a session.
public enum SessionEvent: Hashable, Sendable {
  /// The session started, and frames flow.
  case didStartRunning
  /// The session stopped, and no input is running.
  case didStopRunning
  /// The input of this device was interrupted for a reason that may be temporary.
  ///
  /// `CaptureDevice.media` is the media type that is no longer captured. The other inputs continue.
  case wasInterrupted(CaptureDevice, InterruptionReason)
  /// The interruption ended, and the input of this device runs again.
  case interruptionEnded(CaptureDevice, InterruptionReason)
  /// The camera was set to another mode by `DeviceInput.setActiveFormat(_:frameRate:)` or a preset.
  ///
  /// If it was running, it was stopped, and runs again. A recording that continues counts the frames that
  /// were not captured meanwhile as lost in the device.
  case activeFormatDidChange(CaptureDevice, CaptureFormat)
  /// An optional input was removed because it, or another input beside it, could not start.
  case didOmitInput(OmittedInput)
  /// An input stopped with an error, or its frames can no longer be decoded for the outputs that need
  /// images.
  ///
  /// `CaptureSession.startRunning()` restarts what stopped.
  case runtimeError(MediaError)

  /// The reason for an interruption.
  public enum InterruptionReason: String, Hashable, Sendable {
    /// Another program uses the device.
    case deviceInUse = "device_in_use"
    /// The device was unplugged.
    case deviceGone = "device_gone"
  }
}
