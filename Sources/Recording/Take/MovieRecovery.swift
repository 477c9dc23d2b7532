// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
public import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat

/// Recovers recordings that a crash or a power failure left unfinished.
///
/// ```swift
/// let report = try MovieRecovery.recover("take.mov")
/// print(report.frameCount, report.lostFrameCount)
/// ```
public enum MovieRecovery {
  /// Converts an unfinished recording to a plain (unfragmented) movie in place, with its ledger.
  ///
  /// No step loses data. Bytes that are not a complete sample stay in the file, outside the index.
  /// A plain movie stays unchanged. The call blocks.
  ///
  /// - Parameter path: The path of the file.
  /// - Returns: The recovered and lost frames.
  /// - Throws: `MediaError` with `.fileNotFound`, `.noPermission`, `.beingRecorded`; `.invalidData`
  ///   for a file that is not a recording of this library; `.nothingToRecover` for a recording
  ///   without a complete frame; `.diskFull` or `.writeFailed`. After an error the file is
  ///   unchanged, with one exception: if it is unreadable and has no complete frame, it becomes an
  ///   empty movie.
  public static func recover(_ path: String) throws(MediaError) -> RecoveryReport {
    do {
      try check(path)
      let file = try MovieBoxes(opening: path)
      // Between opening and locking, another recording may have replaced the file. The lock would
      // then be on the old file. The path is therefore checked again: it must still lead to the
      // locked file.
      guard FileLock.take(file.openFile.descriptor), file.openFile.hasItsName else {
        throw MediaError(
          .beingRecorded, "\(path) is still being recorded", recovery: "stop the recording first")
      }
      return try recover(path, file)
    } catch let error as MediaError {
      throw error
    } catch let error as CallFailure {
      throw Self.error(error)
    } catch {
      throw MediaError(.writeFailed, "\(path): \(error)", recovery: "check the disk")
    }
  }

  /// Converts an error of libav or the system to a `MediaError`.
  private static func error(_ error: CallFailure) -> MediaError {
    switch error.kind {
    case .diskFull, .transferFailed: MediaError(recording: error)
    default: MediaError(error, at: stage)
    }
  }

  private static let stage = CallStage(
    [
      .notFound: .init(.fileNotFound, "check the name"),
      .noPermission: .init(.noPermission, "check its owner and its mode"),
    ], other: .init(.invalidData, "copy the file again: it was not changed"))

  /// Checks that the path is a regular file that this user may modify.
  private static func check(_ path: String) throws(MediaError) {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else {
      let reason = errno
      throw MediaError(
        reason == EACCES ? .noPermission : .fileNotFound,
        "\(path): \(String(cString: strerror(reason)))", recovery: "check the name")
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw invalid(path, "is not a regular file")
    }
    guard access(path.systemPath, R_OK | W_OK) == 0 else {
      throw MediaError(
        .noPermission, "cannot change \(path): permission denied",
        recovery: "check its owner and its mode")
    }
  }

  private static func invalid(_ path: String, _ what: String) -> MediaError {
    MediaError(.invalidData, "\(path) \(what)", recovery: "copy the file again: it was not changed")
  }

  private static func recover(
    _ path: String, _ file: borrowing MovieBoxes
  ) throws -> RecoveryReport {
    let boxes = file.boxes()
    guard let head = boxes.first(where: { $0.type == BoxType.movie }),
      let size = Int(exactly: head.byteCount), size < 1 << 30
    else { throw invalid(path, "contains no movie header") }
    let inside = Box.list(in: file.file.read(size, at: head.start), from: 8, to: size)
    guard inside.contains(where: { $0.type == BoxType.extends }) else {
      guard inside.contains(where: { $0.type == BoxType.track }) else {
        throw nothing(path)
      }
      // The header lists no fragments, so the file is already a plain movie. The movie counts as
      // intact if it has a complete `mdat` box. Data after this box is ignored.
      guard boxes.contains(where: { $0.type == BoxType.media }) else {
        throw invalid(path, "is truncated and not a fragmented recording")
      }
      return try plain(file.openFile)
    }
    let repair = MovieRepair(file, from: head.end, leadIn: leadInCount(file.openFile))
    guard !repair.fragments.isEmpty else {
      guard boxes.contains(where: { $0.type == BoxType.fragment }) else { throw nothing(path) }
      throw invalid(path, "has fragments from another program")
    }
    var replaced: [MovieRepair.Replaced] = []
    guard repair.frameCount > 0 else {
      guard !RecordedMovie.canOpen(file.openFile) else { throw nothing(path) }
      // No frame can be recovered and the file cannot be opened, for example because a fragment's
      // header was written only in part. The repair makes the file an empty movie that can be
      // opened.
      try repair.write(to: file, replaced: &replaced)
      throw nothing(path, isRepaired: true)
    }
    guard head.end < 1 << 30, canOpen(file.file.read(Int(head.end), at: 0)) else {
      throw invalid(path, "has a damaged header")
    }
    let byteCount = file.byteCount
    do {
      try repair.write(to: file, replaced: &replaced)
      return try finish(file.openFile, repair)
    } catch {
      // The last step replaces the original `moov` box. If this box is still in place, only the
      // repair's changes must be undone to restore the original file.
      guard file.box(at: head.start)?.type == BoxType.movie else { throw error }
      try MovieRepair.undo(replaced, in: file, byteCount: byteCount)
      throw error
    }
  }

