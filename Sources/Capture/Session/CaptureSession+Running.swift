// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
public import OvercrankMediaCore
import Synchronization

extension CaptureSession {
  /// Starts every input; blocks until their streams are on.
  ///
  /// In a session that runs, those are started that have failed; those that were interrupted are
  /// waited for as before. An input whose device goes away from here on comes back by itself when
  /// the device does.
  ///
  /// - Throws: `MediaError` with `.badConfiguration` where there is no input, or as the devices
  ///   say; none runs then, but for those that ran before.
  public func startRunning() throws(MediaError) {
    _ = try run(with: CaptureControl(), resumes: true)
  }

  /// Starts every input, and suspends the task until their streams are on.
  ///
  /// - Throws: `MediaError` as the form that blocks.
  public func startRunning() async throws(MediaError) {
    try await offload { () throws(MediaError) in try self.startRunning() }
  }

  /// Stops every input, and waits for none any more; blocks until their streams are off.
  public func stopRunning() { stopAll() }

  private func stopAll() {
    let (running, interruptions) = state.withLock { state in
      state.isWanted = false
      state.retain(self)
      return (state.runningNow, state.interruptions.removeAndReturnAll())
    }
    for interruption in interruptions { interruption.end() }
    for entry in running { entry.control.stop(.signal) }
    for entry in running { entry.capture.waitUntilEnded() }
  }

  /// Stops every input, and suspends the task until their streams are off.
  public func stopRunning() async {
    do throws(MediaError) {
      try await offload { () throws(MediaError) in self.stopAll() }
    } catch { stopAll() }  // There is no thread that may wait but this one.
  }

  /// Commits as the form that blocks does, and suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the form that blocks.
  public func commitConfiguration() async throws(MediaError) {
    try await offload { () throws(MediaError) in try self.commitConfiguration() }
  }

  /// Does what waits for a device on a thread that may wait.
  private func offload(
    _ body: @escaping @Sendable () throws(MediaError) -> Void
  ) async throws(MediaError) {
    let result: Result<Void, MediaError>
    do throws(SystemError) {
      result = try await BlockingThread.run { _ throws(MediaError) in try body() }
    } catch { throw MediaError(.outOfMemory, error.description) }
    try result.get()
  }

