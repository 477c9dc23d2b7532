// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankCapture
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRaster

/// The search of a movie for objects.
///
/// Several threads search whole frames, each frame by itself. The calling thread decodes the frames,
/// and follows the objects in the order of the frames, so that the result does not depend on the
/// number of threads. One thread at a time uses an instance.
final class MovieObjectSearch {
  /// The limits of a search.
  struct Limits {
    /// The number of frames that must agree on a text; nil for one frame if the text is certain.
    var requiredAgreement: Int?
    /// The frames to search; nil for all.
    var frames: Range<Int>?
    /// The greatest number of frames per second that are searched as a whole; nil for all.
    var maximumPassRate: FrameRate?
    /// The greatest fraction of a processor, up to 1; nil for no limit.
    var maximumProcessorShare: Double?
    /// The number of threads; nil for one for each processor, or one if the fraction is limited.
    var threadCount: Int?
  }

  /// The number of frames in the movie.
  var frameCount: Int { frames.entries.count }
  /// The index of the frame that ``next(isCancelled:)`` returns next.
  private var nextIndex: Int
  private let readers: ObjectReaders
  private let limits: Limits
  private let frames: FrameTable
  private let end: Int
  private var reader: FrameReader
  private var extractor = LumaExtractor()
  private let pool: FrameSearchPool
  private var schedule: MovieSchedule
  private var tracker: MovieTracker
  private var agreement: TextAgreement
  private var waiting: [(frame: DecodedFrame, plan: MovieSchedule.Plan)] = []
  private var lastDecoded: DecodedFrame?
  private var decodedIndex: Int
  private var budget: ProcessorBudget
  private var failure: MediaError?
  private var isFinished = false

  /// Opens the video of an asset, and starts the threads.
  ///
  /// - Throws: `MediaError` as `FrameReader` does, `.outsideSource` for frames that the movie does not
  ///   have, or `.outOfMemory`.
  init(_ asset: Asset, _ readers: ObjectReaders, _ limits: Limits) throws(MediaError) {
    guard let track = asset.videoTrack else {
      throw MediaError(.invalidData, "\(asset.path) contains no video")
    }
    let all = track.frames.entries.indices
    let chosen = limits.frames ?? all
    guard chosen.clamped(to: all) == chosen else {
      throw MediaError(
        .outsideSource, "\(asset.path) has no frames \(chosen.lowerBound) to \(chosen.upperBound)",
        recovery: "choose from its \(track.frameCount) frames, counted from 0")
    }
    let isLimited = limits.maximumProcessorShare != nil
    // The time of further threads of the decoder would not be counted.
    let reader = try FrameReader(asset, wanted: nil, threadCount: isLimited ? 1 : 0)
    pool = try FrameSearchPool(readers, threadCount: limits.threadCount ?? (isLimited ? 1 : nil))
    // The threads overlap, so that a whole processor is also a limit.
    let share = limits.maximumProcessorShare.map { max(0.01, min(0.99, $0)) }
    budget = ProcessorBudget(share: share ?? 1)
    self.reader = consume reader
    (self.readers, self.limits) = (readers, limits)
    frames = track.frames
    (nextIndex, decodedIndex, end) = (chosen.lowerBound, chosen.lowerBound, chosen.upperBound)
    schedule = MovieSchedule(
      findsCodes: readers.codes != nil, findsFaces: readers.faces != nil,
      rate: limits.maximumPassRate)
    tracker = MovieTracker(readers)
    agreement = TextAgreement(required: max(1, limits.requiredAgreement ?? 2))
  }

  deinit { pool.stop() }

  /// Waits for the next frame.
  ///
  /// - Parameter isCancelled: Whether to decode no more frames. The frames that are already decoded
  ///   are still returned.
  /// - Returns: The objects of the frame; nil after the last one.
  /// - Throws: `MediaError` as `FrameReader` does, after the frames before the one that failed.
  func next(
    isCancelled: () -> Bool = { false }
  ) throws(MediaError) -> MetadataObjectFrame? {
    while true {
      if let objects = agreement.next(isEnd: isFinished) {
        nextIndex += 1
        return MetadataObjectFrame(objects)
      }
      guard !isFinished else {
        guard let failure else { return nil }
        self.failure = nil
        throw failure
      }
      if frameCount == 1 { return try onlyFrame() }
      if isCancelled() { decodedIndex = end }
      let start = (MonotonicClock.microseconds(), ProcessorBudget.threadMicroseconds())
      decode()
      let used = follow() + ProcessorBudget.threadMicroseconds() - start.1
      budget.spend(from: start.0, used: used)
      let now = MonotonicClock.microseconds()
      let rest = budget.rest(at: now)
      if rest > 0, !isCancelled() { MonotonicClock.sleep(untilMicroseconds: now + rest) }
    }
  }