  /// The number of hidden lead-in frames, from the file's tags.
  ///
  /// The ledger does not contain the lead-in frames.
  private static func leadInCount(_ file: OpenFile) -> Int {
    guard let text = try? Demuxer(reopening: file, probes: false).metadata[RecordingTags.recording],
      let count = RecordingTags.Recording(text)?.leadIn
    else { return 0 }
    // The tags may be damaged, so the number of lead-in frames is limited. A real lead-in begins at
    // the last key frame before the clip and is far shorter than this limit.
    return Int(max(0, min(count, 1 << 20)))
  }

  /// Whether libavformat can open the header alone, without the fragments that a crash may have
  /// torn.
  private static func canOpen(_ head: [UInt8]) -> Bool {
    // Without a temporary file, the header cannot be tested. It then counts as readable, so that
    // the repair continues. The repair does no harm even if the header is damaged.
    guard let file = tmpfile() else { return true }
    defer { fclose(file) }
    guard fwrite(head, 1, head.count, file) == head.count, fflush(file) == 0 else { return true }
    let descriptor = dup(fileno(file))
    return descriptor < 0
      || RecordedMovie.canOpen(OpenFile(adopting: descriptor, path: "the head of the file"))
  }

  private static func nothing(_ path: String, isRepaired: Bool = false) -> MediaError {
    let replaced = MovieFile.replaced(by: path)
    return MediaError(
      .nothingToRecover,
      "\(path) was truncated before its first frame"
        + (isRepaired ? "; it is now an empty movie" : ""),
      recovery: replaced.map { "use the file that it should have replaced: \($0)" }
        ?? "record again: the file has no frames to recover")
  }

  /// The report of a file that already is a plain (unfragmented) movie.
  private static func plain(_ file: OpenFile) throws -> RecoveryReport {
    let path = file.path
    var report = RecoveryReport(path: path, wasIntact: true)
    var source = try Demuxer(reopening: file)
    let metadata = source.metadata
    guard let track = source.tracks.first(where: { $0.kind == .video }) else {
      guard source.tracks.contains(where: { $0.kind == .audio }) else {
        throw invalid(path, "contains neither video nor audio")
      }
      report.duration = MediaTime(microseconds: source.statedMicroseconds ?? 0)
      report.isPlayable = true
      return report
    }
    let locations = try source.packetIndices()[track.index]?.locations ?? []
    report.frameCount = Int64(locations.count)
    report.frameCountBefore = report.frameCount
    report.duration = MediaTime(microseconds: source.statedMicroseconds ?? 0)
    if let tag = metadata[RecordingTags.recording].flatMap(RecordingTags.Recording.init) {
      (report.device, report.mode) = (tag.device, tag.mode)
    }
    report.isPlayable = report.frameCount > 0
    return report
  }

