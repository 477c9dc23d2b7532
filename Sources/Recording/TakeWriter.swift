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
  let makeMetadata: (_ first: FrameObservation) -> [String: String]

  /// The books of the take; of what it took, not all may be stored in the end.
  private(set) var account: FrameAccount
  /// Frames in the file.
  private(set) var storedCount: Int64 = 0
  /// The times of all stored frames, in microseconds from the first.
  private(set) var storedMicroseconds: [Int64] = []
  /// The first frame that is stored.
  private(set) var first: FrameObservation?
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
  private var lastMicroseconds: Int64 = -1

  init(
    path: String, plan: PicturePlan, delivery: FrameDelivery, frameRate: FrameRate,
    sound: (source: SyntheticSound, epochMicroseconds: @Sendable () -> Int64)?,
    soundCodec: SoundCodec,
    account: FrameAccount,
    makeMetadata: @escaping (_ first: FrameObservation) -> [String: String]
  ) {
    self.path = path
    self.plan = plan
    self.delivery = delivery
    self.frameRate = frameRate
    self.sound = sound
    self.soundCodec = soundCodec
    self.account = account
    self.makeMetadata = makeMetadata
  }

  /// Bytes in the file so far.
  private(set) var byteCount: Int64 = 0

  /// The end of the last picture stored, in microseconds from the first.
  var endMicroseconds: Int64 { (storedMicroseconds.last ?? 0) &+ lastDuration }

  /// Enters a frame in the books without storing it, since nothing can be stored any more.
  mutating func refuse(_ frame: QueuedFrame) {
    account.enter(frame.observation, frame.observation.fate.outcome)
  }

  /// Stores a frame, or enters a note of one that did not get this far.
  ///
  /// - Throws: `LibAVError` when the encoder or the file refuses it; it then counts as taken.
  mutating func store(_ frame: QueuedFrame) throws(LibAVError) {
    var outcome = frame.observation.fate.outcome
    guard outcome == .taken else { return account.enter(frame.observation, outcome) }
    let before = (first: first, microseconds: lastMicroseconds)
    do throws(LibAVError) { outcome = try take(frame) } catch {
      lastMicroseconds = before.microseconds
      account.enter(frame.observation, .taken)
      throw error
    }
    if outcome != .taken { (first, lastMicroseconds) = before }
    account.enter(frame.observation, outcome)
  }

  private mutating func take(_ frame: QueuedFrame) throws(LibAVError) -> FrameOutcome {
    let observation = frame.observation
    let origin = first?.microseconds ?? observation.microseconds
    if first == nil { first = observation }
    // A driver whose time stands still or goes back must not make a file that does.
    let time = max(observation.microseconds &- origin, lastMicroseconds &+ 1)
    lastMicroseconds = time
    if pipeline == nil {
      pipeline = try plan.makePipeline(for: delivery, frameRate: frameRate)
    }
    switch try pipeline?.take(frame.bytes, at: time) ?? .packets([]) {
    case .damaged: return .corrupt
    case .packets(let packets):
      // H.264 before its first key frame cannot be shown: the take begins with that one.
      if packets.isEmpty, pipeline?.parameters == nil { return .unshowable }
      for packet in packets { try write(packet) }
    }
    let sound = try soundTrack?.advance(toMicroseconds: time)
    try writeSound(sound ?? [])
    byteCount = writer?.byteCount() ?? 0
    return .taken
  }

  /// Stores what is still inside and closes the file, in fragments as it is.
  ///
  /// - Throws: `LibAVError`; what was stored until then can still be played.
  mutating func finish() throws(LibAVError) {
    for packet in try pipeline?.finish() ?? [] { try write(packet) }
    guard let last = waiting else { return }
    // As in the middle of a take, the last picture stands until the next one would have come,
    // or as long as a movie can tell.
    let periods = 1 + account.periodsSinceTaken
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

  /// Closes the books, before ``finish()``: how long the last picture stands follows from them.
  mutating func close(_ end: CaptureEnd) { account.close(end) }

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
    storedCount += 1
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

extension FrameObservation.Fate {
  /// What became of the frame, unless the writer still finds out otherwise.
  fileprivate var outcome: FrameOutcome {
    switch self {
    case .queued: .taken
    case .corrupt: .corrupt
    case .refused: .refused
    }
  }
}
