// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// Takes frames from the queue, stores them and records them in the ledger.
///
/// The first stored frame is the take's time zero. Each frame lasts until the next one.
struct TakeWriter: ~Copyable {
  private let file: OpenFile
  private let plan: VideoPipelinePlan
  private let delivery: FrameDelivery
  private let frameRate: FrameRate
  private let audio: TakeAudio?
  private let audioCodec: AudioCodec
  /// Whether disk space is reserved beyond the end of the file.
  private let reservesSpace: Bool
  /// The greatest number of stored frames whose journal records are not written yet.
  ///
  /// If the process is killed, these frames are lost. After this many frames, the owner calls
  /// ``flush()``, which writes the records.
  private let unflushedFrames: Int
  /// Creates the file's tags from the first frame and the number of hidden lead-in frames.
  private let makeMetadata: (_ first: FrameObservation, _ leadIn: Int) -> [String: String]

  /// The rotation, mirroring and zoom of the frames, or nil for frames as the camera delivers them.
  private let geometry: ConnectionGeometry?
  /// The part of each copied frame that players should show, or nil for the whole frame.
  private(set) var cleanAperture: CleanAperture?
  /// Whether the zoom changed after the first of the copied frames.
  private(set) var hasOtherZoom = false

  /// The frame account, which contains the outcome of each frame.
  ///
  /// A frame that could not be stored counts as taken in the account, so the file may contain fewer
  /// frames than the account.
  private(set) var account: FrameAccount
  /// The number of video frames stored in the file so far.
  private(set) var storedCount: Int64 = 0
  /// The pauses of the take.
  private(set) var pauses: [RecordingPause] = []
  /// The number of hidden frames in the file before the first shown frame.
  private(set) var leadInCount: Int64 = 0
  private var plannedLeadIn = 0
  /// The times of all stored frames, in microseconds after the first stored frame.
  private(set) var storedMicroseconds: [Int64] = []
  /// The first stored frame.
  private(set) var first: FrameObservation?
  /// The duration of the last frame in microseconds, set by ``finish()``.
  private var lastDuration: Int64 = 0
  /// The number of audio samples per channel in the file.
  private(set) var audioSampleCount: Int64 = 0
  /// The final report of the audio, or nil for a take without audio.
  private(set) var audioAccount: RecordedAudio?

  /// Metadata values that wait until their frames are stored.
  private(set) var values: PendingValues
  /// The state of the audio at the end of the take's previous file, or nil for the first file.
  private let earlierAudio: AudioTrack.Continuation?
  private var pipeline: (any VideoPipeline)?
  private var movie: FragmentedMovieWriter?
  private var audioTrack: AudioTrack?
  /// Frame records that were collected before the file had a header.
  ///
  /// They are written to the ledger after the header.
  private var early: [FrameObservation] = []
  private var lastMicroseconds: Int64 = -1
  /// The decode times of the first and the last stored frame, in microseconds.
  private var (firstDecodeTime, lastDecodeTime): (Int64?, Int64?) = (nil, nil)
  /// The duration of the source's last frame, in microseconds.
  ///
  /// Nil unless the source is finite and the take includes its last frame.
  private var sourceLastDuration: Int64?
  /// The time at which the take's next file begins, in microseconds of this file.
  ///
  /// Nil if this file is the last.
  private var nextFileStart: Int64?
  /// Whether a pause has left out frames that the next frame may need for decoding.
  private var isInterrupted = false
  private let periodMicroseconds: Int64