  /// Finishes the repaired file and rebuilds its ledger.
  private static func finish(_ file: OpenFile, _ repair: MovieRepair) throws -> RecoveryReport {
    let path = file.path
    let demuxer = try Demuxer(reopening: file, probes: false)
    var metadata = demuxer.metadata
    for key in ["major_brand", "minor_version", "compatible_brands", "encoder"] {
      metadata[key] = nil
    }
    guard demuxer.tracks.first?.kind != .audio else {
      return try finishAudio(file, repair, metadata)
    }
    var tag = metadata[RecordingTags.recording].flatMap(RecordingTags.Recording.init)
    let rate = metadata[RecordingTags.captureFrameRate].flatMap { try? FrameRate(parsing: $0) }
    var report = RecoveryReport(path: path, wasIntact: false)
    report.frameCountBefore = repair.framesBefore
    report.lostFrameCount = repair.brokenFrames
    (report.device, report.mode) = (tag?.device, tag?.mode)

    let samples = repair.fragments.flatMap(\.samples)
    // A clip from an H.264 camera may start with lead-in frames, which are hidden and last one tick
    // each. They do not count as frames of the clip.
    let shown = samples.filter { $0.track == 0 }.dropFirst(repair.leadIn)
    let leadIn = Int64(repair.leadIn)
    guard let last = shown.last else { throw invalid(path, "contains no video") }
    // With reordered frames, decoding begins before time zero.
    let start = leadIn &+ (samples.first { $0.track == 0 }?.presentationOffset ?? 0)
    let times = shown.map { $0.ticks &+ $0.presentationOffset &- start }.sorted()
    report.duration = MediaTime(microseconds: (times.last ?? 0) &+ last.duration)
    report.intervals = FrameIntervals(microseconds: times)
    if let rate, let tag, !repair.frames.isEmpty {
      rebuildLedger(repair, rate, tag, times: times, &report)
    }
    tag?.gaps = report.gaps.filter { $0.afterIndex >= 0 }.map {
      RecordingTags.Recording.Gap(afterIndex: $0.afterIndex, count: $0.count)
    }
    metadata[RecordingTags.recording] = tag?.text
    let ends = (0...(samples.map(\.track).max() ?? 0)).map { track in
      track == 0 ? .at(report.duration.wholeMicroseconds) : end(of: samples, track: track)
    }
    let instants = [tag?.triggerMicroseconds].compactMap(\.self)
    let counts = try RecordedMovie(file, after: repair).finish(
      ends: ends, metadata: metadata,
      chapters: RecordingTags.chapters(
        ofTriggersAt: instants, frameRate: rate, end: report.duration.wholeMicroseconds))
    report.frameCount = (counts.first ?? 0) - leadIn
    report.isPlayable = report.frameCount == Int64(shown.count) && RecordedMovie.canOpen(file)
    return report
  }

  /// Finishes the repaired file of audio alone.
  private static func finishAudio(
    _ file: OpenFile, _ repair: MovieRepair, _ metadata: [String: String]
  ) throws -> RecoveryReport {
    var report = RecoveryReport(path: file.path, wasIntact: false)
    let samples = repair.fragments.flatMap(\.samples)
    let ends = (0...(samples.map(\.track).max() ?? 0)).map { end(of: samples, track: $0) }
    let counts = try RecordedMovie(file, after: repair).finish(ends: ends, metadata: metadata)
    let recovered = try Demuxer(reopening: file)
    report.duration = MediaTime(microseconds: recovered.statedMicroseconds ?? 0)
    report.lostFrameCount = Int64(repair.droppedAudio.count)
    // The tracks of a file are parallel, so the longest loss counts.
    report.lostDuration =
      recovered.tracks.map { track in
        let dropped = repair.droppedAudio.filter { $0.track == track.index }
        let ticks = dropped.reduce(0 as Int64) { $0 &+ $1.duration }
        return (try? MediaTime(Rational(Int128(ticks)) * track.timeBase)) ?? .zero
      }.max() ?? .zero
    report.isPlayable =
      counts.reduce(0, +) == Int64(samples.count) && RecordedMovie.canOpen(file)
    return report
  }

  /// The end of a track other than the first one, from the track's recorded samples.
  private static func end(
    of samples: [StoredSample], track: Int
  ) -> MovieFinalizer.TrackEnd {
    let samples = samples.filter { $0.track == track }
    guard let first = samples.first, let last = samples.last else { return .afterFirst(0) }
    return .afterFirst(last.ticks &+ last.duration &- first.ticks)
  }

