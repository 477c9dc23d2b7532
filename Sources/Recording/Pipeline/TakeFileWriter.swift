// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// Writes one file of a take: stores frames one by one, and creates the report at the end.
///
/// The ledger of the file contains the outcome of every frame. After an error of the disk or the
/// encoder, nothing more is stored.
struct TakeFileWriter: ~Copyable {
  /// The audio and the metadata values of a closed file that continue in the next file of the take.
  struct Remainder {
    var audio: TakeAudioTrack.Continuation?
    var values: PendingValues
  }

  private let configuration: TakeConfiguration
  private var file: MovieFile
  /// The greatest number of stored frames whose journal records are not written yet.
  ///
  /// If the process is killed, these frames are lost. After this many frames, the owner calls
  /// ``flush()``, which writes the records.
  private let unflushedFrames: Int
  private let startOfWriting = CaptureStatistics.threadTime()

  private var timeline: TakeTimeline
  /// Metadata values that wait until their frames are stored.
  private var values: PendingValues
  /// The state of the audio at the end of the take's previous file, or nil for the first file.
  private let earlierAudio: TakeAudioTrack.Continuation?
  private var pipeline: (any VideoPipeline)?
  private var movie: FragmentedMovieWriter?
  private var audioTrack: TakeAudioTrack?
  /// Frame records that were collected before the file had a header.
  ///
  /// They are written to the ledger after the header.
  private var early: [FrameObservation] = []
  /// The number of hidden frames in the file before the first shown frame.
  private var leadInCount: Int64 = 0
  private var plannedLeadIn = 0
  /// The part of each copied frame that players should show, or nil for the whole frame.
  private var cleanAperture: CleanAperture?
  /// Whether the zoom changed after the first of the copied frames.
  private var hasOtherZoom = false
  /// The zoom factor of the last frame, if frames are copied; nil before the first frame.
  private var zoomFactor: Double?
  /// Whether a pause has left out frames that the next frame may need for decoding.
  private var isInterrupted = false
  /// The number of bytes in the file so far.
  private var byteCount: Int64 = 0
  private var frameBytes: Int64 = 0
  /// The triggers that the file marks with chapters.
  private var markedTriggers: [CaptureTrigger] = []

  private var limits: FileLimits
  /// The first error of the disk or the encoder, after which nothing is stored.
  private var failure: CallFailure?
  /// The format of the frames, and the mode of the camera at the start of the file.
  ///
  /// The camera may get another mode while the last frames of the old one still wait.
  private let delivery: FrameDelivery
  private let mode: TakeConfiguration.Mode
  /// The frame rate of another stream of the camera, whose first frame is stored next.
  private var nextFrameRate: FrameRate?
  /// The reason why a limit ended the take, and the first frame after the limit.
  private var limit: (reason: StopReason, next: FrameObservation)?
  /// The final state of the capture when the file was closed, or nil while the file is open.
  private var end: CaptureEnd?

  /// Starts to write to an empty file.
  ///
  /// - Parameters:
  ///   - configuration: The camera, the audio and the options.
  ///   - file: The empty file.
  ///   - unflushedFrames: The greatest number of stored frames whose journal records are written
  ///     only when ``flush()`` is called. If the process is killed, these frames are lost.
  ///   - earlier: The remainder of the take's previous file. Nil for the first file.
  init(
    _ configuration: TakeConfiguration, into file: consuming MovieFile, unflushedFrames: Int = 0,
    after earlier: Remainder? = nil
  ) {
    self.configuration = configuration
    self.file = file
    self.unflushedFrames = unflushedFrames
    mode = configuration.mode
    timeline = TakeTimeline(
      configuration.makeAccount(), frameRate: mode.negotiatedFrameRate)
    delivery = configuration.input.delivery
    values = earlier?.values ?? PendingValues()
    earlierAudio = earlier?.audio
    limits = FileLimits(
      configuration.settings, audio: configuration.audio?.rates(configuration.audioCodec))
  }

