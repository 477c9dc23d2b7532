// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankMovieFormat

/// What a movie file holds, with the exact time of each of its frames.
///
/// Time zero is the first picture (or the first sample of a file without pictures). The index is
/// read once, when the asset is made.
public struct Asset: Sendable {
  /// The file.
  public let path: String
  /// The container, by the name of its family: `mov`, `matroska`, `avi`.
  public let container: String
  /// The first track of pictures, or nil.
  public let videoTrack: VideoTrack?
  /// The first track of sound, or nil.
  public let audioTrack: AudioTrack?
  /// The tags of the file.
  public let metadata: [String: String]
  /// How much of a file that is cut off can be read; nil for a whole one.
  public let truncation: Truncation?
  /// The chapters of the file.
  public let chapters: [Chapter]
  /// The tracks that are neither, which an export leaves out, by what they are.
  package let otherTracks: [String]

  /// How much of a file can be read that ends before what its index names.
  public struct Truncation: Hashable, Sendable {
    /// The frames that are there.
    public let readableFrameCount: Int
    /// The frames that the index names.
    public let statedFrameCount: Int
  }

  /// Reads what a file holds.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - allowsTruncation: Whether a file that is cut off is what can be read of it, as
  ///     ``truncation`` then says; else it is an error.
  /// - Throws: `MediaError`: `.notFound`, `.noPermission`, or `.invalidData` for a file that is
  ///   no movie, is damaged or is cut off.
  public init(path: String, allowsTruncation: Bool = false) throws(MediaError) {
    try AssetFile.check(path)
    self.path = path
    let index: AssetIndex
    do throws(LibAVError) { index = try AssetIndex(path) } catch {
      throw MediaError(reading: error)
    }
    container = index.containerName.split(separator: ",").first.map(String.init) ?? "unknown"
    metadata = index.metadata
    chapters = index.chapters
    if index.tracks.contains(where: {
      [.video, .audio].contains($0.kind) && index.elsewhere.contains($0.index)
    }) {
      throw MediaError(
        .invalidData, DataReferences.refusal(of: path), recovery: DataReferences.recovery)
    }
    videoTrack = try index.videoTrack(allowsTruncation: allowsTruncation)
    audioTrack = try index.audioTrack(origin: videoTrack, allowsTruncation: allowsTruncation)
    truncation = videoTrack.flatMap { index.truncation(of: $0.format) }
    let taken = [videoTrack?.format.index, audioTrack?.format.index]
    otherTracks = index.tracks.filter { !taken.contains($0.index) }.compactMap(\.otherName)
    guard videoTrack != nil || audioTrack != nil else {
      throw .invalid(path, "holds neither pictures nor sound that can be decoded")
    }
  }

  /// How long the asset plays: to the end of its last picture, or of its sound without pictures.
  public var duration: MediaTime {
    if let frames = videoTrack?.frames {
      return MediaTime(frames.endTicks, over: frames.timescale)
    }
    return audioTrack.flatMap { MediaTime(exactly: $0.sampleCount, over: $0.sampleRate) } ?? .zero
  }

}
