// SPDX-License-Identifier: Apache-2.0

public import OvercrankFrameAccounting
public import OvercrankMediaCore

/// A measurement of the frame rate that a device delivers.
public struct RateMeasurement: Hashable, Sendable, Codable {
  /// The frame rate of the device, including lost frames.
  ///
  /// Nil for fewer than two frames.
  public var frameRate: Rational?
  /// The 95th percentile of the deviations of frame intervals.
  ///
  /// The deviation of an interval is its distance from the median interval. If frames were lost in
  /// the interval, it is the distance from the nearest multiple of the median.
  public var jitter = Duration.zero
  /// The longest interval between two frames.
  public var longestInterval = Duration.zero
  /// The step of the driver's timestamps, or nil if none is apparent.
  ///
  /// A driver that takes times when transfers complete has a step of the duration of a transfer, such
  /// as 4 ms. Its timestamps are late by up to one step, and ``jitter`` is about as large.
  public var timestampQuantum: Duration?
  /// The number of frame periods by outcome.
  ///
  /// Although a measurement writes no file, each complete frame counts as `stored`.
  public var ledger = FrameLedger()

  private enum CodingKeys: String, CodingKey {
    case frameRate = "fps"
    case jitter, longestInterval, timestampQuantum, ledger
  }

  /// Creates a measurement without frames.
  public init() {}

  /// The number of frames that were due but did not arrive complete.
  public var dropped: Int64 { ledger.dropped }
}

extension RateMeasurement {
  /// Starts a driver's stream, measures for a duration, and stops the stream.
  ///
  /// - Parameters:
  ///   - pool: The buffer pool of a driver that is not streaming.
  ///   - frameRate: The negotiated rate.
  ///   - integrityCheck: The check for truncated frames.
  ///   - duration: The duration from the first frame. At least three frames are measured, even if
  ///     that takes longer.
  ///   - isStopped: Called after each frame. True ends the measurement early.
  /// - Throws: `MediaError` if the device fails or delivers no frames.
  package init(
    of pool: BufferPool, frameRate: FrameRate, integrityCheck: FrameIntegrityCheck,
    for duration: MediaTime, until isStopped: () -> Bool = { false }
  ) throws(MediaError) {
    self.init()
    let driver = pool.driver
    var integrityCheck = integrityCheck
    var observer = FrameObserver(driver: driver, frameRate: frameRate)
    let switchedOn = observer.lastArrival
    var account = FrameAccount(frameRate: frameRate, trustsCounter: driver.countsExactly) {
      switchedOn
    }
    var times: [Int64] = []
    defer { pool.stop() }
    try pool.start()
    while !isStopped() {
      guard let buffer = try driver.dequeue(timeoutMilliseconds: 100) else {
        if driver.hasEnded { break }
        try observer.checkSilence()
        continue
      }
      var frame = buffer.observation
      observer.observe(&frame)
      let isWhole = !frame.isMarkedCorrupt && integrityCheck.holds(buffer.bytes)
      try buffer.giveBack()
      observer.noteReturn()
      if !isWhole { frame.outcome = .corrupt }
      account.record(frame)
      times.append(frame.microseconds)
      let passed = MediaTime(microseconds: frame.microseconds &- (times.first ?? 0))
      if times.count >= 3, passed >= duration { break }
    }
    account.close(FrameAccount.End())
    self.frameRate = account.measuredFrameRate
    ledger = account.ledger
    timestampQuantum = account.timestampQuantum
    let intervals = zip(times.dropFirst(), times).map { $0 &- $1 }.sorted()
    guard let longest = intervals.last else { return }
    let median = intervals[intervals.count / 2]
    let deviations = intervals.map { Self.deviation($0, from: max(1, median)) }.sorted()
    jitter = .microseconds(deviations[(deviations.count * 95 + 99) / 100 - 1])
    longestInterval = .microseconds(longest)
  }

  /// The distance of a frame interval from the nearest multiple of the median interval.
  ///
  /// The multiple is at least one.
  private static func deviation(_ interval: Int64, from usual: Int64) -> Int64 {
    let periods = max(1, Int64(saturating: (Double(interval) / Double(usual)).rounded()))
    return abs(Int64(saturating: Double(interval) - Double(periods) * Double(usual)))
  }
}

extension DeviceInput {
  /// Measures the frame rate that the device delivers in this mode, without a recording.
  ///
  /// The stream is on only during the call, which blocks.
  ///
  /// - Parameters:
  ///   - duration: The duration from the first frame.
  ///   - isStopped: Called after each frame. True ends the measurement early.
  /// - Returns: The measurement.
  /// - Throws: `MediaError` if the device fails or delivers no frames.
  public func measure(
    for duration: MediaTime, until isStopped: () -> Bool = { false }
  ) throws(MediaError) -> RateMeasurement {
    try RateMeasurement(
      of: pool, frameRate: negotiatedFrameRate, integrityCheck: delivery.integrityCheck,
      for: duration,
      until: isStopped)
  }
}
