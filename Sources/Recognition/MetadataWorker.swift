// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRaster
import Synchronization

/// The thread of a metadata output, which searches the newest frame for objects.
final class MetadataWorker: Sendable {
  /// The objects to search for, and the limits of the search.
  struct Settings {
    var readers: ObjectReaders?
    var rectOfInterest = MetadataOutput.wholeFrame
    var agreement = 2
    /// The greatest share of a processor; nil for the usual one, which does not limit a source that
    /// waits.
    var share: Double?
    var passRate = MetadataOutput.usualPassRate
    /// A number that increases with each change of the settings that discards the followed objects.
    var version = 0
  }

  let settings = Mutex(Settings())
  let counters = DataOutputCounters()
  private let wholeSearches = Atomic<Int64>(0)
  let wake = DispatchSemaphore(value: 0)
  let hub = EventHub<MetadataObjectFrame>()
  let handler = Mutex<(@Sendable (MetadataObjectFrame) -> Void)?>(nil)
  private let sink = Mutex<MetadataSink?>(nil)
  private let state = Mutex((hasThread: false, isStopped: false))

  /// The number of frames that were searched as a whole.
  var searchedCount: Int64 { wholeSearches.load(ordering: .acquiring) }

  /// The sink from which the worker takes frames.
  var currentSink: MetadataSink? { sink.withLock { $0 } }

  /// Starts searching the frames of a sink.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  func begin(_ sink: MetadataSink) throws(MediaError) {
    try state.withLock { (state) throws(MediaError) in
      guard !state.hasThread else { return }
      try BlockingThread.started { [self] in run() }.detach()
      state.hasThread = true
    }
    replaceSink(with: sink)
  }

  /// Replaces the sink; without a new sink, no more frames are searched.
  func replaceSink(with next: MetadataSink?) {
    let old = sink.withLock { current in
      defer { current = next }
      return current
    }
    if old !== next { old?.retire() }
  }

  /// Ends the thread.
  func stop() {
    state.withLock { $0.isStopped = true }
    // The session may keep the sink after the output is gone, and the session's source would wait
    // for a sink that is never emptied.
    replaceSink(with: nil)
    wake.signal()
    hub.finish()
  }

  private func run() {
    var extractor = LumaExtractor()
    var search = Search()
    while true {
      wake.wait()
      if state.withLock({ $0.isStopped }) {
        replaceSink(with: nil)
        return
      }
      guard let sink = currentSink else { continue }
      let share = settings.withLock { $0.share }
      search.rest(share ?? (sink.isWaitedFor ? 1 : MetadataOutput.usualProcessorShare))
      _ = sink.withNext { waiting, bytes in
        search.begin()
        let settings = settings.withLock { $0 }
        do throws(CallFailure) {
          let objects = try extractor.withLuma(of: bytes, sink.format) { luma in
            search.objects(in: luma, waiting, sink.frameDuration, settings)
          }
          if search.didSearchWholeFrame { wholeSearches.wrappingAdd(1, ordering: .releasing) }
          counters.delivered.wrappingAdd(1, ordering: .releasing)
          if let frame = search.report(objects, of: waiting) { send(frame) }
        } catch { counters.note(.corrupt) }
        search.end()
      }
    }
  }

  private func send(_ frame: MetadataObjectFrame) {
    handler.withLock { $0 }?(frame)
    hub.send(frame)
  }
}

/// The state that the worker keeps from frame to frame.
private struct Search {
  private var tracker: MetadataObjectTracker?
  private var version = -1
  private var budget = ProcessorBudget(share: 1)
  private var start: (microseconds: Int64, used: Int64) = (0, 0)
  private var hadObjects = false

  /// Sleeps until the limit on processor time allows another search.
  mutating func rest(_ share: Double) {
    if share != budget.share { budget = ProcessorBudget(share: share) }
    let now = MonotonicClock.microseconds()
    let rest = budget.rest(at: now)
    if rest > 0 { MonotonicClock.sleep(untilMicroseconds: now + rest) }
  }

