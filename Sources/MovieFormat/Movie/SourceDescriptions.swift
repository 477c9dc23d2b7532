// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankLinuxSystem

/// The sample descriptions of a track in a MOV or MP4 file, and the samples that each belongs to.
package struct SourceDescriptions: Sendable {
  package let descriptions: [SampleDescription]
  /// The container of the file.
  package let container: MovieContainer
  /// The offsets of all chunks in ascending order, and the index of each one's description.
  ///
  /// Empty if the track has only one description.
  private var chunks: [(position: Int64, description: Int)] = []

  /// Reads the descriptions of a track.
  ///
  /// Nil if a box is missing or malformed, for descriptions whose box has another version than 0, and for
  /// several descriptions in fragments or of several codecs.
  ///
  /// - Parameters:
  ///   - number: The index of the track, counted from 0.
  ///   - path: The path of the file.
  package init?(ofTrack number: Int, in path: String) {
    guard let file = try? MovieBoxes(opening: path, forWriting: false) else { return nil }
    let boxes = file.boxes()
    guard let (movie, bytes) = file.movie(in: boxes), movie.headBytes == 8,
      let track = Box.track(number, in: bytes), let described = MovieTrack(track, in: bytes),
      let first = described.descriptions.first,
      let table = track.sampleTable(in: bytes),
      // Version 1 gives the same bytes of an audio entry another meaning (ISO/IEC 14496-12, 12.2.3).
      let version = table.first(BoxType.sampleDescriptions, in: bytes)?.number(0, in: bytes),
      version >> 24 == 0
    else { return nil }
    // The description names the first data reference, which is the only one in a new file.
    descriptions = described.descriptions.compactMap { $0.referringToFirst }
    guard descriptions.count == described.descriptions.count else { return nil }
    container = file.container(in: boxes)
    guard descriptions.count > 1 else { return }
    guard descriptions.allSatisfy({ $0.type == first.type }),
      movie.first(BoxType.extends, in: bytes) == nil, readChunks(table, bytes)
    else { return nil }
  }

  private mutating func readChunks(_ table: Box, _ bytes: [UInt8]) -> Bool {
    guard let runs = table.first(BoxType.sampleToChunk, in: bytes),
      let offsets = table.first(BoxType.chunkOffsets, in: bytes)
        ?? table.first(BoxType.chunkOffsets64, in: bytes),
      let runCount = runs.number(4, in: bytes), let count = offsets.number(4, in: bytes)
    else { return false }
    let width = offsets.type == BoxType.chunkOffsets ? 4 : 8
    let start = Int(offsets.start + offsets.headBytes) + 8
    guard count <= UInt64(offsets.byteCount) / UInt64(width),
      start + Int(count) * width <= Int(offsets.end)
    else { return false }
    chunks.reserveCapacity(Int(count))
    for run in 0..<Int(clamping: runCount) {
      guard let first = runs.number(8 + 12 * run, in: bytes),
        let description = runs.number(16 + 12 * run, in: bytes),
        (1...UInt64(descriptions.count)).contains(description), first > 0
      else { return false }
      let next = run + 1 < Int(runCount) ? runs.number(20 + 12 * run, in: bytes) : count + 1
      guard let next, next >= first, next <= count + 1 else { return false }
      for chunk in Int(first) - 1..<Int(next) - 1 {
        let position = start + chunk * width
        chunks.append(
          (Int64(clamping: Box.number(bytes[position..<position + width])), Int(description) - 1))
      }
    }
    chunks.sort { $0.position < $1.position }
    return true
  }

  /// The index of the description of the sample at a byte offset in the file.
  ///
  /// Nil if the offset is unknown, unless the track has only one description.
  package func index(at position: Int64?) -> Int? {
    guard descriptions.count > 1 else { return 0 }
    guard let position else { return nil }
    let next = chunks.partitioningIndex { $0.position > position }
    return next > 0 ? chunks[next - 1].description : nil
  }
}

extension SampleDescription {
  /// This description, with the first data reference of the file; nil if it is too short.
  fileprivate var referringToFirst: SampleDescription? {
    guard bytes.count >= 16 else { return nil }
    var bytes = bytes
    bytes.replaceSubrange(14..<16, with: [0, 1])
    return SampleDescription(bytes)
  }
}
