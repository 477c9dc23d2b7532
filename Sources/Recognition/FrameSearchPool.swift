// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRaster
import Synchronization

/// A decoded frame of a movie, whose luma any thread may read.
struct DecodedFrame: Sendable {
  /// The index of the frame in the movie.
  let index: Int
  let luma: LumaImage
  let time: MediaTime
  let duration: MediaTime
  /// The part in which the luma differs from that of the frame before; nil for the first frame.
  let changedArea: PixelRect?
  /// The frame to which the memory of `luma` belongs.
  let owner: MediaFrame

  /// Whether the luma is that of the frame before.
  var isRepeated: Bool { changedArea?.isEmpty ?? false }
  var microseconds: Int64 { time.wholeNanoseconds / 1_000 }
}

/// The search of one frame, which does not depend on the searches of other frames.
struct FrameSearch: Sendable {
  /// The part of the frame in which codes are searched for; nil for none.
  var codeArea: PixelRect?
  /// The part of the frame in which faces are searched for; nil for none.
  var faceArea: PixelRect?
  /// The searches for faces in that part.
  var facePasses: [FaceReader.Pass] = []

  /// The objects that a search found; nil for a kind of object that was not searched for.
  struct Found: Sendable {
    var codes: [DetectedCode]?
    var faces: [DetectedFace]?
    /// The processor time of the search in microseconds.
    var used: Int64 = 0
  }
}

/// Searches whole frames on several threads.
///
/// The results do not depend on the number of threads. One thread at a time uses the pool.
final class FrameSearchPool: Sendable {
  private struct State {
    var jobs: [(frame: DecodedFrame, search: FrameSearch)] = []
    var results: [Int: FrameSearch.Found] = [:]
    var isStopped = false
  }

  /// The greatest number of frames that wait, for each thread.
  private static let framesPerThread = 3
  /// The greatest number of bytes of these frames, if there are more frames than threads.
  private static let maximumBytes = 512 << 20
  /// The greatest number of threads.
  static let maximumThreads = 16

  private let codes: CodeReader?
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)
  private let done = DispatchSemaphore(value: 0)
  private let threadCount: Int

  /// Starts the threads.
  ///
  /// - Parameters:
  ///   - readers: The readers of the objects to find.
  ///   - threadCount: The number of threads; nil for one for each processor.
  /// - Throws: `MediaError` with `.outOfMemory`.
  init(_ readers: ObjectReaders, threadCount: Int? = nil) throws(MediaError) {
    codes = readers.codes
    self.threadCount = max(1, min(Self.maximumThreads, threadCount ?? Processors.count))
    do throws(MediaError) {
      for _ in 0..<self.threadCount {
        let faces = try readers.anotherFaceReader()
        try BlockingThread.started { [self] in run(faces) }.detach()
      }
    } catch {
      stop()
      throw error
    }
  }

  /// Ends the threads, each after its current frame.
  func stop() {
    state.withLock { $0.isStopped = true }
    for _ in 0..<threadCount { work.signal() }
  }

  /// Returns the number of frames that may wait to be searched or followed, so that no thread is idle.
  func capacity(bytesPerFrame: Int) -> Int {
    let count = Self.framesPerThread * threadCount
    return max(threadCount, min(count, Self.maximumBytes / max(1, bytesPerFrame)))
  }

  /// Adds a frame to search.
  func submit(_ frame: DecodedFrame, _ search: FrameSearch) {
    state.withLock { $0.jobs.append((frame, search)) }
    work.signal()
  }

  /// Waits for the search of a frame, and returns what it found.
  ///
  /// Called once for each submitted frame.
  func found(inFrame index: Int) -> FrameSearch.Found {
    while true {
      if let found = state.withLock({ $0.results.removeValue(forKey: index) }) { return found }
      done.wait()
    }
  }

  // MARK: - The threads

  private func run(_ faces: FaceReader?) {
    while true {
      work.wait()
      let job = state.withLock { state in
        state.isStopped || state.jobs.isEmpty ? nil : state.jobs.removeFirst()
      }
      guard let (frame, search) = job else { return }
      let luma = frame.luma
      let start = ProcessorBudget.threadMicroseconds()
      var found = withExtendedLifetime(frame) {
        FrameSearch.Found(
          codes: search.codeArea.flatMap { area in
            codes.map { codes in luma.search(area) { codes.readTwice($0) } }
          },
          faces: search.faceArea.flatMap { area in
            faces.map { faces in
              DetectedFace.distinct(
                search.facePasses.flatMap { faces.find(in: luma, $0, area: area) })
            }
          })
      }
      found.used = ProcessorBudget.threadMicroseconds() - start
      state.withLock { [found] in $0.results[frame.index] = found }
      done.signal()
    }
  }
}
