// SPDX-License-Identifier: Apache-2.0
import Capture
import LibAV
import MediaTiming

/// The work of the writer: takes frames from the queue, stores them, and keeps the ledger.
///
/// The first stored frame is the take's zero. Each picture lasts until the next, so one packet
/// always waits for the time of its successor.
struct TakeWriter: ~Copyable {
  let path: String
  let plan: PicturePlan
  let delivery: FrameDelivery
  let frameRate: FrameRate
  let sound: (source: SyntheticSound, epochMicroseconds: @Sendable () -> Int64)?
  let soundCodec: SoundCodec
  /// The file's tags, from the driver's time and number of the first frame.
  let makeMetadata: (_ first: FrameStamp) -> [String: String]

  private(set) var ledger = FrameLedger()
  private(set) var gaps: [FrameGap] = []
  /// The times of all stored frames, in microseconds from the first.
  private(set) var storedMicroseconds: [Int64] = []
  /// The driver's time and number of the first frame.
  private(set) var first: FrameStamp?
  /// How long the last picture lasts; set by ``finish(trailing:)``.
  private(set) var lastDuration: Int64 = 0
  /// Samples of sound that belong to the take.
  private(set) var soundSampleCount: Int64 = 0

  private var pipeline: (any PicturePipeline)?
  private var writer: MovieWriter?
  private var soundTrack: SoundTrack?
  private var videoIndex = 0
  private var soundIndex = 0
  private var waiting: Packet?
  /// Frames taken from the queue; those not stored in the end were lost by the writer.
  private var takenCount: Int64 = 0
  private var lastMicroseconds: Int64 = -1
  /// Frames that turned out to be damaged, and all missing among them, after the last one taken.
  private var missingSinceTaken: Int64 = 0

  init(
    path: String, plan: PicturePlan, delivery: FrameDelivery, frameRate: FrameRate,
    sound: (source: SyntheticSound, epochMicroseconds: @Sendable () -> Int64)?,
    soundCodec: SoundCodec,
    makeMetadata: @escaping (_ first: FrameStamp) -> [String: String]
  ) {
    self.path = path
    self.plan = plan
    self.delivery = delivery
    self.frameRate = frameRate
    self.sound = sound
    self.soundCodec = soundCodec
    self.makeMetadata = makeMetadata
  }

  /// Bytes in the file so far.
  private(set) var byteCount: Int64 = 0

  /// The end of the last picture stored, in microseconds from the first.
  var endMicroseconds: Int64 { (storedMicroseconds.last ?? 0) &+ lastDuration }

  /// Counts a frame and what is missing before it, without storing it.
  mutating func refuse(_ frame: QueuedFrame) {
    note(frame.missing, before: frame.stamp)
    takenCount += 1
  }

  /// Stores a frame.
  ///
  /// - Throws: `LibAVError` when the encoder or the file refuses it; it then counts as taken.
  mutating func store(_ frame: QueuedFrame) throws(LibAVError) {
    let before = (first: first, microseconds: lastMicroseconds)
    do throws(LibAVError) { try take(frame, before) } catch {
      lastMicroseconds = before.microseconds
      throw error
    }
  }

  private mutating func take(
    _ frame: QueuedFrame, _ before: (first: FrameStamp?, microseconds: Int64)
  ) throws(LibAVError) {
    note(frame.missing, before: frame.stamp)
    takenCount += 1
    let origin = first?.microseconds ?? frame.stamp.microseconds
    if first == nil { first = frame.stamp }
    // A driver whose time stands still or goes back must not make a file that does.
    let time = max(frame.stamp.microseconds &- origin, lastMicroseconds &+ 1)
    lastMicroseconds = time
    if pipeline == nil {
      pipeline = try plan.makePipeline(for: delivery, frameRate: frameRate)
    }
    var missing = MissingFrames()
    var packets: [Packet] = []
    switch try pipeline?.take(frame.bytes, at: time) ?? .packets([]) {
    case .damaged: missing.corrupt = 1
    case .packets(let ready):
      packets = ready
      // H.264 before its first key frame cannot be shown: the take begins with that one.
      if ready.isEmpty, pipeline?.parameters == nil { missing.lostStart = 1 }
    }
    guard missing.count == 0 else {
      // It was not taken after all: it is missing, where it would have been.
      takenCount -= 1
      (first, lastMicroseconds) = before
      note(missing, before: frame.stamp)
      missingSinceTaken += frame.missing.count + 1
      return
    }
    missingSinceTaken = 0
    for packet in packets { try write(packet) }
    let sound = try soundTrack?.advance(toMicroseconds: time)
    try writeSound(sound ?? [])
    byteCount = writer?.byteCount() ?? 0
  }

