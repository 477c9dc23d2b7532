// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
public import OvercrankMediaCore
import Synchronization

extension CaptureSession {
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
    try await offload { () throws(MediaError) in try self.startRunning() }
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
      try await offload { () throws(MediaError) in self.stopAll() }
    } catch { stopAll() }  // If no thread can be created, this thread blocks.
  }

  /// Commits the configuration as the blocking form does, but suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func commitConfiguration() async throws(MediaError) {
    try await offload { () throws(MediaError) in try self.commitConfiguration() }
  }

  /// Runs a blocking call on a separate thread and suspends the task meanwhile.
  private func offload(
    _ body: @escaping @Sendable () throws(MediaError) -> Void
  ) async throws(MediaError) {
    let result: Result<Void, MediaError>
    do throws(SystemError) {
      result = try await BlockingThread.run { _ throws(MediaError) in try body() }
    } catch { throw MediaError(.outOfMemory, error.description) }
    try result.get()
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
    let result = core.work.withLock { _ in
      Result { () throws(MediaError) -> Bool in
        let (graph, wasWanted) = core.state.withLock { state in
          defer {
            if !state.isWanted { (state.isWanted, state.resumes) = (true, resumes) }
            state.retain(self)
          }
          return (state.graph, state.isWanted)
        }
        beginChange()
        if wasWanted {
          defer { endChange() }
          _ = try firstInput(of: graph)
          try adjust(to: graph, starting: graph.inputs)
          return false
        }
        do throws(MediaError) { try startAll(graph, control) } catch {
          stopRunning()
          // The start failed, so the session never ran. The collected events would report an end
          // without a start, so they are discarded.
          core.state.withLock { $0.change = nil }
          throw error
        }
        endChange()
        return true
      }
    }
    return try result.get()
  }

  private func startAll(
    _ graph: SessionGraph, _ control: CaptureControl
  ) throws(MediaError) {
    let first = try firstInput(of: graph)
    for input in graph.inputs {
      try start(input, in: graph, control: input === first ? control : CaptureControl())
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
    let result = core.work.withLock { _ in
      Result { () throws(MediaError) -> Bool in
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
    return try result.get()
  }

  /// Starts an input, and reopens its device first if it is closed.
  ///
  /// Does nothing if the session was stopped meanwhile.
  func start(
    _ input: any CapturingInput, in graph: SessionGraph,
    control: CaptureControl = CaptureControl()
  ) throws(MediaError) {
    try input.openIfClosed()
    let capture = try input.makeCapture(
      into: graph.connections(from: input), control: control
    ) { [weak core] end in core?.session.didEnd(input, end) }
    let isWanted = core.state.withLock { state in
      if state.isWanted { state.running.append((input, capture, control)) }
      return state.isWanted
    }
    guard isWanted else { return capture.cancel() }
    do throws(MediaError) { try capture.begin() } catch {
      core.state.withLock { state in state.running.removeAll { $0.input === input } }
      throw error
    }
    core.state.withLock { $0.change?.hasStarted = true }
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

  /// Replaces the inputs, outputs and connections of the session, or keeps the current ones if an
  /// error occurs.
  func apply(_ graph: SessionGraph) throws(MediaError) {
    let result = core.work.withLock { _ in
      Result { () throws(MediaError) in
        let (before, isWanted, running) = core.state.withLock {
          ($0.graph, $0.isWanted, $0.runningNow.map(\.input))
        }
        let formats = try graph.formatChanges(since: before)
        put(graph, insteadOf: before)
        guard isWanted || !formats.isEmpty else { return }
        beginChange()
        defer { endChange() }
        do throws(MediaError) {
          for change in formats { try set(change.input, to: change.after) }
          let new = graph.inputs.filter { input in !before.inputs.contains { $0 === input } }
          if isWanted { try adjust(to: graph, starting: new + formats.map(\.input)) }
          endInterruptions(notIn: graph)
        } catch {
          put(before, insteadOf: graph)
          // If an input cannot be set back to its previous mode, it stays closed until the next
          // start.
          for change in formats { try? set(change.input, to: change.before) }
          guard isWanted else { throw error }
          // The inputs that were running are started again. If that fails too, an event reports the
          // second error, because this call already throws the first error.
          do throws(MediaError) { try adjust(to: before, starting: running) } catch {
            let second = error
            core.state.withLock { $0.change?.events.append(.runtimeError(second)) }
          }
          throw error
        }
      }
    }
    try result.get()
  }

  /// Stops the stream of an input and sets the input to another mode.
  private func set(_ input: DeviceInput, to format: CaptureFormat) throws(MediaError) {
    guard input.format.id != format.id else { return }
    for entry in core.state.withLock({ $0.runningNow }) where entry.input === input {
      entry.control.stop(.reconfigured)
      entry.capture.waitUntilEnded()
    }
    try input.open(as: format)
  }

  private func put(_ graph: SessionGraph, insteadOf before: SessionGraph) {
    for output in graph.outputs where !before.outputs.contains(where: { $0 === output }) {
      output.didJoin(self)
    }
    for output in before.outputs where !graph.outputs.contains(where: { $0 === output }) {
      output.didJoin(nil)
    }
    core.state.withLock { state in
      state.graph = graph
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
      try start(input, in: graph)
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
  struct Change {
    let wasRunning: Bool
    var hasStarted = false
    var events: [SessionEvent] = []
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