  mutating func begin() {
    start = (MonotonicClock.microseconds(), ProcessorBudget.threadMicroseconds())
  }

  mutating func end() {
    budget.spend(
      from: start.microseconds, used: ProcessorBudget.threadMicroseconds() - start.used)
  }

  mutating func objects(
    in luma: LumaImage, _ waiting: MetadataSink.Waiting, _ duration: MediaTime,
    _ settings: MetadataWorker.Settings
  ) -> [MetadataObject] {
    guard let readers = settings.readers else {
      (tracker, version) = (nil, -1)
      return []
    }
    if settings.version != version {
      tracker = MetadataObjectTracker(
        readers, agreement: settings.agreement, passRate: settings.passRate)
      version = settings.version
    }
    let time = waiting.observation.microseconds
    let area = settings.rectOfInterest.pixels(width: luma.width, height: luma.height)
    return tracker?.look(
      at: luma, in: area, microseconds: time, time: MediaTime(microseconds: time),
      duration: duration) ?? []
  }

  /// Whether the last frame was searched as a whole.
  var didSearchWholeFrame: Bool { tracker?.didSearchWholeFrame == true }

  /// Returns the report of a frame with its objects; nil for a frame without objects, unless the
  /// frame before had objects.
  mutating func report(
    _ objects: [MetadataObject], of waiting: MetadataSink.Waiting
  ) -> MetadataObjectFrame? {
    defer { hadObjects = !objects.isEmpty }
    guard hadObjects || !objects.isEmpty else { return nil }
    return MetadataObjectFrame(
      objects: objects,
      presentationTimeStamp: MediaTime(microseconds: waiting.observation.microseconds),
      frameIndex: waiting.note.index, streamStart: MediaTime(microseconds: waiting.note.start),
      isSearched: didSearchWholeFrame)
  }
}

extension Rect {
  /// Converts a rectangle from device coordinates to pixels; nil for the whole frame.
  func pixels(width: Int, height: Int) -> PixelRect? {
    guard self != MetadataOutput.wholeFrame else { return nil }
    func position(_ value: Double, _ size: Int) -> Int {
      Int((max(0, min(1, value)) * Double(size)).rounded())
    }
    let (left, top) = (position(x, width), position(y, height))
    return PixelRect(
      x: left, y: top, width: max(0, position(x + self.width, width) - left),
      height: max(0, position(y + self.height, height) - top))
  }
}

/// Limits the share of a processor that a worker uses, in any ten seconds.
///
/// After each task, the worker sleeps until the processor time that it used is no more than a fraction
/// of the time since the task began. The fraction is below the allowed one, because ten seconds may
/// begin and end with a task: if all tasks take `u`, they contain `u` more than their share. A further
/// part is left for a task that takes longer than all before, and for work that is not counted, such as
/// the start of the program.
struct ProcessorBudget {
  /// The allowed fraction of a processor, above 0; at 1 the worker never sleeps.
  let share: Double
  private var nextStart: Int64?
  private var longestTask: Int64 = 0

  /// The time in microseconds over which the share is bounded.
  static let window: Int64 = 10_000_000

  init(share: Double) { self.share = share }

  /// Returns the time in microseconds that the worker must still sleep.
  func rest(at microseconds: Int64) -> Int64 {
    share >= 1 ? 0 : max(0, (nextStart ?? microseconds) - microseconds)
  }

  /// Records finished work.
  ///
  /// - Parameters:
  ///   - start: The time at which the work began.
  ///   - used: The processor time that the work used, in microseconds.
  mutating func spend(from start: Int64, used: Int64) {
    longestTask = max(longestTask, used)
    let (window, longest) = (Double(Self.window), Double(longestTask))
    let reserve = 1.5 * longest + 0.02 * share * window
    let fraction = (share * window - reserve) / max(1, window - longest)
    // A task of more than half of the allowed time exceeds it by itself, or nearly.
    nextStart = start + Int64((Double(used) / max(fraction, share / 2, 0.001)).rounded())
  }

  /// The processor time of the calling thread, in microseconds.
  static func threadMicroseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
  }
}
