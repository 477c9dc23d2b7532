// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// The work of the writer: takes frames from the queue, stores them, and keeps the ledger.
///
/// The first stored frame is the take's zero, and each picture lasts until the next.
struct TakeWriter: ~Copyable {
  let file: OpenFile
  let plan: VideoPipelinePlan
  let delivery: FrameDelivery
  let frameRate: FrameRate
  let audio: TakeAudio?
  let audioCodec: AudioCodec
  /// Whether room on the disk is taken ahead of the file's end.
  let reservesSpace: Bool
  /// Frames that may be lost in a kill until ``settle()`` is called.
  let unsettledFrames: Int
  /// The file's tags, from the driver's time and number of the first frame.
  let makeMetadata: (_ first: FrameObservation, _ leadIn: Int) -> [String: String]

  /// The account of the take; of what it took, not all may be stored in the end.
  private(set) var account: FrameAccount
  /// Frames in the file.
  private(set) var storedCount: Int64 = 0
  /// Where frames were left out because nobody wanted them.
  private(set) var pauses: [RecordingPause] = []
  /// Frames in the file that are not shown, before the first.
  private(set) var leadInCount: Int64 = 0
  private var plannedLeadIn = 0
  /// The times of all stored frames, in microseconds from the first.
  private(set) var storedMicroseconds: [Int64] = []
  /// The first frame that is stored.
  private(set) var first: FrameObservation?
  /// How long the last picture lasts; set by ``finish(trailing:)``.
  private(set) var lastDuration: Int64 = 0
  /// Samples of sound that belong to the take.
  private(set) var audioSampleCount: Int64 = 0
  /// What became of the take's sound, in the end; nil where it has none.
  private(set) var audioAccount: RecordedAudio?

  private var pipeline: (any VideoPipeline)?
  private var movie: FragmentedMovieWriter?
  private var audioTrack: AudioTrack?
  /// What is to be noted in the file before there is one.
  private var early: [FrameObservation] = []
  private var lastMicroseconds: Int64 = -1
  /// How long the source's own last picture lasts, where the take goes on to its end.
  private var sourceLastDuration: Int64?
  /// Whether the next picture may lack what it builds on.
  private var isInterrupted = false
  private let periodMicroseconds: Int64

  init(
    into file: OpenFile, plan: VideoPipelinePlan, delivery: FrameDelivery, frameRate: FrameRate,
    audio: TakeAudio?,
    audioCodec: AudioCodec,
    reservesSpace: Bool = true,
    unsettledFrames: Int = 0,
    account: FrameAccount,
    makeMetadata: @escaping (_ first: FrameObservation, _ leadIn: Int) -> [String: String]
  ) {
    self.file = file
    self.plan = plan
    self.delivery = delivery
    self.frameRate = frameRate
    self.audio = audio
    self.audioCodec = audioCodec
    self.reservesSpace = reservesSpace
    self.unsettledFrames = unsettledFrames
    self.account = account
    self.makeMetadata = makeMetadata
    periodMicroseconds = Self.microseconds(ofPeriods: 1, at: frameRate)
  }

  private var path: String { file.path }

  /// Bytes in the file so far.
  private(set) var byteCount: Int64 = 0
  private var frameBytes: Int64 = 0

  /// How the pictures are encoded; nil while there are none.
  var video: RecordedVideo? {
    guard storedCount > 0, let pipeline else { return nil }
    let headers = pipeline.parameters.flatMap { H264Headers($0) }
    let seconds = Double(max(1, endMicroseconds)) / 1_000_000
    return RecordedVideo(
      codec: plan.codec, profile: headers?.profileName, level: headers?.levelName,
      bitRate: Int64(saturating: (Double(frameBytes) * 8 / seconds).rounded()),
      maximumBitRate: pipeline.maximumBitRate)
  }

  /// The end of the last picture stored, in microseconds from the first.
  var endMicroseconds: Int64 { (storedMicroseconds.last ?? 0) &+ lastDuration }

  /// Seconds of the take so far, for display.
  var seconds: Double { Double(endMicroseconds) / 1_000_000 }

  /// Enters a frame in the account without storing it, since nothing can be stored any more.
  mutating func refuse(_ frame: QueuedFrame) -> FrameOutcome {
    let outcome = frame.observation.outcome
    // The ledger in the file ends where the disk does.
    try? enter(frame.observation, outcome)
    return outcome
  }

  /// Stores a frame, or enters a note of one that did not get this far.
  ///
  /// - Returns: What became of it.
  /// - Throws: `LibAVError` when the encoder or the file refuses it; it then counts as taken.
  mutating func store(_ frame: QueuedFrame) throws(LibAVError) -> FrameOutcome {
    var outcome = frame.observation.outcome
    if outcome == .paused {
      pause(atMicroseconds: frame.observation.microseconds)
    } else if account.clock.isPaused {
      try resume(atMicroseconds: frame.observation.microseconds)
    }
    guard outcome == .taken else {
      try enter(frame.observation, outcome)
      return outcome
    }
    let before = (first: first, microseconds: lastMicroseconds)
    do throws(LibAVError) { outcome = try take(frame) } catch {
      lastMicroseconds = before.microseconds
      account.enter(frame.observation)
      throw error
    }
    if outcome != .taken { (first, lastMicroseconds) = before }
    try enter(frame.observation, outcome)
    return outcome
  }

