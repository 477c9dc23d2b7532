// SPDX-License-Identifier: Apache-2.0

package import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
package import OvercrankLibAV
import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// Plays a movie file as a camera, in real time or as fast as frames are consumed.
///
/// MJPEG and H.264 without reordered frames are delivered compressed. H.264 is delivered as an
/// Annex B byte stream, as from cameras. Other codecs are decoded to planar 4:2:0 (`YU12`).
package final class FileDriver: Sendable {
  /// The format of the delivered frames.
  package enum Layout: Sendable { case mjpeg, h264, yuv420p }

  package let bufferCount: Int
  /// True: a file loses no frames, so irregular intervals between its frames are not losses.
  package var countsExactly: Bool { true }
  package var waitsForTakers: Bool { pace == .maximum }
  private let path: String
  private let pace: Pace
  private let layout: Layout
  /// The corrections of a clock that restarts; nil for any other file.
  private let corrections: TimeCorrections?
  /// The matrix of the frames; nil without video.
  package let matrix: MediaFrame.Matrix?
  private let queue: SoftwareBufferQueue
  private let isStopping = Atomic<Bool>(false)
  private let thread = Mutex<BlockingThread?>(nil)
  private let failure = Mutex<MediaError?>(nil)
  private let clock = FrameClock()
  /// The time of the file in the running stream, or in the last one.
  private let epoch = FileEpoch()
  /// The audio of the file; nil for a file without audio.
  private let knownAudio: FileAudio?
  private let lastDuration = Mutex<Int64?>(nil)

  /// Creates a driver for a movie file.
  ///
  /// `width` and `height` are the size of its frames in pixels. Frames that need a larger buffer
  /// are marked corrupt.
  ///
  /// All packets of a file that is no MOV or MP4 are read, to find where its clock restarts.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if the buffers cannot be allocated, or
  ///   `.invalidData` for a file that cannot be read or whose tracks disagree on their clock.
  package init(
    path: String, pace: Pace, layout: Layout, width: Int, height: Int, bufferCount: Int = 32
  ) throws(MediaError) {
    (self.path, self.pace, self.layout) = (path, pace, layout)
    let restarts: ClockRestarts?
    do throws(CallFailure) {
      restarts = try ClockRestarts(reading: path)
      let track = try Demuxer(opening: path).tracks.preferred { $0.kind == .video }
      matrix = track.map { MediaFrame.Matrix(of: $0.parameters) }
    } catch { throw Self.failed(error, path) }
    guard restarts?.isInconsistent != true else {
      throw MediaError(
        .invalidData, ClockRestarts.refusal(of: path), recovery: ClockRestarts.recovery)
    }
    corrections = restarts?.corrections
    knownAudio = FileAudio(path: path, corrections: corrections)
    // A file may declare any frame size, so the size is limited. Larger frames do not fit the
    // buffers and are marked corrupt.
    let (width, height) = (min(max(0, width), Self.limit), min(max(0, height), Self.limit))
    let chroma = (width + 1) / 2 * ((height + 1) / 2)
    let bytes =
      switch layout {
      case .yuv420p: width * height + 2 * chroma
      // A compressed frame is largest if it is a JPEG of noise at the best quality. It then has
      // about one byte per sample of each color channel.
      case .mjpeg, .h264: 3 * width * height + 65_536
      }
    self.bufferCount = max(2, min(bufferCount, Self.totalByteLimit / max(1, bytes)))
    queue = try SoftwareBufferQueue(count: self.bufferCount, bytesPerBuffer: bytes)
  }

  private static let limit = 16_384
  private static let totalByteLimit = 1 << 30

  /// The maximum size of a frame, in bytes.
  package var maximumByteCount: Int { queue.bytesPerBuffer }

  /// The audio of the file and its timing; nil for a file without audio.
  package var audio: SimulatedAudio? {
    guard let knownAudio else { return nil }
    return (
      knownAudio, { [epoch] in epoch.microseconds(of: knownAudio) },
      { [epoch] in epoch.isRunning ? epoch.microseconds(of: knownAudio) : 0 },
      pace == .maximum ? clock : nil
    )
  }

  package func start(keeping held: [Int]) throws(MediaError) {
    isStopping.store(false, ordering: .relaxed)
    failure.withLock { $0 = nil }
    lastDuration.withLock { $0 = nil }
    epoch.end()
    queue.restart(keeping: held)
    // The time of the first frame is fixed before it is decoded. Even if decoding takes long, the
    // frames after it are on time.
    let base = clock.startOfStream()
    if pace == .maximum { clock.advance(toMicroseconds: base) }
    let started = try BlockingThread.started { [self] in
      do throws(CallFailure) {
        try play(from: base)
      } catch {
        failure.withLock {
          $0 = Self.failed(error, path)
        }
      }
      queue.end()
    }
    thread.withLock { $0 = started }
  }

  private static func failed(_ error: CallFailure, _ path: String) -> MediaError {
    MediaError(
      error,
      at: CallStage(other: .init(.invalidData, Recovery("check the file", .inspect(file: path)))),
      message: "the file camera \(error)")
  }

  /// Waits for the next frame, and returns nil at the timeout and at the end of the file.
  ///
  /// - Throws: `MediaError` if the file could not be read to its end.
  package func nextBuffer(timeoutMilliseconds: Int32) throws(MediaError) -> FilledBuffer? {
    guard let buffer = queue.dequeue(timeoutMilliseconds: timeoutMilliseconds) else {
      if hasEnded, let error = failure.withLock({ $0 }) { throw error }
      return nil
    }
    if pace == .maximum {
      clock.advance(toMicroseconds: buffer.observation.driverMicroseconds)
    }
    return buffer
  }

  package var hasEnded: Bool { queue.hasEnded }

  package var lastFrameDuration: Int64? { lastDuration.withLock { $0 } }

  package func microseconds() -> Int64 { clock.microseconds() }

  package func requeue(_ index: Int) { queue.giveBack(index) }

  package func stop() {
    isStopping.store(true, ordering: .releasing)
    thread.withLock { $0.take() }?.join()
    epoch.end()
  }

  private func play(from base: Int64) throws(CallFailure) {
    var demuxer = try Demuxer(opening: path)
    demuxer.corrections = corrections
    guard let track = demuxer.tracks.preferred(where: { $0.kind == .video }) else {
      throw CallFailure("find a video track in", path, code: -22)
    }
    var player = Player(
      base: base, timeBase: track.timeBase, queue: queue, pace: pace, clock: clock, epoch: epoch)
    switch layout {
    case .mjpeg, .h264:
      var annexB: BitstreamFilter?
      if layout == .h264, track.parameters.isLengthPrefixed {
        annexB = try BitstreamFilter(named: "h264_mp4toannexb", parameters: track.parameters)
      }
      while let packet = try demuxer.nextPacket() {
        guard packet.trackIndex == track.index, !packet.isDiscarded else { continue }
        let delivered = try annexB?.filter(packet) ?? packet
        let isAlive = delivered.withBytes { bytes in
          player.deliver(
            bytes, at: packet.pts ?? packet.dts ?? 0, for: packet.duration, isStopping: isStopping)
        }
        guard isAlive else { return }
      }
    case .yuv420p:
      var decoder = try Decoder(parameters: track.parameters, subject: path)
      var scaler = FrameConverter(to: .yuv420p, isFullRange: false)
      var hasMore = true
      while hasMore {
        let packet = try demuxer.nextPacket()
        if let packet, packet.trackIndex != track.index { continue }
        hasMore = packet != nil
        try decoder.send(packet)
        while let frame = try decoder.nextFrame() {
          let bytes = try scaler.convert(frame).packedBytes()
          let isAlive = bytes.withUnsafeBytes { bytes in
            player.deliver(
              bytes, at: frame.pts ?? 0, for: frame.duration, isStopping: isStopping)
          }
          guard isAlive else { return }
        }
      }
    }
    lastDuration.withLock { $0 = player.lastDuration }
  }
}

