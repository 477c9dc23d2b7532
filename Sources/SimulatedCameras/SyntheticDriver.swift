// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// The synthetic camera: a thread that fills buffers at a fixed rate.
///
/// Frame k is due at the start time plus k frame durations. Its timestamp is that time, and its
/// sequence number is k. If no buffer is free at that time, the frame is dropped and its number is
/// skipped. Simulated faults drop frames before they reach a buffer, as a bad cable does.
///
/// At ``Pace/maximum``, frames have the same times and numbers, but each is delivered as soon as a
/// buffer is free. The driver's clock then shows the time of the latest frame.
package final class SyntheticDriver: Sendable {
  /// The image format, rate and simulated faults.
  package struct Settings: Sendable {
    /// The pixel format or codec of the frames.
    package enum Layout: Sendable { case mjpeg, yuyv, gray }
    package var width: Int
    package var height: Int
    package var frameRate: FrameRate
    package var layout: Layout
    /// The fraction of frames dropped by simulated faults, from 0 to 1.
    package var dropShare = Rational.zero
    /// The seed of the simulated faults, which determines the dropped frames.
    package var seed: UInt64 = 0
    /// The path of a file that counts the delivered frames, for tests.
    ///
    /// The file is opened when the camera starts.
    package var counterPath: String?
    /// Whether frames are delivered in real time or as fast as they are consumed.
    package var pace = Pace.realTime
    /// The scene in the frames.
    package var scene = SyntheticScene.ball(BouncingBall())

    package init(width: Int, height: Int, frameRate: FrameRate, layout: Layout) {
      (self.width, self.height, self.frameRate, self.layout) = (width, height, frameRate, layout)
    }
  }

  package let settings: Settings
  package let bufferCount: Int
  private let queue: SoftwareBufferQueue
  private let counter: SharedCounter?
  private let isStopping = Atomic<Bool>(false)
  private let thread = Mutex<BlockingThread?>(nil)
  private let maker: Mutex<(any TestPatternGenerator & Sendable)?>
  private let startMicroseconds = Atomic<Int64>(0)
  private let clock = FrameClock()
  /// The longest time during which frames may be dropped before the clock advances without a frame,
  /// in microseconds.
  private static let longestStillness: Int64 = 1_000_000

  /// Creates the generator of the images and allocates the buffers.
  ///
  /// - Throws: `MediaError` if the image cannot be created.
  package init(settings: Settings, bufferCount: Int = 32) throws(MediaError) {
    let maker: any TestPatternGenerator & Sendable
    do throws(CallFailure) {
      maker = try settings.generator()
    } catch {
      throw MediaError(
        .deviceFailed, "the synthetic camera \(error)", recovery: "choose another size or format")
    }
    counter = settings.counterPath.map(SharedCounter.init)
    (self.settings, self.bufferCount) = (settings, bufferCount)
    queue = try SoftwareBufferQueue(
      count: bufferCount, bytesPerBuffer: maker.maximumByteCount)
    self.maker = Mutex(maker)
  }

  /// The maximum size of a frame, in bytes.
  package var maximumByteCount: Int { queue.bytesPerBuffer }

  package var waitsForTakers: Bool { settings.pace == .maximum }
  package func microseconds() -> Int64 { clock.microseconds() }
  /// The clock that follows the delivered frames, or nil if frames are delivered in real time.
  package var frameClock: FrameClock? { waitsForTakers ? clock : nil }

  /// The capture time of frame 0, in microseconds; 0 before the start.
  package var firstFrameMicroseconds: Int64 { startMicroseconds.load(ordering: .acquiring) }

  /// The capture time of frame 0 in microseconds, or 0 if no stream is running.
  ///
  /// After a stop, the time of the last stream is no longer valid for the next one.
  package var runningFirstFrameMicroseconds: Int64 {
    isStopping.load(ordering: .acquiring) ? 0 : firstFrameMicroseconds
  }

  package func start(keeping held: [Int]) throws(MediaError) {
    try counter?.open()
    guard let maker = maker.withLock({ $0.take() }) else {
      throw MediaError(
        .deviceFailed, "the synthetic camera is already running", recovery: "open it again")
    }
    queue.restart(keeping: held)
    // As on a real sensor, the first frame is complete one frame duration after the start.
    let duration = settings.frameRate.frameDuration
    let switchedOn = clock.startOfStream()
    if waitsForTakers { clock.advance(toMicroseconds: switchedOn) }
    let start = switchedOn &+ Int64(saturating: duration.doubleValue * 1_000_000)
    startMicroseconds.store(start, ordering: .releasing)
    isStopping.store(false, ordering: .releasing)
    // At maximum pace the thread never sleeps, so real-time priority would starve other threads.
    let urgency: BlockingThread.Urgency = waitsForTakers ? .ordinary : .realTime
    let started = try BlockingThread.started(urgency: urgency) { [self] in
      let used = generate(maker, startMicroseconds: start)
      // The generator is kept for the next stream, because its encoder accepts only increasing
      // times.
      self.maker.withLock { $0 = used }
    }
    thread.withLock { $0 = started }
  }

  /// Waits for the next frame, and returns nil at the timeout and at the end of the stream.
  package func nextBuffer(timeoutMilliseconds: Int32) -> FilledBuffer? {
    guard let buffer = queue.dequeue(timeoutMilliseconds: timeoutMilliseconds) else {
      return nil
    }
    counter?.add()
    if waitsForTakers { clock.advance(toMicroseconds: buffer.observation.driverMicroseconds) }
    return buffer
  }

  package var hasEnded: Bool { queue.hasEnded }

  package func requeue(_ index: Int) { queue.giveBack(index) }

  package func stop() {
    isStopping.store(true, ordering: .releasing)
    thread.withLock { $0.take() }?.join()
  }

  /// Generates frames until a stop, and returns the generator for the next stream.
  private func generate(
    _ maker: any TestPatternGenerator & Sendable, startMicroseconds: Int64
  ) -> any TestPatternGenerator & Sendable {
    var maker = maker
    var overruns: UInt32 = 0
    var number: Int64 = 0
    var lastDue = startMicroseconds
    while !isStopping.load(ordering: .acquiring) {
      guard let offset = try? Self.microseconds(ofFrame: number, at: settings.frameRate) else {
        break  // The frame time overflows after 292 000 years.
      }
      let due = startMicroseconds + offset
      if !waitsForTakers { MonotonicClock.sleep(untilMicroseconds: due) }
      defer { number += 1 }
      if isDropped(number) {
        // Usually each dequeued frame advances the clock. If faults drop all frames, the clock must
        // advance here. Otherwise a timeout that is measured on this clock would never expire.
        if due &- lastDue > Self.longestStillness, waitsForTakers {
          clock.advance(toMicroseconds: due)
        }
        continue
      }
      lastDue = due
      guard let index = takeBuffer(forFrameAt: due) else {
        overruns &+= 1
        continue
      }
      var frame = FrameObservation(
        sequence: UInt32(truncatingIfNeeded: number), microseconds: due)
      frame.overrunsBefore = overruns
      overruns = 0
      let count = try? maker.make(
        number: Int(number), isFlash: settings.isFlash(number), into: queue.memory(of: index))
      frame.isMarkedCorrupt = count == nil
      queue.publish(index, byteCount: count ?? 0, frame)
    }
    queue.end()
    return maker
  }

  /// The index of a free buffer, which is to be filled.
  ///
  /// Nil after a stop, or if the consumer holds all buffers and frames are delivered in real time.
  private func takeBuffer(forFrameAt due: Int64) -> Int? {
    guard waitsForTakers else { return queue.takeFree() }
    let period = Int64(saturating: settings.frameRate.frameDuration.doubleValue * 1_000_000)
    while clock.isAheadOfAudio(atMicroseconds: due, period: period),
      !isStopping.load(ordering: .acquiring)
    {
      MonotonicClock.pause()
    }
    return queue.waitForFree { isStopping.load(ordering: .acquiring) }
  }

  /// The time of a frame relative to frame 0, in whole microseconds.
  ///
  /// The time is rounded down, because the kernel also truncates nanoseconds to microseconds.
  package static func microseconds(
    ofFrame number: Int64, at rate: FrameRate
  ) throws(MediaError) -> Int64 {
    try MediaTime(Rational(number) / rate.framesPerSecond)
      .converted(to: 1_000_000, rounding: .towardNegativeInfinity).value
  }

  /// Whether a simulated fault drops this frame.
  ///
  /// The result depends only on the seed and the frame number.
  func isDropped(_ number: Int64) -> Bool {
    guard settings.dropShare > .zero else { return false }
    // The hash is SplitMix64 (Steele, Lea and Flood, 2014).
    var bits = settings.seed &+ UInt64(bitPattern: number &+ 1) &* 0x9E37_79B9_7F4A_7C15
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    bits ^= bits >> 31
    let threshold = settings.dropShare.numerator * (1 << 32) / settings.dropShare.denominator
    return Int128(bits >> 32) < threshold
  }
}