  /// Stores frames from before the take, back to a key frame, so that the first frame of the take
  /// can be decoded: a tick each, before the file's time begins, which no player shows.
  ///
  /// - Parameters:
  ///   - frames: The frames in order, the first of them a key frame.
  ///   - first: The first frame of the take, stored next.
  /// - Throws: `LibAVError` as ``store(_:)``.
  mutating func lead(
    in frames: [QueuedFrame], to first: FrameObservation
  ) throws(LibAVError) {
    self.first = first
    plannedLeadIn = frames.count
    var pipeline = try plan.makePipeline(for: delivery, frameRate: frameRate)
    for (index, frame) in frames.enumerated() {
      try pipeline.prime(frame.bytes, at: Int64(index - frames.count)) {
        (bytes, ticks, isKeyFrame, parameters) throws(LibAVError) in
        try append(bytes, at: ticks, isKeyFrame: isKeyFrame, parameters)
        leadInCount += 1
      }
    }
    self.pipeline = pipeline
    byteCount = movie?.byteCount ?? 0
  }

  private mutating func pause(atMicroseconds time: Int64) {
    guard first != nil else { return }
    pauses.append(
      RecordingPause(
        time: MediaTime(microseconds: account.clock.time(ofMicroseconds: time)),
        captureTime: MediaTime(microseconds: time)))
  }

  /// Goes on after a pause, with the sound of then.
  private mutating func resume(atMicroseconds time: Int64) throws(LibAVError) {
    account.resume(atMicroseconds: time)
    isInterrupted = true
    guard first != nil, let last = pauses.indices.last else { return }
    pauses[last].end(atMicroseconds: time)
    let packets = try audioTrack?.goOn(
      atMicroseconds: account.clock.time(ofMicroseconds: time), originMicroseconds: time)
    try writeAudio(packets ?? [])
  }

  /// Enters a frame in the account and in the file's ledger.
  private mutating func enter(
    _ frame: FrameObservation, _ outcome: FrameOutcome
  ) throws(LibAVError) {
    var frame = frame
    frame.outcome = outcome
    account.enter(frame)
    if movie == nil {
      early.append(frame)
    } else {
      try LibAVError.converting { () throws(SystemError) in try movie?.note(frame) }
    }
  }

  private mutating func take(_ frame: QueuedFrame) throws(LibAVError) -> FrameOutcome {
    let observation = frame.observation
    if isInterrupted, delivery.layout == .compressed(.h264), !frame.isKeyFrame {
      return .unshowable
    }
    isInterrupted = false
    if first == nil { first = observation }
    // A driver whose time stands still or goes back must not make a file that does.
    let time = max(
      account.clock.time(ofMicroseconds: observation.microseconds), lastMicroseconds &+ 1)
    lastMicroseconds = time
    // Taken out, not copied: a second owner would have each frame copy the whole pipeline.
    var pipeline =
      if let known = self.pipeline.take() {
        known
      } else {
        try plan.makePipeline(for: delivery, frameRate: frameRate)
      }
    // Kept also where it failed: what is inside may still be stored.
    defer { self.pipeline = pipeline }
    let outcome = try pipeline.take(frame.bytes, at: time) {
      (bytes, time, isKeyFrame, parameters) throws(LibAVError) in
      try write(bytes, at: time, isKeyFrame: isKeyFrame, parameters)
    }
    // H.264 before its first key frame cannot be shown: the take begins with that one.
    guard outcome == .taken else { return outcome }
    let audio = try audioTrack?.advance(toMicroseconds: time)
    try writeAudio(audio ?? [])
    byteCount = movie?.byteCount ?? 0
    return .taken
  }

  /// Has the file tell of all that was stored until now, if the program is killed.
  ///
  /// - Throws: `LibAVError` for "write to".
  mutating func settle() throws(LibAVError) {
    try LibAVError.converting { () throws(SystemError) in try movie?.settle() }
  }

  /// Stores what is still inside and closes the file, in fragments as it is.
  ///
  /// - Throws: `LibAVError`; what was stored until then can still be played.
  mutating func finish() throws(LibAVError) {
    // Whatever fails first, the rest is stored as far as it can be.
    var failure: LibAVError?
    do throws(LibAVError) {
      var pipeline = pipeline
      try pipeline?.finish { (bytes, time, isKeyFrame, parameters) throws(LibAVError) in
        try write(bytes, at: time, isKeyFrame: isKeyFrame, parameters)
      }
    } catch { failure = error }
    do throws(LibAVError) { try finishMovie() } catch { failure = failure ?? error }
    if let failure { throw failure }
  }