  private var plan: VideoPipelinePlan { configuration.plan }

  // MARK: State

  /// The number of frames in the file so far.
  var storedCount: Int64 { timeline.storedCount }

  /// The account of the file's frames.
  var account: FrameAccount { timeline.account }

  /// The number of frames that the full queue has rejected so far.
  var refusedCount: Int64 { timeline.account.ledger.lostQueue }

  /// Whether nothing more is stored, because of a limit or an error.
  var isOver: Bool { limit != nil || failure != nil }

  /// The reason to end the take, if the file has reached a limit.
  var limitReason: StopReason? { limit?.reason }

  /// The reason to end the whole capture if the disk cannot store more, otherwise nil.
  var reasonToEndAll: StopReason? {
    if let failure { return failure.stopReason }
    return limit?.reason == .minFree ? .minFree : nil
  }

  /// Whether the next file of the take could begin with this frame.
  func canEnd(before frame: QueuedFrame) -> Bool {
    frame.observation.outcome == .taken && timeline.account.ledger.stored > 0 && !isOver
      && !timeline.account.clock.isPaused
      && (delivery.layout != .compressed(.h264) || frame.isKeyFrame)
  }

  /// The time in the file that the next frame would get, in microseconds.
  func time(of frame: QueuedFrame) -> Int64 { timeline.time(of: frame.observation) }

  /// The current progress of the recording.
  func progress(queueFill: Double) -> MovieFileOutput.Progress {
    MovieFileOutput.Progress(
      stored: storedCount, missing: timeline.account.ledger.dropped,
      duration: MediaTime(microseconds: timeline.endMicroseconds), queueFill: queueFill,
      bytes: byteCount, levels: configuration.audio?.feed.levels ?? [])
  }

  /// The audio and the metadata values of the closed file that continue in the next file.
  var remainder: Remainder {
    var values = values
    values.begin(afterFrames: storedCount)
    return Remainder(
      audio: audioTrack?.continuation(atMicroseconds: timeline.endMicroseconds), values: values)
  }

  // MARK: Frames

  /// Adds metadata values, which are stored with their frames.
  mutating func add(_ values: [PendingValue]) { self.values.add(values) }

  /// Marks a trigger with a chapter of the file.
  mutating func mark(_ trigger: CaptureTrigger) { markedTriggers.append(trigger) }

  /// Continues with another stream of the camera, of the same frames at another rate.
  mutating func startStream(frameRate: FrameRate) { nextFrameRate = frameRate }

  /// Stores a frame.
  ///
  /// If the frame was dropped before it reached the writer, only records its outcome.
  ///
  /// After an error, requests the end of the capture.
  ///
  /// - Returns: The outcome of the frame. Nil if a limit ended the take before this frame.
  @discardableResult
  mutating func store(_ frame: QueuedFrame) -> FrameOutcome? {
    guard limit == nil else { return nil }
    guard failure == nil else {
      // The write error may also affect the ledger of the file, so an error of this call is
      // ignored.
      try? record(frame.observation, frame.observation.outcome)
      return frame.observation.outcome
    }
    if let reason = limits.reason(
      against: frame, fileBytes: byteCount, frames: storedCount + leadInCount,
      seconds: Double(timeline.endMicroseconds) / 1_000_000)
    {
      limit = (reason, frame.observation)
      return nil
    }
    defer { if storedCount > 0 { file.dropReplaced() } }
    do throws(CallFailure) { return try enter(frame) } catch {
      fail(error)
      return .taken
    }
  }

  private mutating func fail(_ error: CallFailure) {
    failure = error
    configuration.control.stop(error.stopReason)
  }