  /// The times of the taken frames in microseconds since the first taken frame, without the pauses.
  private static func takeTimes(_ frames: [FrameObservation]) -> [Int64] {
    var clock = PausableClock()
    var times: [Int64] = []
    for frame in frames {
      guard frame.outcome != .paused else {
        clock.pause(atMicroseconds: frame.microseconds)
        continue
      }
      clock.resume(atMicroseconds: frame.microseconds)
      guard frame.outcome == .taken else { continue }
      clock.begin(atMicroseconds: frame.microseconds)
      times.append(clock.time(ofMicroseconds: frame.microseconds))
    }
    return times
  }

  /// Rebuilds the ledger from the frame records in the file.
  private static func rebuildLedger(
    _ repair: MovieRepair, _ rate: FrameRate, _ tag: RecordingTags.Recording, times stored: [Int64],
    _ report: inout RecoveryReport
  ) {
    let switchedOn = tag.switchedOnUs
    var account = FrameAccount(
      frameRate: rate, trustsCounter: tag.countsExactly ?? false,
      beginsWithStream: switchedOn != nil && tag.beginsWithStream ?? false
    ) { switchedOn ?? 0 }
    for frame in repair.frames { account.record(frame) }
    account.close(FrameAccount.End())
    var kept = RecordingReport(requestedFrameRate: rate, negotiatedFrameRate: rate)
    kept.ledger = account.ledger
    kept.gaps = account.gaps
    kept.duration = report.duration
    let times = takeTimes(repair.frames)
    let frameCount = Int64(stored.count)
    if repair.isReordered {
      kept.keep(Set(stored), of: times)
    } else {
      kept.keep(first: frameCount, of: times)
    }
    report.ledger = kept.ledger
    report.gaps = kept.gaps
    report.measuredFrameRate = account.measuredFrameRate
    let period = Int64(saturating: rate.frameDuration.doubleValue * 1e9)
    if report.lostFrameCount > 0 {
      let end = times.last?.saturatingMultiplied(by: 1_000) ?? 0
      let known = Int64(times.count) > frameCount ? end &- kept.duration.wholeNanoseconds : 0
      report.lostDuration = MediaTime(nanoseconds: max(0, known) &+ period)
      report.duration = kept.duration
    }
  }
}

/// The result of recovering an unfinished recording.
public struct RecoveryReport: Hashable, Sendable, Codable {
  /// The path of the recovered file.
  public let path: String
  /// Whether the file already was a plain (unfragmented) movie and was therefore not changed.
  public let wasIntact: Bool
  /// The path or the ID of the recorded device, or nil if the file does not contain it.
  public package(set) var device: String?
  /// The ID of the capture format, as in `CaptureFormat.id`, or nil if the file does not contain
  /// it.
  public package(set) var mode: String?
  /// The number of frames in the file after the recovery.
  public package(set) var frameCount: Int64 = 0
  /// The number of frames that players could read before the recovery.
  public package(set) var frameCountBefore: Int64 = 0
  /// The number of lost frames that had partly reached the file; in a file of audio alone, the number of
  /// its lost packets.
  ///
  /// Frames that were still in the memory of the killed program left no trace and are not counted.
  public package(set) var lostFrameCount: Int64 = 0
  /// The duration of the lost frames or packets.
  public package(set) var lostDuration = MediaTime.zero
  /// The duration of the file after the recovery.
  public package(set) var duration = MediaTime.zero
  /// The counts of frame periods by outcome, such as stored or lost, rebuilt from the file.
  ///
  /// Nil for an intact file.
  public package(set) var ledger: FrameLedger?
  /// The gaps in order.
  ///
  /// A gap consists of consecutive missing frames.
  public package(set) var gaps: [FrameGap] = []
  /// The intervals between the frames in the file.
  ///
  /// Nil for fewer than two frames.
  public package(set) var intervals: FrameIntervals?
  /// The measured capture rate.
  ///
  /// Nil for fewer than two frames and for an intact file.
  public package(set) var measuredFrameRate: Rational?
  /// Whether the file was read back successfully and is playable.
  public package(set) var isPlayable = false

  private enum CodingKeys: String, CodingKey {
    case path = "file"
    case wasIntact = "wasPlain"
    case lostFrameCount = "framesLost"
    case lostDuration = "lost"
    case measuredFrameRate = "measuredFps"
    case isPlayable = "playable"
    case device, mode, frameCount, frameCountBefore, duration, ledger, gaps, intervals
  }

  package init(path: String, wasIntact: Bool) {
    self.path = path
    self.wasIntact = wasIntact
  }
}
