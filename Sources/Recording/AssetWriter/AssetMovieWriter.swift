// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// Writes the samples of an ``AssetWriter``'s inputs to one fragmented movie.
///
/// The file contains the samples in the order of their arrival.
struct AssetMovieWriter: ~Copyable {
  private let file: OpenFile
  private let tracks: [any AssetTrack]
  private let makeMetadata: () -> [String: String]
  private var movie: FragmentedMovieWriter?
  /// The source time that becomes time zero of the file, in microseconds.
  ///
  /// Nil until it is set, at the latest by the first stored sample.
  private var zero: Int64?
  /// Frames of the first track that arrived before the header of the file was written.
  private var early: [FrameObservation] = []
  /// The number of video frames stored in the file so far.
  private(set) var storedFrameCount: Int64 = 0

  /// Creates a writer; the first of its tracks must be a video track.
  init(
    into file: OpenFile, tracks: [any AssetTrack],
    makeMetadata: @escaping () -> [String: String]
  ) {
    self.file = file
    self.tracks = tracks
    self.makeMetadata = makeMetadata
  }

  /// Sets the source time that becomes time zero of the file.
  mutating func begin(atMicroseconds time: Int64) { zero = time }

  /// Stores a sample that was appended to an input.
  ///
  /// - Returns: `.taken`, or `.corrupt` or `.unshowable` for a sample that cannot be stored.
  /// - Throws: `CallFailure` if the encoder or the file fails.
  mutating func store(
    _ bytes: UnsafeRawBufferPointer, _ observation: FrameObservation, track: Int
  ) throws(CallFailure) -> FrameOutcome {
    let zero = zero ?? observation.microseconds
    let ticks = tracks[track].ticks(atMicroseconds: observation.microseconds &- zero)
    let outcome = try tracks[track].take(bytes, at: ticks) {
      (bytes, ticks, duration, isKeyFrame) throws(CallFailure) in
      try write(bytes, track: track, ticks: ticks, duration: duration, isKeyFrame: isKeyFrame)
    }
    if outcome == .taken { self.zero = zero }
    if track == 0 {
      var frame = observation
      frame.outcome = outcome
      try note(frame)
    }
    return outcome
  }

  /// Records a frame of the first track in the journal, from which a recovery rebuilds the ledger.
  private mutating func note(_ frame: FrameObservation) throws(CallFailure) {
    guard movie != nil else { return early.append(frame) }
    try movie?.note(frame)
  }

  /// Stores the samples that are still in the encoders, and closes the fragmented file.
  ///
  /// - Throws: `CallFailure`. The samples stored before stay playable.
  mutating func finish() throws(CallFailure) {
    // After an error, the remaining tracks are still finished, to store as many samples as
    // possible.
    var failure: CallFailure?
    for track in tracks.indices {
      do throws(CallFailure) {
        try tracks[track].finish {
          (bytes, ticks, duration, isKeyFrame) throws(CallFailure) in
          try write(bytes, track: track, ticks: ticks, duration: duration, isKeyFrame: isKeyFrame)
        }
      } catch { failure = failure ?? error }
    }
    do throws(CallFailure) { try movie?.finish() } catch { failure = failure ?? error }
    if let failure { throw failure }
  }

  /// The end of each track's last sample, in ticks of that track.
  var endTicks: [Int64] { tracks.map(\.endTicks) }

  private mutating func write(
    _ bytes: UnsafeRawBufferPointer, track: Int, ticks: Int64, duration: Int64, isKeyFrame: Bool
  ) throws(CallFailure) {
    if movie == nil { try writeHead(bytes, track: track) }
    try movie?.append(
      bytes, track: track, ticks: ticks, duration: duration, isKeyFrame: isKeyFrame)
    if tracks[track] is VideoAssetTrack { storedFrameCount += 1 }
  }

  /// Writes the header of the file, when the first sample has arrived.
  private mutating func writeHead(
    _ bytes: UnsafeRawBufferPointer, track: Int
  ) throws(CallFailure) {
    var head = MovieIndex(MovieContainer(path: file.path) ?? .mov, timescale: 1_000_000)
    head.tags = makeMetadata()
    var heads: [FragmentedMovieWriter.Track] = []
    for index in tracks.indices {
      heads.append(try tracks[index].head(of: file.path, index == track ? bytes : nil))
    }
    // A fragment normally lasts 150 ms, but has space for the samples of 250 ms.
    let samples = tracks.reduce(0) { $0 + $1.samplesPerSecond / 4 + 8 }
    movie = try FragmentedMovieWriter(
      file, index: head, tracks: heads,
      layout: FragmentedMovieWriter.Layout(fragmentTicks: 150_000, samplesPerFragment: samples))
    for frame in early { try movie?.note(frame) }
    early = []
  }
}