  /// Stores what is still inside and closes the file, in fragments as it is.
  ///
  /// - Throws: `LibAVError`; what was stored until then can still be played.
  mutating func finish(trailing: MissingFrames) throws(LibAVError) {
    note(trailing, before: nil)
    for packet in try pipeline?.finish() ?? [] { try write(packet) }
    guard let last = waiting else { return }
    // As in the middle of a take, the last picture stands until the next one would have come,
    // or as long as a movie can tell.
    let periods = 1 + missingSinceTaken + trailing.count
    let duration = min(microseconds(ofPeriods: periods), Int64(Int32.max))
    try write(last, duration: duration)
    lastDuration = duration
    waiting = nil
    let end = endMicroseconds
    let sound = try soundTrack?.finish(atMicroseconds: end)
    try writeSound(sound ?? [])
    soundSampleCount = SoundTrack.sample(atMicroseconds: end)
    try writer?.finish()
  }

  /// How long some frame periods last, at least 1 µs.
  ///
  /// Rounded up, because drivers cut their times off: the frame that comes next is due at a time
  /// that is on average half a microsecond later than its predecessor's suggests.
  private func microseconds(ofPeriods count: Int64) -> Int64 {
    let exact = try? frameRate.frameDuration.multiplied(by: Rational(count))
      .converted(to: 1_000_000, rounding: .towardPositiveInfinity).value
    return max(1, exact ?? Int64(Int32.max))
  }

  /// Settles what was taken and never stored; to be called once, at the very end.
  mutating func settle() {
    // What is missing among frames that were not stored is missing after the last that was.
    gaps = gaps.map {
      FrameGap(
        afterIndex: min($0.afterIndex, ledger.stored - 1), count: $0.count,
        nanoseconds: $0.nanoseconds, cause: $0.cause)
    }
    let lost = takenCount - ledger.stored
    guard lost > 0 else { return }
    ledger.lostWriter += lost
    gaps.append(
      FrameGap(
        afterIndex: ledger.stored - 1, count: lost,
        nanoseconds: endMicroseconds.saturatingMultiplied(by: 1_000), cause: .lostWriter))
  }

  private mutating func note(_ missing: MissingFrames, before stamp: FrameStamp?) {
    ledger.lostStart += missing.lostStart
    ledger.lostDevice += missing.lostDevice
    ledger.lostKernel += missing.lostKernel
    ledger.lostQueue += missing.lostQueue
    ledger.corrupt += missing.corrupt
    let causes: [(FrameGap.Cause, Int64)] = [
      (.lostStart, missing.lostStart), (.lostDevice, missing.lostDevice),
      (.lostKernel, missing.lostKernel), (.lostQueue, missing.lostQueue),
      (.corrupt, missing.corrupt),
    ]
    for (cause, count) in causes where count > 0 {
      if let last = gaps.last, last.afterIndex == takenCount - 1, last.cause == cause {
        gaps[gaps.count - 1].count += count
        continue
      }
      gaps.append(
        FrameGap(
          afterIndex: takenCount - 1, count: count,
          nanoseconds: cause == .lostStart ? 0 : dueNanoseconds(periodsAfterLast: 1),
          cause: cause))
    }
  }

  private func dueNanoseconds(periodsAfterLast: Int64) -> Int64 {
    let period = Double(periodsAfterLast) * frameRate.frameDuration.doubleValue
    return max(0, lastMicroseconds).saturatingMultiplied(by: 1_000)
      &+ Int64(saturating: (period * 1e9).rounded())
  }

  /// Opens the file before its first packet: only then is everything known that it must say.
  private mutating func begin() throws(LibAVError) {
    guard let parameters = pipeline?.parameters, let first else {
      throw LibAVError("begin", path, code: -22)
    }
    var settings = MovieWriter.Settings(container: "mov", movieTimescale: 1_000_000)
    settings.fragmentMicroseconds = 250_000
    settings.metadata = makeMetadata(first)
    var writer = try MovieWriter(path: path, settings: settings)
    videoIndex = try writer.addTrack(parameters, timescale: 1_000_000)
    if let sound {
      let epoch = sound.epochMicroseconds()
      let track = try SoundTrack(
        source: sound.source, codec: soundCodec,
        originMicroseconds: first.microseconds &- epoch)
      soundIndex = try writer.addTrack(
        track.parameters, timescale: Int32(SyntheticSound.sampleRate))
      soundTrack = consume track
    }
    try writer.begin()
    self.writer = consume writer
  }

  private mutating func write(_ packet: Packet) throws(LibAVError) {
    if writer == nil { try begin() }
    if let before = waiting {
      try write(before, duration: (packet.pts ?? 0) - (before.pts ?? 0))
    }
    waiting = packet
  }

  private mutating func write(_ packet: Packet, duration: Int64) throws(LibAVError) {
    let time = packet.pts ?? 0
    try writer?.write(packet, track: videoIndex, pts: time, dts: time, duration: duration)
    ledger.stored += 1
    storedMicroseconds.append(time)
  }

  private mutating func writeSound(_ packets: [Packet]) throws(LibAVError) {
    for packet in packets {
      guard let pts = packet.pts else { continue }
      try writer?.write(
        packet, track: soundIndex, pts: pts, dts: packet.dts ?? pts, duration: packet.duration)
    }
  }
}