  /// Searches the frame of a movie that has no other frame to confirm a text.
  private func onlyFrame() throws(MediaError) -> MetadataObjectFrame? {
    isFinished = true
    guard nextIndex < end else { return nil }
    let frame = try decoded(nextIndex)
    nextIndex += 1
    return withExtendedLifetime(frame) {
      MetadataObjectFrame(
        objects: readers.objects(in: frame.luma, at: frame.time, duration: frame.duration),
        presentationTimeStamp: frame.time, frameIndex: Int64(frame.index), streamStart: .zero,
        isSearched: true)
    }
  }

  /// Decodes frames until enough are waiting.
  private func decode() {
    while decodedIndex < end, failure == nil, waiting.count < capacity {
      do throws(MediaError) {
        let frame = try decoded(decodedIndex)
        decodedIndex += 1
        let plan = schedule.plan(for: frame)
        waiting.append((frame, plan))
        if let search = plan.search { pool.submit(frame, search) }
        lastDecoded = frame
      } catch {
        // The frames before this one are still reported.
        failure = error
      }
    }
  }

  /// The greatest number of waiting frames.
  private var capacity: Int {
    // No search may run while this thread rests.
    guard limits.maximumProcessorShare == nil else { return 1 }
    let luma = lastDecoded?.luma
    return pool.capacity(bytesPerFrame: (luma?.height ?? 0) * (luma?.bytesPerRow ?? 0))
  }

  private func decoded(_ index: Int) throws(MediaError) -> DecodedFrame {
    let frame = try reader.mediaFrame(at: index)
    let time = try frames.time(ofFrame: Int64(index))
    let end = try frames.time(ofFrame: Int64(index + 1))
    do throws(CallFailure) {
      let (luma, owner) = try extractor.luma(of: frame)
      return DecodedFrame(
        index: index, luma: luma, time: time,
        duration: MediaTime(exactly: end.seconds - time.seconds) ?? .zero,
        changedArea: lastDecoded.map { luma.area(changedSince: $0.luma) }, owner: owner)
    } catch { throw MediaError(reading: error) }
  }

  /// Follows the objects into the next frame.
  ///
  /// - Returns: The processor time of the thread that searched the frame, in microseconds.
  private func follow() -> Int64 {
    guard !waiting.isEmpty else {
      isFinished = true
      for objects in tracker.finish() { confirm(objects) }
      return 0
    }
    let (frame, plan) = waiting.removeFirst()
    let found = plan.search == nil ? FrameSearch.Found() : pool.found(inFrame: frame.index)
    // A search of a part of the frame finds nothing in the other parts, which have not changed.
    let isPart = plan.search?.codeArea.map { $0 != frame.luma.area } ?? false
    let oldest = tracker.add(
      frame, found, isSearched: plan.isSearched, unchangedOutside: isPart ? frame.changedArea : nil)
    if let oldest { confirm(oldest) }
    return found.used
  }

  /// Counts the texts of a frame that was followed in both directions.
  private func confirm(_ objects: MovieFrameObjects) {
    let (agreement, codes, luma) = (agreement, readers.codes, objects.frame.luma)
    self.agreement.add(objects) { code in
      guard limits.requiredAgreement == nil, !agreement.isConfirmed(code.key) else { return false }
      return code.isCertain || codes?.isConfirmed(code, in: luma) == true
    }
  }
}

extension MetadataObjectFrame {
  fileprivate init(_ found: MovieFrameObjects) {
    let frame = found.frame
    self.init(
      objects: MetadataObject.all(
        found.codes, found.faces, in: frame.luma, frame.time, frame.duration),
      presentationTimeStamp: frame.time, frameIndex: Int64(frame.index), streamStart: .zero,
      isSearched: found.isSearched)
  }
}