  /// Stores a frame and records its outcome, or only records it.
  ///
  /// - Returns: The outcome of the frame.
  /// - Throws: `CallFailure` if the encoder or the file fails. The frame then counts as taken.
  private mutating func enter(_ frame: QueuedFrame) throws(CallFailure) -> FrameOutcome {
    var observation = frame.observation
    var outcome = observation.outcome
    if let frameRate = nextFrameRate.take() {
      timeline.restart(with: observation, frameRate: frameRate)
      observation.unnoted = 0
    }
    if outcome == .paused {
      timeline.pause(at: observation)
    } else if timeline.account.clock.isPaused {
      try resume(at: observation)
    }
    if outcome == .taken {
      do throws(CallFailure) { outcome = try take(frame) } catch {
        timeline.record(observation)
        throw error
      }
    }
    try record(observation, outcome)
    return outcome
  }

  /// Ends a pause, and continues with the audio from this frame on.
  private mutating func resume(at frame: FrameObservation) throws(CallFailure) {
    isInterrupted = true
    guard let time = timeline.resume(at: frame) else { return }
    let packets = try audioTrack?.resume(
      atMicroseconds: time, originMicroseconds: frame.microseconds)
    try writeAudio(packets ?? [])
  }

  /// Records the outcome of a frame in the frame account and in the file's ledger.
  private mutating func record(
    _ frame: FrameObservation, _ outcome: FrameOutcome
  ) throws(CallFailure) {
    var frame = frame
    frame.outcome = outcome
    timeline.record(frame)
    if movie == nil {
      early.append(frame)
    } else {
      try movie?.note(frame)
    }
  }

  private mutating func take(_ frame: QueuedFrame) throws(CallFailure) -> FrameOutcome {
    let observation = frame.observation
    if isInterrupted, delivery.layout == .compressed(.h264), !frame.isKeyFrame {
      return .unshowable
    }
    isInterrupted = false
    let isFirst = timeline.first == nil
    if isFirst { timeline.begin(with: observation) }
    let time = timeline.time(of: observation)
    // The pipeline is moved out of `self`. Swift would copy it for each frame if there were a
    // second reference to it.
    var pipeline =
      if let known = self.pipeline.take() { known } else { try makePipeline() }
    // The pipeline may contain frames that can still be stored, so it is kept after an error.
    defer { self.pipeline = pipeline }
    if let geometry = configuration.geometry {
      let factor = geometry.outputFactor(atMicroseconds: observation.microseconds)
      pipeline.zoom(to: factor)
      if plan.isCopy, movie != nil, aperture(ofFactor: factor) != cleanAperture {
        hasOtherZoom = true
      }
      // A copied frame keeps the whole image, and the clean aperture has one factor only.
      if plan.isCopy, let before = zoomFactor, before != factor {
        values.add([
          PendingValue(
            position: .frameTime(observation.microseconds), key: RecordingTags.zoomFactor,
            value: .number(factor))
        ])
      }
      zoomFactor = factor
    }
    let outcome = try pipeline.take(frame.bytes, at: time) {
      (bytes, sample, parameters) throws(CallFailure) in
      try write(bytes, sample, parameters)
    }
    // An H.264 frame before the first key frame cannot be decoded, so the pipeline does not take
    // it. The take begins with the key frame.
    guard outcome == .taken else {
      if isFirst { timeline.begin(with: nil) }
      return outcome
    }
    let audio = try audioTrack?.advance(toMicroseconds: time)
    try writeAudio(audio ?? [])
    byteCount = movie?.byteCount ?? 0
    timeline.advance(to: time)
    return .taken
  }

