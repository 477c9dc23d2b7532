// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// A recording after its last sample, which is still fragmented.
struct RecordedMovie: ~Copyable {
  private let movie: MovieFinalizer

  /// Reads the journals of a recording.
  ///
  /// `repair` is a finished repair of the file, if it needed one.
  ///
  /// - Throws: `CallFailure` if the file has no index or damaged journals.
  init(_ file: OpenFile, after repair: MovieRepair? = nil) throws(CallFailure) {
    movie = try MovieFinalizer(file, after: repair)
  }

  private var video: MovieFinalizer.Track? { movie.tracks.first { $0.kind == .video } }

  /// The number of video frames that the plain movie will have, with the hidden ones.
  var frameCount: Int64 { Int64(video?.samples.count ?? 0) }

  /// Converts the file to a plain movie in place, see ``MovieFinalizer``.
  ///
  /// The note of the capture times is added to the tags.
  ///
  /// - Returns: The number of samples of each track in the plain file.
  /// - Throws: `CallFailure`. The fragmented file then stays unchanged and playable.
  consuming func finish(
    ends: [MovieFinalizer.TrackEnd], metadata: [String: String],
    chapters: [(title: String, start: Int64)] = []
  ) throws(CallFailure) -> [Int64] {
    var tags = metadata
    if let video {
      TakeTimeNote.add(
        to: &tags, sizes: video.samples.map(\.byteCount),
        times: video.samples.map(\.presentationTicks), timescale: video.timescale,
        records: movie.frameRecords)
    }
    return try movie.finish(ends: ends, tags: tags, chapters: chapters)
  }

  /// Whether libavformat can open a file.
  static func canOpen(_ file: OpenFile) -> Bool {
    do throws(CallFailure) {
      _ = try Demuxer(reopening: file, probes: false)
      return true
    } catch { return false }
  }

  /// The number of frames readable from a file up to the first error.
  ///
  /// Nil if the file cannot be opened.
  static func readableFrames(_ file: OpenFile) -> Int64? {
    guard var source = try? Demuxer(reopening: file) else { return nil }
    guard let track = source.tracks.first(where: { $0.kind == .video }) else { return 0 }
    var count: Int64 = 0
    // A read error ends the count. The following frames count as unreadable.
    while let packet = try? source.nextPacket() {
      if packet.trackIndex == track.index, !packet.isCorrupt { count += 1 }
    }
    return count
  }
}