/// Fills buffers with the frames of a movie file at their presentation times.
private struct Player {
  let base: Int64
  let timeBase: Rational
  let queue: SoftwareBufferQueue
  let pace: Pace
  let clock: FrameClock
  let epoch: FileEpoch
  private var sequence: UInt32 = 0
  private var overruns: UInt32 = 0
  private var firstTicks: Int64?
  /// The time of the last frame in microseconds.
  private var lastTime: Int64
  /// The duration of the last delivered frame in microseconds, or nil if the file defines none.
  private(set) var lastDuration: Int64?

  init(
    base: Int64, timeBase: Rational, queue: SoftwareBufferQueue, pace: Pace, clock: FrameClock,
    epoch: FileEpoch
  ) {
    (self.base, lastTime, self.timeBase, self.queue) = (base, base, timeBase, queue)
    (self.pace, self.clock, self.epoch) = (pace, clock, epoch)
  }

  /// Delivers a frame, or drops it if no buffer is free.
  ///
  /// Returns false after a stop.
  mutating func deliver(
    _ bytes: UnsafeRawBufferPointer, at ticks: Int64, for duration: Int64,
    isStopping: borrowing Atomic<Bool>
  ) -> Bool {
    let first = firstTicks ?? ticks
    if firstTicks == nil { epoch.begin(base &- (microseconds(ticks) ?? 0)) }
    firstTicks = first
    // The times in a damaged file may overflow during the conversion. A frame with such a time gets
    // the time of the first frame.
    let due = base &+ max(0, microseconds(ticks &- first) ?? 0)
    lastDuration = microseconds(duration).flatMap { $0 > 0 ? $0 : nil }
    defer {
      sequence &+= 1
      lastTime = due
    }
    var free: Int?
    switch pace {
    case .realTime:
      // The thread sleeps for at most 50 ms at a time, so that a stop takes effect soon.
      while MonotonicClock.microseconds() < due {
        if isStopping.load(ordering: .acquiring) { break }
        MonotonicClock.sleep(untilMicroseconds: min(due, MonotonicClock.microseconds() + 50_000))
      }
      free = queue.takeFree()
    case .maximum:
      while clock.isAheadOfAudio(atMicroseconds: due, period: due &- lastTime),
        !isStopping.load(ordering: .acquiring)
      {
        MonotonicClock.pause()
      }
      free = queue.waitForFree { isStopping.load(ordering: .acquiring) }
    }
    let isAlive = !isStopping.load(ordering: .acquiring)
    guard let index = free else {
      overruns &+= 1
      return isAlive
    }
    let buffer = queue.memory(of: index)
    var frame = FrameObservation(sequence: sequence, microseconds: due)
    frame.overrunsBefore = overruns
    // A frame larger than its buffer is truncated and marked corrupt.
    frame.isMarkedCorrupt = bytes.count > buffer.count
    overruns = 0
    buffer.copyMemory(
      from: UnsafeRawBufferPointer(rebasing: bytes.prefix(buffer.count)))
    queue.publish(index, byteCount: bytes.count, frame)
    return isAlive
  }

  /// Converts the file's ticks to microseconds.
  ///
  /// Nil on overflow.
  private func microseconds(_ ticks: Int64) -> Int64? {
    try? MediaTime(Rational(ticks) * timeBase)
      .converted(to: 1_000_000, rounding: .halfAwayFromZero).value
  }
}

/// The relation between the times of a file and those of the driver that plays it.
final class FileEpoch: Sendable {
  private let state = Mutex<(microseconds: Int64?, isRunning: Bool)>((nil, false))

  /// Whether frames are being delivered.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// Begins a stream.
  ///
  /// - Parameter microseconds: The driver time of time zero of the file.
  func begin(_ microseconds: Int64) { state.withLock { $0 = (microseconds, true) } }

  /// Ends a stream, whose times stay known.
  func end() { state.withLock { $0.isRunning = false } }

  /// The driver time of the first sample of the file's audio, in microseconds; 0 before the first
  /// frame.
  func microseconds(of audio: FileAudio) -> Int64 {
    state.withLock { $0.microseconds.map { $0 &+ audio.startMicroseconds } ?? 0 }
  }
}