  /// Starts the session, the first camera with a control of the caller's, or the first input where
  /// there is no camera.
  ///
  /// - Parameters:
  ///   - control: Ends the first input's capture.
  ///   - resumes: Whether an input that is interrupted is to come back.
  /// - Returns: Whether it does; false where it ran already.
  /// - Throws: `MediaError` as ``startRunning()``.
  package func run(
    with control: CaptureControl, resumes: Bool = false
  ) throws(MediaError) -> Bool {
    let result = work.withLock { _ in
      Result { () throws(MediaError) -> Bool in
        let (graph, wasWanted) = state.withLock { state in
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
          // A session that could not start was never running.
          state.withLock { $0.change = nil }
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

  /// The first camera, or the first input where there is no camera.
  private func firstInput(of graph: SessionGraph) throws(MediaError) -> any CapturingInput {
    if let first = graph.cameras.first ?? graph.inputs.first { return first }
    throw MediaError(
      .badConfiguration, "the session has no input", recovery: "add one with addInput")
  }

  /// Asks an output anew where its frames and its sound go, while the session runs.
  ///
  /// - Returns: Whether frames go there now.
  /// - Throws: `MediaError` with `.outOfMemory` when there is no memory or thread for them.
  package func refresh(_ output: any CaptureOutput) throws(MediaError) -> Bool {
    let result = work.withLock { _ in
      Result { () throws(MediaError) -> Bool in
        let (graph, running) = state.withLock { ($0.graph, $0.runningNow) }
        let inputs = graph.connections.filter { $0.output === output }.map(\.input)
        let wanted = running.filter { entry in inputs.contains { $0 === entry.input } }
        func connect(_ entry: Running) throws(MediaError) -> Bool {
          try entry.capture.connect(graph.connections(from: entry.input))
        }
        // Who hears first misses nothing of what is seen.
        for entry in wanted where !(entry.input is DeviceInput) { _ = try connect(entry) }
        return try wanted.filter { $0.input is DeviceInput }.map(connect).contains(true)
      }
    }
    return try result.get()
  }

  /// Starts an input, which is opened anew where it has to be; nothing where the session was
  /// stopped meanwhile.
  func start(
    _ input: any CapturingInput, in graph: SessionGraph,
    control: CaptureControl = CaptureControl()
  ) throws(MediaError) {
    try input.openIfClosed()
    let capture = try input.makeCapture(
      into: graph.connections(from: input), control: control
    ) { [weak self] end in self?.didEnd(input, end) }
    let isWanted = state.withLock { state in
      if state.isWanted { state.running.append((input, capture, control)) }
      return state.isWanted
    }
    guard isWanted else { return capture.cancel() }
    do throws(MediaError) { try capture.begin() } catch {
      state.withLock { state in state.running.removeAll { $0.input === input } }
      throw error
    }
    state.withLock { $0.change?.hasStarted = true }
  }

  /// On the capture thread, when the stream of an input is off.
  private func didEnd(_ input: any CapturingInput, _ end: CaptureEnd) {
    let reason = end.error.flatMap(SessionEvent.InterruptionReason.init)
    let news = reason.map(SessionEvent.wasInterrupted) ?? end.error.map(SessionEvent.runtimeError)
    if reason == .deviceGone { input.close() }
    var told: [SessionEvent] = []
    let isAwaited = state.withLock { state in
      state.running.removeAll { $0.input === input }
      let isAwaited =
        reason != nil && input.canReopen && state.isWanted && state.resumes
        && state.graph.inputs.contains { $0 === input }
      if isAwaited, let reason { state.interruptions.append(Interruption(input, reason)) }
      var events = news.map { [$0] } ?? []
      if state.change != nil {
        state.change?.events += events
      } else {
        if state.running.isEmpty { events.append(state.endOfRunning(of: self)) }
        for event in events { hub.send(event) }
        told = events
      }
      return isAwaited
    }
    log(told)
    if isAwaited { awaitReturn(of: input) }
  }

  /// Begins to start or exchange inputs.
  ///
  /// What happens to them is told in the end, so that no end comes before its beginning. To be
  /// called under `work`.
  func beginChange() {
    state.withLock { $0.change = Change(wasRunning: !$0.running.isEmpty) }
  }

  /// After inputs were started or exchanged.
  ///
  /// - Parameter news: What is to be told first.
  func endChange(_ news: [SessionEvent] = []) {
    let told = state.withLock { state -> [SessionEvent] in
      guard let change = state.change.take() else { return [] }
      var events = news
      if change.hasStarted, !change.wasRunning { events.append(.didStartRunning) }
      events += change.events
      if state.running.isEmpty, change.wasRunning || change.hasStarted {
        events.append(state.endOfRunning(of: self))
      }
      for event in events { hub.send(event) }
      return events
    }
    log(told)
  }

  /// Makes a graph the one in force, or leaves the one that is.
  func apply(_ graph: SessionGraph) throws(MediaError) {
    let result = work.withLock { _ in
      Result { () throws(MediaError) in
        let (before, isWanted, running) = state.withLock {
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
          // One that cannot go back is opened when it is next started.
          for change in formats { try? set(change.input, to: change.before) }
          guard isWanted else { throw error }
          // What ran before is asked to run again; where it does not, its end is an event.
          do throws(MediaError) { try adjust(to: before, starting: running) } catch {
            let second = error
            state.withLock { $0.change?.events.append(.runtimeError(second)) }
          }
          throw error
        }
      }
    }
    try result.get()
  }

  /// Sets an input that may run to another mode; it is off then.
  private func set(_ input: DeviceInput, to format: CaptureFormat) throws(MediaError) {
    guard input.format.id != format.id else { return }
    for entry in state.withLock({ $0.runningNow }) where entry.input === input {
      entry.control.stop(.signal)
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
    state.withLock { state in
      state.graph = graph
      state.retain(self)
    }
  }

  /// Waits no more for inputs that were taken out.
  private func endInterruptions(notIn graph: SessionGraph) {
    let gone = state.withLock { state in
      state.interruptions.removeAndReturnAll { interruption in
        !graph.inputs.contains { $0 === interruption.input }
      }
    }
    for interruption in gone { interruption.end() }
  }

  /// Has no other inputs run than those of a graph, into its outputs.
  ///
  /// - Parameters:
  ///   - graph: What is to be.
  ///   - candidates: Those of its inputs that are to run. One that has failed is left alone: it
  ///     may fail again, which is no reason to refuse a change that is not about it.
  /// - Throws: `MediaError` where one of them cannot be started.
  private func adjust(
    to graph: SessionGraph, starting candidates: [any CapturingInput]
  ) throws(MediaError) {
    // A device must have stopped before another that shares its bus can start.
    for entry in state.withLock({ $0.runningNow })
    where !graph.inputs.contains(where: { $0 === entry.input }) {
      entry.control.stop(.signal)
      entry.capture.waitUntilEnded()
    }
    let (running, interruptions) = state.withLock { ($0.runningNow, $0.interruptions) }
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
  /// The last input has ended; unless one is waited for, the session has, too.
  fileprivate mutating func endOfRunning(of session: CaptureSession) -> SessionEvent {
    if interruptions.isEmpty { isWanted = false }
    retain(session)
    return .didStopRunning
  }
}

extension CaptureSession {
  /// What happens while inputs are started or exchanged.
  struct Change {
    let wasRunning: Bool
    var hasStarted = false
    var events: [SessionEvent] = []
  }
}

extension Array {
  /// Takes out the elements for which it is true, and answers with them.
  mutating func removeAndReturnAll(where isOut: (Element) -> Bool = { _ in true }) -> [Element] {
    let out = filter(isOut)
    removeAll(where: isOut)
    return out
  }
}
