// SPDX-License-Identifier: Apache-2.0

public import OvercrankFrameAccounting
public import OvercrankMediaCore

/// What a device delivered while it was watched: the only proof of its rate.
public struct RateMeasurement: Hashable, Sendable, Codable {
  /// The rate of the device, losses included; nil for fewer than two frames.
  public var frameRate: Rational?
  /// How far from the median the interval from one frame to the next is, or from a multiple of it
  /// where frames are missing: 95 in 100 are not farther.
  public var jitter = Duration.zero
  /// The longest interval.
  public var longestInterval = Duration.zero
  /// What became of each frame period; what arrived whole counts as stored.
  public var ledger = FrameLedger()

  private enum CodingKeys: String, CodingKey {
    case frameRate = "fps"
    case jitter, longestInterval, ledger
  }

  /// Makes a measurement without frames.
  public init() {}

  /// Frames that were due and did not arrive whole.
  public var dropped: Int64 { ledger.dropped }
}

extension RateMeasurement {
  /// Switches a driver's stream on, watches it for some time, and switches it off.
  ///
  /// - Parameters:
  ///   - pool: The driver, not streaming.
  ///   - frameRate: The rate that it granted.
  ///   - integrityCheck: What tells a whole frame from a damaged one.
  ///   - duration: How long to watch, from the first frame on; longer where the rate is so low
  ///     that three frames take longer.
  ///   - isStopped: Asked after each frame whether to give up; what was seen so far counts.
  /// - Throws: `MediaError` when the device fails or delivers nothing.
  package init(
    of pool: BufferPool, frameRate: FrameRate, integrityCheck: FrameIntegrityCheck,
    for duration: MediaTime, until isStopped: () -> Bool = { false }
  ) throws(MediaError) {
    self.init()
    let driver = pool.driver
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
      account.enter(frame)
      times.append(frame.microseconds)
      let passed = MediaTime(microseconds: frame.microseconds &- (times.first ?? 0))
      if times.count >= 3, passed >= duration { break }
    }
    account.close(FrameAccount.End())
    self.frameRate = account.measuredFrameRate
    ledger = account.ledger
    let intervals = zip(times.dropFirst(), times).map { $0 &- $1 }.sorted()
    guard let longest = intervals.last else { return }
    let median = intervals[intervals.count / 2]
    let deviations = intervals.map { Self.deviation($0, from: max(1, median)) }.sorted()
    jitter = .microseconds(deviations[(deviations.count * 95 + 99) / 100 - 1])
    longestInterval = .microseconds(longest)
  }
}

extension RateMeasurement {
  /// How far an interval is from the nearest multiple of the usual one, and be it the first.
  private static func deviation(_ interval: Int64, from usual: Int64) -> Int64 {
    let periods = max(1, Int64(saturating: (Double(interval) / Double(usual)).rounded()))
    return abs(Int64(saturating: Double(interval) - Double(periods) * Double(usual)))
  }
}

extension DeviceInput {
  /// Watches what the device delivers in this mode, without recording it.
  ///
  /// The stream is on only meanwhile.
  ///
  /// - Parameters:
  ///   - duration: How long to watch, from the first frame on.
  ///   - isStopped: Asked after each frame whether to give up.
  /// - Returns: What was seen.
  /// - Throws: `MediaError` when the device fails or delivers nothing.
  public func measure(
    for duration: MediaTime, until isStopped: () -> Bool = { false }
  ) throws(MediaError) -> RateMeasurement {
    try RateMeasurement(
      of: pool, frameRate: negotiatedFrameRate, integrityCheck: delivery.integrityCheck,
      for: duration,
      until: isStopped)
  }
}
