// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankMovieFormat

/// The times of the frames in one file of a take, and the account of all its frames.
///
/// The first stored frame is the file's time zero. Each frame lasts until the next one.
struct TakeTimeline {
  /// The frame account, which contains the outcome of each frame.
  ///
  /// A frame that could not be stored counts as taken in the account, so the file may contain fewer
  /// frames than the account.
  private(set) var account: FrameAccount
  /// The first stored frame.
  private(set) var first: FrameObservation?
  /// The times of all stored frames, in microseconds after the first stored frame.
  private(set) var storedMicroseconds: [Int64] = []
  /// The pauses of the take.
  private(set) var pauses: [RecordingPause] = []
  /// The time at which the take's next file begins, in microseconds of this file.
  ///
  /// Nil if this file is the last.
  private(set) var nextFileStart: Int64?
  /// The duration of a frame period in microseconds.
  private(set) var periodMicroseconds: Int64
  /// The frame rates to which the camera was set during the file, and from which time of the file.
  private(set) var rateChanges: [(time: MediaTime, frameRate: FrameRate)] = []
  private var frameRate: FrameRate
  /// The duration of the last frame in microseconds, set by ``endLast(isReordered:)``.
  private var lastDuration: Int64 = 0
  private var lastMicroseconds: Int64 = -1
  /// The decode times of the first and the last stored sample, in microseconds.
  private var (firstDecodeTime, lastDecodeTime): (Int64?, Int64?) = (nil, nil)
  /// The duration of the source's last frame, in microseconds.
  ///
  /// Nil unless the source is finite and the take includes its last frame.
  private var sourceLastDuration: Int64?

  init(_ account: FrameAccount, frameRate: FrameRate) {
    self.account = account
    self.frameRate = frameRate
    periodMicroseconds = Self.microseconds(ofPeriods: 1, at: frameRate)
  }

  /// The duration of a number of frame periods in microseconds, at least 1.
  ///
  /// The result is rounded up. Drivers truncate timestamps to microseconds, so a frame was captured
  /// up to 1 µs after its timestamp, and its end is later by the same amount.
  static func microseconds(ofPeriods count: Int64, at frameRate: FrameRate) -> Int64 {
    let exact = try? MediaTime(frameRate.frameDuration * Rational(count))
      .converted(to: 1_000_000, rounding: .towardPositiveInfinity).value
    return max(1, exact ?? FragmentedMovieWriter.maximumSampleTicks)
  }

  /// The number of frames stored in the file so far, without the hidden ones.
  var storedCount: Int64 { Int64(storedMicroseconds.count) }

  /// The end of the last stored frame, in microseconds after the start of the first stored frame.
  var endMicroseconds: Int64 { (storedMicroseconds.last ?? 0) &+ lastDuration }

  /// The time in the file that the next frame would get, in microseconds.
  func time(of frame: FrameObservation) -> Int64 {
    // If the driver's clock stops or runs backward, the time in the file must still increase. It
    // then advances by 1 µs.
    max(account.clock.time(ofMicroseconds: frame.microseconds), lastMicroseconds &+ 1)
  }

  /// Sets the first frame, or nil if the frame of the last call was not stored.
  mutating func begin(with frame: FrameObservation?) { first = frame }

  /// Records that a frame was taken, whose time was determined by ``time(of:)``.
  mutating func advance(to time: Int64) { lastMicroseconds = time }

  /// Records the outcome of a frame in the account.
  mutating func record(_ frame: FrameObservation) { account.record(frame) }

  /// Continues with the first frame of another stream of the camera.
  mutating func restart(with frame: FrameObservation, frameRate: FrameRate) {
    account.restart(with: frame, frameRate: frameRate)
    guard frameRate != self.frameRate else { return }
    self.frameRate = frameRate
    periodMicroseconds = Self.microseconds(ofPeriods: 1, at: frameRate)
    rateChanges.append((MediaTime(microseconds: time(of: frame)), frameRate))
  }

  /// Begins a pause with a frame that is left out.
  mutating func pause(at frame: FrameObservation) {
    guard first != nil else { return }
    pauses.append(
      RecordingPause(
        time: MediaTime(microseconds: account.clock.time(ofMicroseconds: frame.microseconds)),
        captureTime: MediaTime(microseconds: frame.microseconds)))
  }

  /// Ends a pause with a frame.
  ///
  /// - Returns: The time of the pause in the file, in microseconds. Nil before the first frame.
  mutating func resume(at frame: FrameObservation) -> Int64? {
    account.resume(atMicroseconds: frame.microseconds)
    guard first != nil, let last = pauses.indices.last else { return nil }
    pauses[last].end(atMicroseconds: frame.microseconds)
    return account.clock.time(ofMicroseconds: frame.microseconds)
  }

  /// Records a stored sample, which may be a hidden lead-in frame.
  mutating func didStore(_ sample: VideoSample, isHidden: Bool) {
    firstDecodeTime = firstDecodeTime ?? sample.decodeTime
    lastDecodeTime = sample.decodeTime
    guard !isHidden else { return }
    // The times are kept in presentation order. If frames are reordered, a few frames with later
    // times may have been stored before this frame.
    var index = storedMicroseconds.count
    while index > 0, storedMicroseconds[index - 1] > sample.time { index -= 1 }
    storedMicroseconds.insert(sample.time, at: index)
  }

  /// Closes the account.
  ///
  /// `next` is the first frame of the take's next file. Nil if this file is the last.
  mutating func close(_ end: CaptureEnd, before next: FrameObservation?) {
    account.close(end.frames)
    sourceLastDuration = end.lastFrameDuration
    nextFileStart = next.map { time(of: $0) }
  }

  /// Sets the duration of the last frame, which is derived from the closed account.
  ///
  /// - Returns: The duration of the last sample in the video track, in microseconds.
  mutating func endLast(isReordered: Bool) -> Int64 {
    // The last frame lasts one period, plus one period for each frame that is missing after it.
    let missing = account.periodsSinceTaken
    let known = missing == 0 ? sourceLastDuration : nil
    let untilNextFile = nextFileStart.map { $0 &- (storedMicroseconds.last ?? 0) }
    lastDuration = min(
      untilNextFile ?? known ?? Self.microseconds(ofPeriods: 1 + missing, at: frameRate),
      FragmentedMovieWriter.maximumSampleTicks)
    // In a reordered file, the frame decoded last is not the frame shown last, and decoding begins
    // before time zero.
    let decoded = min(0, firstDecodeTime ?? 0) &- (lastDecodeTime ?? 0)
    return isReordered ? max(1, endMicroseconds &+ decoded) : lastDuration
  }
}