extension SyntheticDriver.Settings {
  /// Makes the generator of the frames.
  ///
  /// - Throws: `CallFailure` when an encoder fails.
  func generator() throws(CallFailure) -> any TestPatternGenerator & Sendable {
    switch scene {
    case .pattern:
      let pattern = TestPattern(width: width, height: height)
      return switch layout {
      case .mjpeg: try JPEGTestPatternGenerator(pattern: pattern)
      case .yuyv: YUYVTestPatternGenerator(pattern: pattern)
      case .gray: GrayTestPatternGenerator(pattern: pattern)
      }
    case .ball(let ball):
      let scene = BallScene(width: width, height: height, ball: ball, frameRate: frameRate)
      return switch layout {
      case .mjpeg: try JPEGSceneGenerator(scene: scene)
      case .yuyv: YUYVSceneGenerator(scene: scene)
      case .gray: GraySceneGenerator(scene: scene)
      }
    }
  }

  /// Whether this frame is the first at or after a contact of the ball with the ground.
  func isFlash(_ number: Int64) -> Bool {
    func contact(_ number: Int64) -> Int64 {
      scene.ball.lastContact(at: Rational(number) / frameRate.framesPerSecond)
    }
    return number == 0 || contact(number) != contact(number - 1)
  }
}

/// A counter in a memory-mapped file.
///
/// Other processes can read it, even after this process was killed.
///
/// The file consists of one 64-bit integer in native byte order.
final class SharedCounter: Sendable {
  private static let byteCount = 8

