// SPDX-License-Identifier: Apache-2.0

package import OvercrankLinuxSystem

/// The tracks of a MOV or MP4 file without fragments, for copies of whole tracks.
package struct SourceTracks {
  /// The container of the file.
  package let container: MovieContainer
  /// The file, opened for reading.
  package let file: OpenFile
  /// The number of tracks.
  package var count: Int { boxes.count }
  /// The size of the file in bytes.
  package var byteCount: Int64 { fileBytes }

  private let bytes: [UInt8]
  private let boxes: [Box]
  private let identifiers: [UInt64?]
  private let movieTimescale: UInt64
  private let fileBytes: Int64
  private let tracksElsewhere: [Bool]

  /// Reads the index of a file.
  ///
  /// Nil if the file cannot be read, has no index, or has fragments.
  package init?(of path: String) {
    guard let movie = try? MovieBoxes(opening: path, forWriting: false) else { return nil }
    let boxes = movie.boxes()
    guard let (index, bytes) = movie.movie(in: boxes), index.headBytes == 8,
      let elsewhere = DataReferences(of: path)?.tracksElsewhere,
      let timescale = index.first(BoxType.movieHeader, in: bytes)?.timescale(in: bytes),
      timescale > 0, index.first(BoxType.extends, in: bytes) == nil
    else { return nil }
    container = movie.container(in: boxes)
    self.bytes = bytes
    self.boxes = index.all(BoxType.track, in: bytes)
    identifiers = self.boxes.map { $0.trackIdentifier(in: bytes) }
    movieTimescale = timescale
    tracksElsewhere = elsewhere
    (file, fileBytes) = (movie.openFile, movie.byteCount)
  }

  /// The description of a track; nil if it is malformed, or if its samples are in another file.
  ///
  /// Its references name tracks by their index in this file.
  package func track(_ number: Int) -> MovieTrack? {
    guard boxes.indices.contains(number), tracksElsewhere.indices.contains(number),
      !tracksElsewhere[number], var track = MovieTrack(boxes[number], in: bytes)
    else { return nil }
    track.references = references(of: number)
    return track
  }

  private func references(of number: Int) -> [MovieTrack.Reference] {
    guard let list = boxes[number].first(BoxType.references, in: bytes) else { return [] }
    return Box.list(in: bytes, from: Int(list.start + list.headBytes), to: Int(list.end)).map {
      box in
      let count = Int(box.byteCount - box.headBytes) / 4
      let named = (0..<count).compactMap { box.number(4 * $0, in: bytes) }
      return MovieTrack.Reference(
        type: box.type, tracks: named.compactMap { identifiers.firstIndex(of: $0) })
    }
  }

  /// The samples of a track; nil for a track with damaged tables or with reordered samples.
  ///
  /// `blockSampleBytes` is as for ``SourceSamples``.
  package func samples(_ number: Int, blockSampleBytes: Int? = nil) -> SourceSamples? {
    // Version 1 gives the same bytes of an audio entry another meaning (ISO/IEC 14496-12, 12.2.3).
    guard boxes.indices.contains(number), let table = boxes[number].sampleTable(in: bytes),
      table.first(BoxType.compositionOffsets, in: bytes) == nil,
      let version = table.first(BoxType.sampleDescriptions, in: bytes)?.number(0, in: bytes),
      version >> 24 == 0
    else { return nil }
    let samples = SourceSamples(
      boxes[number], movieTimescale: movieTimescale, fileBytes: fileBytes,
      blockSampleBytes: blockSampleBytes, in: bytes)
    return samples?.isComplete == true ? samples : nil
  }
}
