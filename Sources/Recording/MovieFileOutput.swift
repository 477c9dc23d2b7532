// SPDX-License-Identifier: Apache-2.0
public import Capture
public import FormatDiscovery
import LibAV
import MediaTiming
import Synchronization

/// Records what a session captures into a movie file.
///
/// While it grows the file is written in fragments of 200 ms, so that a kill loses no more than
/// a quarter of a second; at the end it becomes a plain movie.
///
/// ```swift
/// let output = try MovieFileOutput(session: session, settings: RecordingSettings(path: "a.mov"))
/// let report = try output.record()
/// ```
public final class MovieFileOutput: FrameOutput {
  private struct State {
    weak var session: CaptureSession?
    var take: TakeSink?
    var control = CaptureControl()
  }

  /// What the take is to become.
  public let settings: RecordingSettings
  private let state = Mutex(State())

  /// Pictures, and the sound beside them.
  public var mediaTypes: [MediaType] { [.video, .audio] }

  /// What may be told while a take is recorded.
  public struct Progress: Hashable, Sendable {
    /// Frames stored so far.
    public var stored: Int64
    /// Frames missing so far, of any cause.
    public var missing: Int64
    /// Seconds of the take so far, for display.
    public var seconds: Double
    /// How full the queue to the writer is, from 0 to 1, for display.
    public var queueFill: Double
    /// Bytes written so far.
    public var bytes: Int64
  }

  /// Makes an output that is to be added to a session.
  public init(settings: RecordingSettings) { self.settings = settings }

  /// Makes an output of a session, and checks that the settings go with what the session
  /// delivers; no file is touched yet.
  ///
  /// The session does not live by it: keep both.
  ///
  /// - Throws: `RecordingError` with `.codecRefused` and what to choose instead, or
  ///   `CaptureError` with `.badConfiguration`.
  public convenience init(session: CaptureSession, settings: RecordingSettings) throws {
    self.init(settings: settings)
    try session.addOutput(self)
    _ = try PicturePlan(settings.codec, for: try camera().delivery)
  }

  /// Ends the take; may be called from any thread, also before it has begun.
  public func stop() { state.withLock { $0.control }.stop(.signal) }

  package func sink(for connection: CaptureConnection) -> (any FrameSink)? {
    state.withLock { $0.take }
  }

  package func didJoin(_ session: CaptureSession?) { state.withLock { $0.session = session } }

  /// Where pictures come from.
  private func camera() throws(RecordingError) -> DeviceInput {
    let session = state.withLock { $0.session }
    guard
      let camera = session?.connections.first(where: {
        $0.output === self && $0.mediaType == .video
      })?.camera
    else {
      throw RecordingError(
        .notConnected, "the output for \(settings.path) is connected to no camera",
        hint: "add it to a session that has an input, and keep the session")
    }
    return camera
  }

  /// Records until a limit is reached, ``stop()`` is called or something fails; blocks till then.
  ///
  /// A session that does not run is started for the take and stopped at its end. In one that
  /// runs, the take begins with the next frame, and the session goes on.
  ///
  /// - Parameter progress: Called on this thread after each frame.
  /// - Returns: The report; its `problem` tells what went wrong after the take had begun.
  /// - Throws: `RecordingError` when the file cannot be created, `CaptureError` when the device
  ///   cannot be started and nothing was recorded.
  public func record(progress: (Progress) -> Void = { _ in }) throws -> RecordingReport {
    let input = try camera()
    guard let session = state.withLock({ $0.session }) else { return try record() }
    let control = state.withLock { $0.control }
    defer { state.withLock { ($0.control, $0.take) = (CaptureControl(), nil) } }
    let begins = !session.isRunning
    let take = MovieTake(
      input: input, settings: settings, plan: try PicturePlan(settings.codec, for: input.delivery),
      control: control, beginsWithStream: begins)
    let queue = try FrameQueue(
      capacity: take.queueCapacity, loans: input.delivery.isCompressed ? nil : input.loans)
    var file: MovieFile
    do throws(MovieFile.CreationError) {
      file = try MovieFile(creating: settings.path, overwrites: settings.overwrites, grows: true)
    } catch { throw RecordingError(error) }
    let sink = TakeSink(
      limit: settings.limit, queue: queue, control: control, endsCapture: begins)
    var proof: FrameRateProof?
    do {
      if begins, settings.provesFrameRate, input.device.kind == .v4l2 {
        proof = try input.proveFrameRate { control.requestedStop != nil }
      }
      try begin(sink, of: input, in: session, alone: begins, control)
    } catch {
      file.discard()
      throw error
    }
    // At its end a session that runs on lets go of the take.
    defer {
      state.withLock { $0.take = nil }
      // Whatever else ran for the take, such as a microphone, ends with it.
      if begins { session.stopRunning() } else { _ = session.refresh(self) }
    }
    return try take.write(
      from: queue, of: sink, into: file, proof: proof,
      pressure: { session.setPressure($0, on: self) }, progress: progress)
  }

  /// Has frames go into a take.
  private func begin(
    _ sink: TakeSink, of input: DeviceInput, in session: CaptureSession, alone: Bool,
    _ control: CaptureControl
  ) throws {
    state.withLock { $0.take = sink }
    if alone, try session.run(with: control) { return }
    // Before this there was no take.
    control.switchedOn.store(input.driver.microseconds(), ordering: .relaxed)
    guard session.refresh(self) else {
      throw RecordingError(
        .notConnected, "the session stopped before the take for \(settings.path) began",
        hint: "start it again")
    }
  }
}