  init(
    into file: OpenFile, plan: VideoPipelinePlan, delivery: FrameDelivery, frameRate: FrameRate,
    audio: TakeAudio?,
    audioCodec: AudioCodec,
    reservesSpace: Bool = true,
    unflushedFrames: Int = 0,
    geometry: ConnectionGeometry? = nil,
    account: FrameAccount, values: PendingValues = PendingValues(),
    after earlierAudio: AudioTrack.Continuation? = nil,
    makeMetadata: @escaping (_ first: FrameObservation, _ leadIn: Int) -> [String: String]
  ) {
    self.file = file
    self.plan = plan
    self.delivery = delivery
    self.frameRate = frameRate
    self.audio = audio
    self.audioCodec = audioCodec
    self.reservesSpace = reservesSpace
    self.unflushedFrames = unflushedFrames
    self.geometry = geometry
    self.account = account
    self.values = values
    self.earlierAudio = earlierAudio
    self.makeMetadata = makeMetadata
    periodMicroseconds = Self.microseconds(ofPeriods: 1, at: frameRate)
  }

  private var path: String { file.path }

  /// Adds metadata values, which are stored with their frames.
  mutating func add(_ values: [PendingValue]) { self.values.add(values) }

  /// The number of bytes in the file so far.
  private(set) var byteCount: Int64 = 0
  private var frameBytes: Int64 = 0

  /// The encoding of the video, or nil before the first frame.
  var video: RecordedVideo? {
    guard storedCount > 0, let pipeline else { return nil }
    let headers = pipeline.parameters.flatMap { H264Headers($0) }
    let seconds = Double(max(1, endMicroseconds)) / 1_000_000
    return RecordedVideo(
      codec: plan.codec, profile: headers?.profileName, level: headers?.levelName,
      bitRate: Int64(saturating: (Double(frameBytes) * 8 / seconds).rounded()),
      maximumBitRate: pipeline.maximumBitRate)
  }

  /// The end of the last stored frame, in microseconds after the start of the first stored frame.
  var endMicroseconds: Int64 { (storedMicroseconds.last ?? 0) &+ lastDuration }

  /// The duration of the take so far in seconds, for display.
  var seconds: Double { Double(endMicroseconds) / 1_000_000 }

  /// Records a frame that is not stored because an earlier error ended storing.
  mutating func refuse(_ frame: QueuedFrame) -> FrameOutcome {
    let outcome = frame.observation.outcome
    // The write error may also affect the ledger of the file, so an error of this call is ignored.
    try? record(frame.observation, outcome)
    return outcome
  }

  /// Stores a frame.
  ///
  /// If the frame was dropped before it reached the writer, only records its outcome.
  ///
  /// - Returns: The outcome of the frame.
  /// - Throws: `CallFailure` if the encoder or the file fails. The frame then counts as taken.
  mutating func store(_ frame: QueuedFrame) throws(CallFailure) -> FrameOutcome {
    var outcome = frame.observation.outcome
    if outcome == .paused {
      pause(atMicroseconds: frame.observation.microseconds)
    } else if account.clock.isPaused {
      try resume(atMicroseconds: frame.observation.microseconds)
    }
    guard outcome == .taken else {
      try record(frame.observation, outcome)
      return outcome
    }
    let before = (first: first, microseconds: lastMicroseconds)
    do throws(CallFailure) { outcome = try take(frame) } catch {
      lastMicroseconds = before.microseconds
      account.record(frame.observation)
      throw error
    }
    if outcome != .taken { (first, lastMicroseconds) = before }
    try record(frame.observation, outcome)
    return outcome
  }