  private let path: String
  /// The address of the mapped file, or 0 before ``open()``.
  private let address = Atomic<UInt>(0)

  /// Creates a counter without opening its file.
  init(path: String) { self.path = path }

  deinit {
    let memory = UnsafeMutableRawPointer(bitPattern: address.load(ordering: .relaxed))
    if let memory { munmap(memory, Self.byteCount) }
  }

  /// Opens the counter's file, or creates it, and resets the counter to 0.
  ///
  /// Does nothing if the file is already open. An existing file must have exactly 8 bytes and must
  /// not be a symbolic link. Any other file is left unchanged, and the call throws.
  ///
  /// - Throws: `MediaError` with `.deviceFailed` if the file cannot be used.
  func open() throws(MediaError) {
    guard address.load(ordering: .relaxed) == 0 else { return }
    let created = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    if created < 0, errno != EEXIST { throw failure(errno) }
    let isNew = created >= 0
    let descriptor = isNew ? created : try openExisting()
    defer { close(descriptor) }
    guard !isNew || ftruncate(descriptor, off_t(Self.byteCount)) == 0,
      let memory = mmap(
        nil, Self.byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
      memory != MAP_FAILED
    else {
      let reason = errno
      if isNew { unlink(path) }
      throw failure(reason)
    }
    memory.storeBytes(of: 0, as: Int64.self)
    address.store(UInt(bitPattern: memory), ordering: .relaxed)
  }

  /// Opens an existing file, and throws if it is not a counter file.
  private func openExisting() throws(MediaError) -> Int32 {
    // `O_NONBLOCK` prevents blocking if the path is a named pipe.
    let descriptor = Glibc.open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw errno == ELOOP ? failure("it is a symbolic link") : failure(errno)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_size == off_t(Self.byteCount)
    else {
      close(descriptor)
      throw failure("it exists and is not a counter file of \(Self.byteCount) bytes")
    }
    return descriptor
  }

  private func failure(_ errorNumber: Int32) -> MediaError {
    failure(String(cString: strerror(errorNumber)))
  }

  private func failure(_ reason: String) -> MediaError {
    MediaError(
      .deviceFailed, "the synthetic camera cannot write its counter to \(path): \(reason)",
      recovery: "choose a new file in a writable directory: counter=/dev/shm/frames")
  }

  /// Increments the counter.
  ///
  /// Call this only after ``open()``, and never from two threads at once.
  func add() {
    let memory = UnsafeMutableRawPointer(bitPattern: address.load(ordering: .relaxed))
    guard let memory else { return }
    memory.storeBytes(of: memory.load(as: Int64.self) &+ 1, as: Int64.self)
  }
}
