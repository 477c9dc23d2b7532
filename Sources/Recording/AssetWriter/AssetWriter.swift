// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
public import OvercrankMediaCore
import Synchronization

/// Writes frames and audio that the program supplies to a movie or audio file.
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
/// A writer with several inputs interleaves their samples by time. The file contains the video
/// tracks first and then the audio tracks, each in the order in which the inputs were added.
///
/// Audio alone can be written to every container. A `.wav` file holds one input of PCM samples; until it
/// is finished, its header does not state its length, and readers take all samples up to its end.
///
/// Call `finishWriting()` or ``cancelWriting()`` at the end. If the writer is released before that,
/// it removes its file.
///
/// All calls may come from any thread. The calls that create and finish the file block on disk I/O.
public final class AssetWriter: Sendable {
  /// The state of an asset writer.
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
    var inputs: [AssetWriterInput] = []
    var store: AssetStore?
  }

  /// The path of the movie file.
  public let path: String
  private let overwrites: Bool
  private let metadata: [String: String]
  private let state = Mutex(State())

  /// Prepares to write a file.
  ///
  /// Does not touch the disk.
  ///
  /// - Parameters:
  ///   - path: The path of the file. The container is MP4 for the extensions `.mp4` and `.m4v`, MP4
  ///     with audio alone for `.m4a`, WAV for `.wav`, and otherwise MOV.
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

  /// The total number of frames stored so far from all video inputs.
  ///
  /// Zero without video inputs.
  public var storedFrameCount: Int64 { store?.storedCount ?? 0 }

  private var store: AssetStore? { state.withLock { $0.store } }

  /// The inputs of the writer, in the order in which they were added.
  public var inputs: [AssetWriterInput] { state.withLock { $0.inputs } }

  /// Adds an input.
  ///
  /// Call this before ``startWriting()``.
  ///
  /// - Throws: `MediaError` with `.wrongState` if writing has started, or the input already belongs
  ///   to a writer.
  public func add(_ input: AssetWriterInput) throws(MediaError) {
    let isTaken = state.withLock { state in
      guard state.store == nil, input.join(self) else { return false }
      state.inputs.append(input)
      return true
    }
    guard isTaken else {
      throw .wrongState("\(path) accepts unused inputs before writing starts")
    }
  }

  /// Creates the file.
  ///
  /// Blocks.
  ///
  /// - Throws: `MediaError` if the file cannot be created; `.codecRefused` if the container does
  ///   not support an input, or the headers of an H.264 input are unknown and there are other
  ///   inputs; `.wrongState` without an input, or if writing has started.
  public func startWriting() throws(MediaError) {
    try state.withLock { (state) throws(MediaError) in
      let order = Self.trackOrder(of: state.inputs)
      guard state.store == nil, let first = order.first else {
        throw .wrongState("\(path) has no input, or writing has already started")
      }
      try AssetFileType(path: path).check(order, for: path)
      for input in order {
        try input.source.check(container: path)
        guard order.count == 1 || input.source.hasKnownHeaders else {
          throw MediaError(
            .codecRefused, "the headers of an H.264 input of \(path) are unknown",
            recovery: "give the parameter sets in the format of the input")
        }
      }
      state.store = try AssetStore(
        creating: path, overwrites: overwrites, metadata: metadata, for: order,
        frameRate: first.frameRate)
      for (index, input) in order.enumerated() { input.move(to: index) }
    }
  }

  /// The inputs in the order of their tracks in the file.
  private static func trackOrder(of inputs: [AssetWriterInput]) -> [AssetWriterInput] {
    inputs.filter { $0.mediaType == .video } + inputs.filter { $0.mediaType == .audio }
  }

  /// Sets the source time from which frames are stored.
  ///
  /// Samples before this time are ignored. Time zero of the file is the first stored frame. In a
  /// file with several inputs, time zero is the start of the session.
  ///
  /// - Throws: `MediaError` with `.wrongState` if writing has not started, or if the session has
  ///   already started.
  public func startSession(atSourceTime time: MediaTime) throws(MediaError) {
    guard store?.start(at: time) == true else {
      throw .wrongState("\(path) is not being written, or its session has already started")
    }
  }

  /// Stores the queued samples and finishes the file.
  ///
  /// Blocks.
  ///
  /// - Throws: `MediaError` for this or an earlier failure; `.nothingStored` if no frame was
  ///   appended, in which case the file is removed; `.wrongState` if nothing is being written.
  public func finishWriting() throws(MediaError) {
    guard let store else { throw .wrongState("writing \(path) has not started") }
    try store.finish()
  }

  /// Stores the queued samples and finishes the file, and suspends the task meanwhile.
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
  /// If an error has stopped the writer, the file is finished with the stored frames instead of
  /// being removed.
  public func cancelWriting() { store?.cancel() }

  /// Whether a sample may be appended to an input now.
  func isReady(input: Int) -> Bool { store?.isReady(input: input) ?? false }

  /// Ends an input.
  func markAsFinished(input: Int) { store?.markAsFinished(input: input) }

  /// Appends a sample to the queue of its input or, if the input has no queue, to the file.
  func append(
    _ bytes: UnsafeRawBufferPointer, at time: MediaTime, to input: Int
  ) throws(MediaError) {
    guard let store else { throw .wrongState("writing \(path) has not started") }
    try store.append(bytes, at: time, input: input)
  }
}

/// The type of file that an asset writer creates, according to the extension.
enum AssetFileType {
  case movie, audioMovie, wave

  init(path: String) {
    self =
      switch path.fileExtension {
      case "m4a": .audioMovie
      case "wav": .wave
      default: .movie
      }
  }

  /// The PCM codecs that a WAV file can store.
  private static let waveCodecs: Set<String> = [
    "pcm", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_f64le", "pcm_u8",
  ]

  /// Throws an error if the file cannot hold these inputs.
  fileprivate func check(_ inputs: [AssetWriterInput], for path: String) throws(MediaError) {
    let isPossible =
      switch self {
      case .movie: true
      case .audioMovie: inputs.allSatisfy { $0.mediaType == .audio }
      case .wave:
        if inputs.count == 1, case .samples(_, let codec) = inputs[0].source {
          Self.waveCodecs.contains(codec.rawValue)
        } else {
          false
        }
      }
    guard isPossible else {
      throw MediaError(
        .codecRefused,
        self == .wave
          ? "\(path) holds one input of PCM samples only" : "\(path) holds audio only",
        recovery: "write a .mov file")
    }
  }
}

extension MediaError {
  static func wrongState(_ message: String) -> MediaError {
    MediaError(
      .wrongState, message, recovery: "add an input, start writing, then the session, then append")
  }
}