  /// Stores the lead-in: the frames from the last key frame up to the take's first frame, which
  /// depends on them for decoding.
  ///
  /// The lead-in frames have times before zero, one tick each, so players decode them but do not
  /// show them.
  ///
  /// - Parameters:
  ///   - frames: The frames in order, starting with a key frame.
  ///   - first: The first frame of the take, which is stored next.
  /// - Throws: `CallFailure` as ``store(_:)`` does.
  mutating func lead(
    in frames: [QueuedFrame], to first: FrameObservation
  ) throws(CallFailure) {
    self.first = first
    plannedLeadIn = frames.count
    var pipeline = try plan.makePipeline(for: delivery, frameRate: frameRate)
    for (index, frame) in frames.enumerated() {
      try pipeline.prime(frame.bytes, at: Int64(index - frames.count)) {
        (bytes, sample, parameters) throws(CallFailure) in
        try append(bytes, sample, parameters)
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

  /// Ends a pause, and continues with the audio from this time on the capture clock.
  private mutating func resume(atMicroseconds time: Int64) throws(CallFailure) {
    account.resume(atMicroseconds: time)
    isInterrupted = true
    guard first != nil, let last = pauses.indices.last else { return }
    pauses[last].end(atMicroseconds: time)
    let packets = try audioTrack?.resume(
      atMicroseconds: account.clock.time(ofMicroseconds: time), originMicroseconds: time)
    try writeAudio(packets ?? [])
  }

  /// Records the outcome of a frame in the frame account and in the file's ledger.
  private mutating func record(
    _ frame: FrameObservation, _ outcome: FrameOutcome
  ) throws(CallFailure) {
    var frame = frame
    frame.outcome = outcome
    account.record(frame)
    if movie == nil {
      early.append(frame)
    } else {
      try CallFailure.converting { () throws(CallFailure) in try movie?.note(frame) }
    }
  }

  private mutating func take(_ frame: QueuedFrame) throws(CallFailure) -> FrameOutcome {
    let observation = frame.observation
    if isInterrupted, delivery.layout == .compressed(.h264), !frame.isKeyFrame {
      return .unshowable
    }
    isInterrupted = false
    if first == nil { first = observation }
    let time = time(of: observation)
    lastMicroseconds = time
    // The pipeline is moved out of `self`. Swift would copy it for each frame if there were a
    // second reference to it.
    var pipeline =
      if let known = self.pipeline.take() {
        known
      } else {
        try plan.makePipeline(for: delivery, frameRate: frameRate)
      }
    // The pipeline may contain frames that can still be stored, so it is kept after an error.
    defer { self.pipeline = pipeline }
    if let geometry {
      let factor = geometry.outputFactor(atMicroseconds: observation.microseconds)
      pipeline.zoom(to: factor)
      if plan.isCopy, movie != nil, aperture(ofFactor: factor) != cleanAperture {
        hasOtherZoom = true
      }
    }
    let outcome = try pipeline.take(frame.bytes, at: time) {
      (bytes, sample, parameters) throws(CallFailure) in
      try write(bytes, sample, parameters)
    }
    // An H.264 frame before the first key frame cannot be decoded, so the pipeline does not take
    // it. The take begins with the key frame.
    guard outcome == .taken else { return outcome }
    let audio = try audioTrack?.advance(toMicroseconds: time)
    try writeAudio(audio ?? [])
    byteCount = movie?.byteCount ?? 0
    return .taken
  }

  /// Writes the journal records of all frames stored so far.
  ///
  /// If the process is killed later, a recovery finds these frames.
  ///
  /// - Throws: `CallFailure` if writing fails.
  mutating func flush() throws(CallFailure) {
    try storeValues()
    try CallFailure.converting { () throws(CallFailure) in try movie?.flush() }
  }

  /// Stores the frames that are still in the pipeline and closes the fragmented file.
  ///
  /// - Throws: `CallFailure`. The frames stored before stay playable.
  mutating func finish() throws(CallFailure) {
    // After an error, the remaining steps still run to store as much as possible.
    var failure: CallFailure?
    do throws(CallFailure) {
      var pipeline = pipeline
      try pipeline?.finish { (bytes, sample, parameters) throws(CallFailure) in
        try write(bytes, sample, parameters)
      }
    } catch { failure = error }
    do throws(CallFailure) { try storeValues(isEnd: true) } catch { failure = failure ?? error }
    do throws(CallFailure) { try finishMovie() } catch { failure = failure ?? error }
    if let failure { throw failure }
  }

  private mutating func finishMovie() throws(CallFailure) {
    guard movie != nil else { return }
    // The last frame lasts one period, plus one period for each frame that is missing after it.
    let missing = account.periodsSinceTaken
    let known = missing == 0 ? sourceLastDuration : nil
    let untilNextFile = nextFileStart.map { $0 &- (storedMicroseconds.last ?? 0) }
    lastDuration = min(
      untilNextFile ?? known ?? Self.microseconds(ofPeriods: 1 + missing, at: frameRate),
      FragmentedMovieWriter.maximumSampleTicks)
    let end = endMicroseconds
    // In a reordered file, the frame decoded last is not the frame shown last, and decoding begins
    // before time zero.
    let decoded = min(0, firstDecodeTime ?? 0) &- (lastDecodeTime ?? 0)
    movie?.endLast(
      ofTrack: Self.videoTrack,
      duration: plan.isReordered ? max(1, end &+ decoded) : lastDuration)
    var failure: CallFailure?
    do throws(CallFailure) {
      let audio = try audioTrack?.finish(atMicroseconds: end)
      try writeAudio(audio ?? [])
    } catch { failure = error }
    audioSampleCount = audioTrack?.sampleCount ?? 0
    audioAccount = audioTrack?.account
    do throws(CallFailure) {
      try CallFailure.converting { () throws(CallFailure) in try movie?.finish() }
    } catch {
      failure = failure ?? error
    }
    if let failure { throw failure }
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

  /// Closes the frame account.
  ///
  /// Call this before ``finish()``, which derives the last frame's duration from the account.
  ///
  /// `next` is the first frame of the take's next file. Nil if this file is the last.
  mutating func close(_ end: CaptureEnd, before next: FrameObservation? = nil) {
    account.close(end.frames)
    sourceLastDuration = end.lastFrameDuration
    nextFileStart = next.map { time(of: $0) }
  }

  /// The time in the file that the next frame would get, in microseconds.
  func time(of frame: FrameObservation) -> Int64 {
    // If the driver's clock stops or runs backward, the time in the file must still increase. It
    // then advances by 1 µs.
    max(account.clock.time(ofMicroseconds: frame.microseconds), lastMicroseconds &+ 1)
  }
}

extension TakeWriter {
  private static let videoTrack = 0
  private static let audioTrack = 1

  /// Creates the file's header at the first frame, because the codec parameters are unknown before
  /// that frame.
  private mutating func begin(
    _ image: UnsafeRawBufferPointer, _ sample: VideoSample, _ parameters: CodecParameters?
  ) throws(CallFailure) {
    guard let parameters, let first else {
      throw CallFailure("begin", path, code: -22)
    }
    let (ticks, time) = (sample.decodeTime, sample.time)
    let packet = try Packet(
      copying: image, pts: time, dts: ticks, duration: 1, isKeyFrame: true)
    var index = MovieIndex(MovieContainer(path: path) ?? .mov, timescale: 1_000_000)
    index.tags = makeMetadata(first, plannedLeadIn)
    var video = TrackMuxer.Format(parameters, in: index.container, timescale: 1_000_000)
    if let geometry {
      video.displayMatrix = geometry.rotation.displayMatrix(
        width: delivery.width, height: delivery.height)
      if plan.isCopy {
        cleanAperture = aperture(
          ofFactor: geometry.outputFactor(atMicroseconds: first.microseconds))
      }
    }
    var tracks = [
      try FragmentedMovieWriter.Track(
        video, first: FirstSample(ticks: ticks, presentationTicks: time), packet: packet,
        cleanAperture: cleanAperture.map { .init(width: $0.width, height: $0.height) }, path: path)
    ]
    firstDecodeTime = ticks
    if let audio {
      let track = try AudioTrack(
        source: audio, codec: audioCodec, originMicroseconds: first.microseconds,
        after: earlierAudio)
      tracks.append(try track.head(of: path))
      audioTrack = consume track
    }
    try CallFailure.converting { () throws(CallFailure) in
      movie = try FragmentedMovieWriter(
        file, index: index, tracks: tracks, layout: layout, reservesSpace: reservesSpace)
      for frame in early { try movie?.note(frame) }
    }
    early = []
  }

  /// The part of a copied frame that players should show at a zoom factor.
  private func aperture(ofFactor factor: Double) -> CleanAperture? {
    CleanAperture(width: delivery.width, height: delivery.height, factor: factor)
  }

  /// The fragment layout: a new fragment starts every 150 ms, not only at key frames.
  ///
  /// If each key frame started a fragment, MJPEG would get one fragment per frame, because all its
  /// frames are key frames. If the process is killed, the open fragment and the queued frames are
  /// lost, together at most 0.25 s.
  private var layout: FragmentedMovieWriter.Layout {
    // A camera may exceed its nominal rate, so a fragment has space for more frames than expected.
    let frames = Int(min(frameRate.doubleValue, 10_000) / 4)
    let blocks = audio.map { AudioBlockEncoder.packetsPerSecond(atRate: $0.sampleRate) / 4 + 8 }
    var layout = FragmentedMovieWriter.Layout(
      fragmentTicks: 150_000, samplesPerFragment: frames + (blocks ?? 4),
      unflushedFrames: unflushedFrames)
    layout.isReordered = plan.isReordered
    return layout
  }

  private mutating func write(
    _ bytes: UnsafeRawBufferPointer, _ sample: VideoSample, _ parameters: CodecParameters?
  ) throws(CallFailure) {
    try append(bytes, sample, parameters)
    storedCount += 1
    frameBytes += Int64(bytes.count)
    // The times are kept in presentation order. If frames are reordered, a few frames with later
    // times may have been stored before this frame.
    var index = storedMicroseconds.count
    while index > 0, storedMicroseconds[index - 1] > sample.time { index -= 1 }
    storedMicroseconds.insert(sample.time, at: index)
  }

  private mutating func append(
    _ bytes: UnsafeRawBufferPointer, _ sample: VideoSample, _ parameters: CodecParameters?
  ) throws(CallFailure) {
    if movie == nil { try begin(bytes, sample, parameters) }
    let duration = sample.time < 0 ? 1 : periodMicroseconds
    try CallFailure.converting { () throws(CallFailure) in
      try movie?.append(
        bytes, track: Self.videoTrack, ticks: sample.decodeTime,
        presentationOffset: sample.time &- sample.decodeTime, duration: duration,
        isKeyFrame: sample.isKeyFrame, isDroppable: sample.isDroppable)
    }
    lastDecodeTime = sample.decodeTime
  }

  /// Stores the metadata values of those frames that are stored already.
  ///
  /// Set `isEnd` after the last frame of the file.
  private mutating func storeValues(isEnd: Bool = false) throws(CallFailure) {
    guard !values.waiting.isEmpty, movie != nil else { return }
    let end: PendingValues.End = isEnd ? nextFileStart.map { .file($0) } ?? .take : .none
    // Reordered frames may still be stored between the last ones, so metadata values of the last 32
    // frames wait.
    let stored = values.take(
      times: storedMicroseconds, margin: plan.isReordered ? 32 : 0, clock: account.clock, end: end)
    guard let first = stored.first else { return }
    _ = try CallFailure.converting { () throws(CallFailure) in
      try movie?.attach(TimedValue.encode(stored), ticks: first.ticks)
    }
  }

  /// The state of the audio from which the take's next file continues.
  ///
  /// Call this after the current file is finished.
  func audioContinuation() -> AudioTrack.Continuation? {
    audioTrack?.continuation(atMicroseconds: endMicroseconds)
  }

  private mutating func writeAudio(_ packets: [Packet]) throws(CallFailure) {
    for packet in packets {
      guard let time = packet.pts else { continue }
      let duration = packet.duration
      try packet.withBytes { (bytes) throws(CallFailure) in
        try CallFailure.converting { () throws(CallFailure) in
          try movie?.append(
            bytes, track: Self.audioTrack, ticks: time, duration: duration, isKeyFrame: true)
        }
      }
    }
  }
}
