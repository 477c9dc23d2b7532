// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import OvercrankMediaCore
import Synchronization

/// Writes frames from the program to a movie file.
///
/// The file is written in fragments, so it is playable while it grows, even if the process is
/// killed. `finishWriting()` converts it to a plain movie.
///
/// ```swift
/// let writer = AssetWriter(path: "a.mov")
/// let input = try AssetWriterInput(formatDescription: format, frameRate: FrameRate(240))
/// try writer.add(input)
/// try writer.startWriting()
/// try writer.startSession(atSourceTime: .zero)
/// for sample in samples { try input.append(sample) }
/// try writer.finishWriting()
/// ```
///
/// Call `finishWriting()` or ``cancelWriting()`` at the end. If the writer is released before that,
/// it removes its file.
///
/// All calls may come from any thread. The calls that create and finish the file block on disk I/O.
public final class AssetWriter: Sendable {
  /// The state of the writer.
  public enum Status: Hashable, Sendable {
    /// Writing has not started.
    case unknown
    /// The writer accepts frames.
    case writing
    /// The file is complete.
    case completed
    /// An error occurred, see ``AssetWriter/error``.
    ///
    /// The file contains the frames stored before the error. The writer rejects further frames.
    case failed
    /// Writing was cancelled and the file removed.
    case cancelled
  }

  private struct State {
    var input: AssetWriterInput?
    var store: FrameStore?
  }

  /// The path of the file.
  public let path: String
  private let overwrites: Bool
  private let metadata: [String: String]
  private let state = Mutex(State())

  /// Prepares to write a file.
  ///
  /// Does not touch the disk.
  ///
  /// - Parameters:
  ///   - path: The path of the file. The container is MP4 for the extensions `.mp4` and `.m4v`,
  ///     otherwise MOV.
  ///   - overwrites: Whether an existing file may be replaced.
  ///   - metadata: Tags of the file, such as `title`.
  public init(path: String, overwrites: Bool = false, metadata: [String: String] = [:]) {
    self.path = path
    self.overwrites = overwrites
    self.metadata = metadata
  }

  deinit { cancelWriting() }

  /// The state of the writer.
  public var status: Status { store?.status ?? .unknown }

  /// The error that stopped the writer, or nil.
  public var error: MediaError? { store?.error }

  /// The number of frames stored so far.
  public var storedFrameCount: Int64 { store?.storedCount ?? 0 }

  private var store: FrameStore? { state.withLock { $0.store } }

  /// Adds the video input.
  ///
  /// Call this before ``startWriting()``.
  ///
  /// - Throws: `MediaError` with `.wrongState` if writing has started, the writer already has an
  ///   input, or the input belongs to another writer.
  public func add(_ input: AssetWriterInput) throws(MediaError) {
    let isTaken = state.withLock { state in
      guard state.store == nil, state.input == nil, input.join(self) else { return false }
      state.input = input
      return true
    }
    guard isTaken else {
      throw .wrongState("\(path) accepts one unused input before writing starts")
    }
  }

  /// Creates the file.
  ///
  /// Blocks.
  ///
  /// - Throws: `MediaError` if the file cannot be created; `.wrongState` without an input, or if
  ///   writing has started.
  public func startWriting() throws(MediaError) {
    try state.withLock { (state) throws(MediaError) in
      guard state.store == nil, let input = state.input else {
        throw .wrongState("\(path) has no input, or writing has already started")
      }
      state.store = try FrameStore(
        creating: path, overwrites: overwrites, metadata: metadata, for: input)
    }
  }

  /// Sets the source time from which frames are stored.
  ///
  /// Earlier frames are ignored. Time zero of the file is the first stored frame.
  ///
  /// - Throws: `MediaError` with `.wrongState` if writing has not started, or if the session has
  ///   already started.
  public func startSession(atSourceTime time: MediaTime) throws(MediaError) {
    guard store?.start(at: time) == true else {
      throw .wrongState("\(path) is not being written, or its session has already started")
    }
  }

  /// Stores the queued frames and finishes the file.
  ///
  /// Blocks.
  ///
  /// - Throws: `MediaError` for this or an earlier failure; `.nothingStored` if no frame was
  ///   appended, in which case the file is removed; `.wrongState` if nothing is being written.
  public func finishWriting() throws(MediaError) {
    guard let store else { throw .wrongState("writing \(path) has not started") }
    try store.finish()
  }

  /// Finishes as the blocking form does, but suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func finishWriting() async throws(MediaError) {
    let result = await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(
          returning: Result { () throws(MediaError) in try self.finishWriting() })
      }
    }
    try result.get()
  }

  /// Cancels writing and removes the file.
  ///
  /// Does nothing if writing has not started or has already ended.
  ///
  /// If an error has stopped the writer, the stored frames are valuable, so the file is finished
  /// with them instead of being removed.
  public func cancelWriting() { store?.cancel() }

  /// Whether a frame may be appended now.
  var isReady: Bool { store?.isReady ?? false }

  /// Appends a frame to the queue or the file.
  func append(_ bytes: UnsafeRawBufferPointer, at time: MediaTime) throws(MediaError) {
    guard let store else { throw .wrongState("writing \(path) has not started") }
    try store.append(bytes, at: time)
  }
}

extension MediaError {
  static func wrongState(_ message: String) -> MediaError {
    MediaError(
      .wrongState, message, recovery: "add an input, start writing, then the session, then append")
  }
}
