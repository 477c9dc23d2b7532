// SPDX-License-Identifier: Apache-2.0

extension Asset {
  /// An index of a movie's packets, which is stored in a file next to the movie.
  ///
  /// If the index inside a movie does not suffice, as for H.264 with B-frames, opening the movie
  /// reads all of its packets. The file `movie.mov.frameindex` stores the result. That file is read
  /// and written only on request, see ``init(path:allowsTruncation:keepsIndex:)``.
  public struct KeptIndex: Hashable, Sendable {
    /// The reason why the index file of a movie is not used.
    public enum Refusal: String, Hashable, Sendable, CaseIterable {
      /// The index file cannot be read, or is too large for an index.
      case unreadable
      /// The file is not an index of this library.
      ///
      /// Such a file is never replaced.
      case otherKind = "other_kind"
      /// The index was written by another version of this library.
      case otherVersion = "other_version"
      /// The checksum or the content of the index is wrong.
      case damaged
      /// The size of the movie differs from the size in the index.
      case otherSize = "other_size"
      /// The modification time of the movie differs from that in the index.
      case otherModificationTime = "other_modification_time"
      /// The content of the movie differs from that when the index was written.
      ///
      /// The start, the end, the index and samples of the content are compared.
      case otherContent = "other_content"
      /// The tracks of the movie differ from those in the index, or the movie has fewer packets.
      case contradiction

      /// The reason as text, for a message that names the file.
      public var summary: String {
        switch self {
        case .unreadable: "it cannot be read"
        case .otherKind: "it is another file"
        case .otherVersion: "another version wrote it"
        case .damaged: "it is damaged"
        case .otherSize: "the movie has another size now"
        case .otherModificationTime: "the movie was modified"
        case .otherContent: "the movie has other content"
        case .contradiction: "it contradicts the movie"
        }
      }
    }

    /// The path of the index file.
    public let path: String
    /// Whether the index file was used, so that the packets of the movie were not read.
    public internal(set) var isUsed = false
    /// Whether the index file was written.
    ///
    /// False if it already existed or could not be written.
    public internal(set) var isWritten = false
    /// The reason why an existing index file was not used; nil if it was used or did not exist.
    public internal(set) var refusal: Refusal?
    /// The reason why the index file could not be written; nil if it was written or not needed.
    public internal(set) var writeFailure: String?

    init(path: String) { self.path = path }
  }
}
