// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import OvercrankMediaCore
import Synchronization

/// Writes pictures that a program brings itself into a movie file, by the recorder's own means: the
/// file can be played while it grows, survives a kill, and is a plain movie at the end.
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
/// Finish it or give it up: one that is dropped before gives its file up.
///
/// All calls may come from any thread. Creating and finishing the file wait for the disk.
public final class AssetWriter: Sendable {
  /// How far the writer is.
  public enum Status: Hashable, Sendable {
    /// Writing has not begun.
    case unknown
    /// Pictures are taken.
    case writing
    /// The file is whole.
    case completed
    /// Something went wrong; ``AssetWriter/error`` says what. The file holds what was stored, and
    /// nothing more is taken.
    case failed
    /// The file was given up, and is gone.
    case cancelled
  }

  private struct State {
    var input: AssetWriterInput?
    var store: FrameStore?
  }

  /// The file.
  public let path: String
  private let overwrites: Bool
  private let metadata: [String: String]
  private let state = Mutex(State())

  /// Prepares to write a file; nothing is touched yet.
  ///
  /// - Parameters:
  ///   - path: The file; MOV by its contents, whatever its name.
  ///   - overwrites: Whether a file of this name may be replaced.
  ///   - metadata: Tags of the file, such as `title`.
  public init(path: String, overwrites: Bool = false, metadata: [String: String] = [:]) {
    self.path = path
    self.overwrites = overwrites
    self.metadata = metadata
  }

  deinit { cancelWriting() }

  /// How far the writer is.
  public var status: Status { store?.status ?? .unknown }

  /// What went wrong, where something did.
  public var error: MediaError? { store?.error }

  /// Pictures stored so far.
  public var storedFrameCount: Int64 { store?.storedCount ?? 0 }

  private var store: FrameStore? { state.withLock { $0.store } }

  /// Adds the input of the pictures, before writing begins.
  ///
  /// - Throws: `MediaError` with `.wrongState` where writing has begun, there is an input
  ///   already, or it is another writer's.
  public func add(_ input: AssetWriterInput) throws(MediaError) {
    let isTaken = state.withLock { state in
      guard state.store == nil, state.input == nil, input.join(self) else { return false }
      state.input = input
      return true
    }
    guard isTaken else {
      throw .wrongState("\(path) takes one input, before writing begins and of this writer alone")
    }
  }

  /// Creates the file.
  ///
  /// - Throws: `MediaError` when it cannot be created, with `.wrongState` where there is no
  ///   input or writing has begun.
  public func startWriting() throws(MediaError) {
    try state.withLock { (state) throws(MediaError) in
      guard state.store == nil, let input = state.input else {
        throw .wrongState("\(path) has no input, or its writing has begun already")
      }
      state.store = try FrameStore(
        creating: path, overwrites: overwrites, metadata: metadata, for: input)
    }
  }

  /// Says from when on pictures belong to the file; its zero is the first of them.
  ///
  /// - Throws: `MediaError` with `.wrongState` where writing has not begun, or the session
  ///   has.
  public func startSession(atSourceTime time: MediaTime) throws(MediaError) {
    guard store?.start(at: time) == true else {
      throw .wrongState("\(path) is not being written, or its session began")
    }
  }

  /// Stores what waits, and makes the file plain; blocks until then.
  ///
  /// - Throws: `MediaError` for what went wrong, also before; `.nothingStored` where there was
  ///   no picture, and there is no file then; `.wrongState` where nothing is being written.
  public func finishWriting() throws(MediaError) {
    guard let store else { throw .wrongState("the writing of \(path) has not begun") }
    try store.finish()
  }

  /// Finishes as the form that blocks does, and suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the form that blocks.
  public func finishWriting() async throws(MediaError) {
    let result = await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(
          returning: Result { () throws(MediaError) in try self.finishWriting() })
      }
    }
    try result.get()
  }

  /// Gives the file up and removes it; does nothing where writing has not begun or is over.
  ///
  /// After a failure the file is finished instead, with what was stored.
  public func cancelWriting() { store?.cancel() }

  /// Whether a picture may be appended now.
  var isReady: Bool { store?.isReady ?? false }

  /// Takes a picture, into the queue or into the file.
  func append(_ bytes: UnsafeRawBufferPointer, at time: MediaTime) throws(MediaError) {
    guard let store else { throw .wrongState("the writing of \(path) has not begun") }
    try store.append(bytes, at: time)
  }
}

extension MediaError {
  static func wrongState(_ message: String) -> MediaError {
    MediaError(
      .wrongState, message, recovery: "add an input, start writing, then the session, then append")
  }
}