  private mutating func finishMovie() throws(LibAVError) {
    guard movie != nil else { return }
    // As in the middle of a take, the last picture stands until the next one would have come,
    // or as long as a movie can tell.
    let missing = account.periodsSinceTaken
    let known = missing == 0 ? sourceLastDuration : nil
    lastDuration = min(
      known ?? Self.microseconds(ofPeriods: 1 + missing, at: frameRate), Int64(Int32.max))
    movie?.endLast(ofTrack: Self.pictures, duration: lastDuration)
    let end = endMicroseconds
    var failure: LibAVError?
    do throws(LibAVError) {
      let audio = try audioTrack?.finish(atMicroseconds: end)
      try writeAudio(audio ?? [])
    } catch { failure = error }
    audioSampleCount = audioTrack?.sampleCount ?? 0
    audioAccount = audioTrack?.account
    do throws(LibAVError) {
      try LibAVError.converting { () throws(SystemError) in try movie?.finish() }
    } catch {
      failure = failure ?? error
    }
    if let failure { throw failure }
  }

  /// How long some frame periods last, at least 1 µs.
  ///
  /// Rounded up, because drivers cut their times off: the frame that comes next is due at a time
  /// that is on average half a microsecond later than its predecessor's suggests.
  private static func microseconds(ofPeriods count: Int64, at frameRate: FrameRate) -> Int64 {
    let exact = try? MediaTime(frameRate.frameDuration * Rational(count))
      .converted(to: 1_000_000, rounding: .towardPositiveInfinity).value
    return max(1, exact ?? Int64(Int32.max))
  }

  /// Closes the account, before ``finish()``: how long the last frame lasts follows from it.
  mutating func close(_ end: CaptureEnd) {
    account.close(end.frames)
    sourceLastDuration = end.lastFrameDuration
  }

  private static let pictures = 0
  private static let audio = 1

  /// Opens the file before its first picture: only then is everything known that it must say.
  private mutating func begin(
    _ picture: UnsafeRawBufferPointer, at ticks: Int64, _ parameters: CodecParameters?
  ) throws(LibAVError) {
    guard let parameters, let first else {
      throw LibAVError("begin", path, code: -22)
    }
    let packet = try Packet(
      copying: picture, pts: ticks, dts: ticks, duration: 1, isKeyFrame: true)
    var tracks = [
      InitializationSegment.Track(
        parameters, timescale: 1_000_000, first: .init(ticks: ticks, packet: packet))
    ]
    var settings = MovieWriter.Settings(
      container: (MovieContainer(path: path) ?? .mov).rawValue, movieTimescale: 1_000_000)
    settings.metadata = makeMetadata(first, plannedLeadIn)
    if let audio {
      let track = try AudioTrack(
        source: audio, codec: audioCodec, originMicroseconds: first.microseconds)
      tracks.append(try track.head())
      audioTrack = consume track
    }
    let head = InitializationSegment(tracks: tracks, settings: settings)
    let bytes = try head.bytes(path: path)
    try LibAVError.converting { () throws(SystemError) in
      movie = try FragmentedMovieWriter(
        file, head: bytes, tracks: head.layouts, layout: layout, reservesSpace: reservesSpace)
      for frame in early { try movie?.note(frame) }
    }
    early = []
  }

  /// Fragments by time, never by key frame: with MJPEG that would be a fragment for each picture.
  ///
  /// With the frames that wait in the queue, a kill loses no more than a quarter of a second.
  private var layout: FragmentedMovieWriter.Layout {
    // More than come in that time, since a camera may be faster than it says.
    let pictures = Int(min(frameRate.doubleValue, 10_000) / 4)
    let blocks = audio.map { AudioTrack.packetsPerSecond(atRate: $0.sampleRate) / 4 + 8 }
    return FragmentedMovieWriter.Layout(
      fragmentTicks: 150_000, samplesPerFragment: pictures + (blocks ?? 4),
      unsettledFrames: unsettledFrames)
  }

  private mutating func write(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, isKeyFrame: Bool,
    _ parameters: CodecParameters?
  ) throws(LibAVError) {
    try append(bytes, at: microseconds, isKeyFrame: isKeyFrame, parameters)
    storedCount += 1
    frameBytes += Int64(bytes.count)
    storedMicroseconds.append(microseconds)
  }

  private mutating func append(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, isKeyFrame: Bool,
    _ parameters: CodecParameters?
  ) throws(LibAVError) {
    if movie == nil { try begin(bytes, at: microseconds, parameters) }
    let duration = microseconds < 0 ? 1 : periodMicroseconds
    try LibAVError.converting { () throws(SystemError) in
      try movie?.append(
        bytes, track: Self.pictures, ticks: microseconds, duration: duration,
        isKeyFrame: isKeyFrame)
    }
  }

  private mutating func writeAudio(_ packets: [Packet]) throws(LibAVError) {
    for packet in packets {
      guard let time = packet.pts else { continue }
      let duration = packet.duration
      try packet.withBytes { (bytes) throws(LibAVError) in
        try LibAVError.converting { () throws(SystemError) in
          try movie?.append(
            bytes, track: Self.audio, ticks: time, duration: duration, isKeyFrame: true)
        }
      }
    }
  }
}