  private func makePipeline() throws(CallFailure) -> any VideoPipeline {
    try plan.makePipeline(for: delivery, frameRate: mode.negotiatedFrameRate)
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
  mutating func lead(in frames: [QueuedFrame], to first: FrameObservation) {
    timeline.begin(with: first)
    plannedLeadIn = frames.count
    do throws(CallFailure) {
      var pipeline = try makePipeline()
      for (index, frame) in frames.enumerated() {
        try pipeline.prime(frame.bytes, at: Int64(index - frames.count)) {
          (bytes, sample, parameters) throws(CallFailure) in
          try write(bytes, sample, parameters, isHidden: true)
        }
      }
      self.pipeline = pipeline
      byteCount = movie?.byteCount ?? 0
    } catch { fail(error) }
  }

  /// Writes the journal records of all frames stored so far.
  ///
  /// If the process is killed later, a recovery finds these frames.
  mutating func flush() {
    do throws(CallFailure) {
      try storeValues()
      try movie?.flush()
    } catch {
      // The first error is kept, since it causes the later ones.
      if failure == nil { fail(error) }
    }
  }

  // MARK: The file

  private static let videoTrack = 0
  private static let audioTrack = 1

  private mutating func write(
    _ bytes: UnsafeRawBufferPointer, _ sample: VideoSample, _ parameters: CodecParameters?,
    isHidden: Bool = false
  ) throws(CallFailure) {
    if movie == nil { try begin(bytes, sample, parameters) }
    try append(bytes, sample)
    timeline.didStore(sample, isHidden: isHidden)
    if isHidden { leadInCount += 1 } else { frameBytes += Int64(bytes.count) }
  }

  private mutating func append(
    _ bytes: UnsafeRawBufferPointer, _ sample: VideoSample
  ) throws(CallFailure) {
    let duration = sample.time < 0 ? 1 : timeline.periodMicroseconds
    try movie?.append(
      bytes, track: Self.videoTrack, ticks: sample.decodeTime,
      presentationOffset: sample.time &- sample.decodeTime, duration: duration,
      isKeyFrame: sample.isKeyFrame, isDroppable: sample.isDroppable)
  }

  /// Creates the file's header at the first frame, because the codec parameters are unknown before
  /// that frame.
  private mutating func begin(
    _ image: UnsafeRawBufferPointer, _ sample: VideoSample, _ parameters: CodecParameters?
  ) throws(CallFailure) {
    let path = file.file.path
    guard let parameters, let first = timeline.first else {
      throw CallFailure("begin", path, code: -22)
    }
    let (ticks, time) = (sample.decodeTime, sample.time)
    let packet = try Packet(
      copying: image, pts: time, dts: ticks, duration: 1, isKeyFrame: true)
    var index = MovieIndex(MovieContainer(recording: path), timescale: 1_000_000)
    index.tags = configuration.tags(
      first, leadIn: plannedLeadIn, frameRate: mode.negotiatedFrameRate, gaps: nil)
    var video = TrackMuxer.Format(parameters, in: index.container, timescale: 1_000_000)
    if let geometry = configuration.geometry {
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
    if let audio = configuration.audio {
      let track = try TakeAudioTrack(
        source: audio, codec: configuration.audioCodec, originMicroseconds: first.microseconds,
        after: earlierAudio)
      tracks.append(try track.head(of: path))
      audioTrack = consume track
    }
    movie = try FragmentedMovieWriter(
      file.file, index: index, tracks: tracks, layout: layout,
      // Reserved disk space would count as used, so the free space limit would be reached too early.
      reservesSpace: configuration.settings.minFreeDiskSpaceLimit == nil)
    for frame in early { try movie?.note(frame) }
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
    let frames = Int(min(mode.negotiatedFrameRate.doubleValue, 10_000) / 4)
    let blocks = configuration.audio.map {
      TakeAudioEncoder.packetsPerSecond(atRate: $0.sampleRate) / 4 + 8
    }
    var layout = FragmentedMovieWriter.Layout(
      fragmentTicks: 150_000, samplesPerFragment: frames + (blocks ?? 4),
      unflushedFrames: unflushedFrames)
    layout.isReordered = plan.isReordered
    return layout
  }

  private mutating func writeAudio(_ packets: [Packet]) throws(CallFailure) {
    for packet in packets {
      guard let time = packet.pts else { continue }
      let duration = packet.duration
      try packet.withBytes { (bytes) throws(CallFailure) in
        try movie?.append(
          bytes, track: Self.audioTrack, ticks: time, duration: duration, isKeyFrame: true)
      }
    }
  }

  /// Stores the metadata values of those frames that are stored already.
  ///
  /// Set `isEnd` after the last frame of the file.
  private mutating func storeValues(isEnd: Bool = false) throws(CallFailure) {
    guard !values.waiting.isEmpty, movie != nil else { return }
    let end: PendingValues.End =
      isEnd ? timeline.nextFileStart.map { .file($0) } ?? .take : .none
    // Reordered frames may still be stored between the last ones, so metadata values of the last 32
    // frames wait.
    let stored = values.take(
      times: timeline.storedMicroseconds, margin: plan.isReordered ? 32 : 0,
      clock: timeline.account.clock, end: end)
    guard let first = stored.first else { return }
    _ = try movie?.attach(TimedValue.encode(stored), ticks: first.ticks)
  }

  // MARK: The end

  /// Closes the frame account, stores the last samples, and closes the fragmented file.
  ///
  /// `next` is the first frame of the take's next file. Nil if this file is the last.
  mutating func close(_ end: CaptureEnd, before next: FrameObservation? = nil) {
    var end = end
    if let limit {
      end = CaptureEnd(stopReason: limit.reason)
      end.frames.next = limit.next
    }
    end.cost.writerThread = CaptureStatistics.threadTime() - startOfWriting
    timeline.close(end, before: next)
    // After an error, the remaining steps still run to store as much as possible. The frames stored
    // before stay playable.
    attempt { (writer: inout Self) throws(CallFailure) in
      var pipeline = writer.pipeline
      try pipeline?.finish { (bytes, sample, parameters) throws(CallFailure) in
        try writer.write(bytes, sample, parameters)
      }
    }
    attempt { (writer: inout Self) throws(CallFailure) in try writer.storeValues(isEnd: true) }
    if movie != nil {
      let duration = timeline.endLast(isReordered: plan.isReordered)
      movie?.endLast(ofTrack: Self.videoTrack, duration: duration)
      attempt { (writer: inout Self) throws(CallFailure) in
        let end = writer.timeline.endMicroseconds
        let audio = try writer.audioTrack?.finish(atMicroseconds: end)
        try writer.writeAudio(audio ?? [])
      }
      attempt { (writer: inout Self) throws(CallFailure) in try writer.movie?.finish() }
    }
    self.end = end
  }

  /// Runs a step at the end of the file, and keeps the first error.
  private mutating func attempt(_ step: (inout Self) throws(CallFailure) -> Void) {
    do throws(CallFailure) { try step(&self) } catch { failure = failure ?? error }
  }

  /// Converts the closed file to a plain movie, and creates its report.
  ///
  /// - Throws: `MediaError` if no frame was stored. The file is then removed.
  consuming func finish(
    _ verification: FrameRateVerification?
  ) throws(MediaError) -> RecordingReport {
    let end = end ?? CaptureEnd()
    if storedCount > 0 {
      let recorded = FinishedFile(
        configuration: configuration, mode: mode, timeline: timeline, video: video,
        audio: audioTrack?.account,
        audioSampleCount: audioTrack?.sampleCount ?? 0, leadInCount: leadInCount,
        cleanAperture: cleanAperture, hasOtherZoom: hasOtherZoom, markedTriggers: markedTriggers)
      let report = recorded.report(end, failure, verification, of: &file)
      // A file with frames is kept even if it is unreadable now, because it may become readable
      // later. An empty file is removed.
      if report.ledger.stored > 0 { return report }
    }
    let (configuration, failure, limit) = (configuration, failure, limit)
    file.discard()
    if let error = end.error { throw error }
    if let limit { throw MediaError(configuration.settings, limit.reason) }
    if failure == nil, [.signal, .stopped, .reconfigured].contains(end.stopReason) {
      throw MediaError(
        .cancelled, "\(configuration.settings.path) was stopped before its first frame",
        recovery: "record for longer")
    }
    throw failure.map(MediaError.init(recording:))
      ?? MediaError(
        .nothingStored,
        "\(configuration.input.device.address) delivered no frame that could be stored",
        recovery: "check the camera, or record for longer")
  }

  /// The encoding of the video, or nil before the first frame.
  private var video: RecordedVideo? {
    guard storedCount > 0, let pipeline else { return nil }
    let headers = pipeline.parameters.flatMap { H264Headers($0) }
    let seconds = Double(max(1, timeline.endMicroseconds)) / 1_000_000
    return RecordedVideo(
      codec: plan.codec, profile: headers?.profileName, level: headers?.levelName,
      bitRate: Int64(saturating: (Double(frameBytes) * 8 / seconds).rounded()),
      maximumBitRate: pipeline.maximumBitRate)
  }
}

/// Limits on the file size and the free disk space of a take.
///
/// The writer checks the limits before it stores a frame. The first frame beyond a limit ends the
/// take, so that frame and the later ones do not count as lost.
struct FileLimits {
  /// The data rate and the packet rate of the audio in the file, in bytes and packets per second.
  struct Audio {
    let bytesPerSecond: Int64
    let packetsPerSecond: Int64
  }

  private let path: String
  private let audio: Audio?
  private let maximumSize: Int64?
  private let minimumFree: Int64?
  private var nextLook = Int64.min
  private var freeBytes = Int64.max

  /// The fixed part of the size of the metadata in a finished file, in bytes.
  ///
  /// The size has another part of `bytesPerFrame` for each frame.
  ///
  /// The header and the tags are stored twice. For each frame, position, size and time are stored
  /// both in the fragment and in the index, and the ledger contains a record.
  private static let bytesPerFile: Int64 = 64 << 10
  private static let bytesPerFrame: Int64 = 96
  /// The size of the metadata for each audio packet, in bytes.
  private static let bytesPerPacket: Int64 = 40
  /// The greatest length of audio that may be stored after the start of the last frame, in seconds.
  ///
  /// It covers the duration of the last frame and the delay of a microphone.
  private static let lateAudio: Int64 = 2
  /// The interval between checks of the free disk space, in microseconds of capture time.
  private static let lookInterval: Int64 = 200_000

  init(_ settings: RecordingSettings, audio: Audio?) {
    self.audio = audio
    path = settings.path
    maximumSize = settings.maxRecordedFileSize
    minimumFree = settings.minFreeDiskSpaceLimit
  }

  /// The reason to end the take before this frame is stored, or nil if no limit is reached.
  mutating func reason(
    against frame: QueuedFrame, fileBytes: Int64, frames: Int64, seconds: Double
  ) -> StopReason? {
    let size = fileBytes + Int64(frame.bytes.count)
    var finished = size + Self.bytesPerFile + (frames + 1) * Self.bytesPerFrame
    if let audio {
      let packets = (Int64(saturating: seconds) + Self.lateAudio) &* audio.packetsPerSecond
      finished += Self.lateAudio * audio.bytesPerSecond + packets &* Self.bytesPerPacket
    }
    if let maximumSize, finished > maximumSize { return .maxSize }
    guard let minimumFree else { return nil }
    if frame.observation.microseconds >= nextLook {
      nextLook = frame.observation.microseconds + Self.lookInterval
      // If the free space is unknown because statvfs fails, the take continues.
      freeBytes = FreeSpace.bytes(at: path) ?? .max
    }
    return freeBytes < minimumFree ? .minFree : nil
  }
}

extension CallFailure {
  /// The reason to end a capture after this error.
  var stopReason: StopReason { kind == .diskFull ? .diskFull : .error }
}

extension MediaError {
  /// Creates the error for a limit that allows not even a single frame.
  fileprivate init(_ settings: RecordingSettings, _ reason: StopReason) {
    self.init(
      .nothingStored,
      reason == .maxSize
        ? "the first frame of \(settings.path) does not fit in the maximum file size of "
          + "\(settings.maxRecordedFileSize ?? 0) bytes"
        : "the disk of \(settings.path) has less free space than required",
      recovery: reason == .maxSize
        ? Recovery("allow a larger file", .change(.maximumFileSize))
        : Recovery("free some space, or require less", .change(.minimumFreeSpace)))
  }
}
