// SPDX-License-Identifier: Apache-2.0

extension Asset {
  /// An index of the packets in a file next to the movie, and its use.
  ///
  /// If the index of a movie does not suffice, as for H.264 with B-frames, opening the movie reads
  /// all of its packets. The file `movie.mov.frameindex` stores the result. It is read and written
  /// only on request, see ``init(path:allowsTruncation:keepsIndex:)``.
  public struct KeptIndex: Hashable, Sendable {
    /// The reason why an index beside a movie is not used.
    public enum Refusal: String, Hashable, Sendable, CaseIterable {
      /// It cannot be read, or is larger than any index.
      case unreadable
      /// It is no index of this library. It is never replaced.
      case otherKind = "other_kind"
      /// Another version of this library wrote it.
      case otherVersion = "other_version"
      /// Its checksum or its content is wrong.
      case damaged
      /// The movie has another size than the index states.
      case otherSize = "other_size"
      /// The movie was modified at another time than the index states.
      case otherModificationTime = "other_modification_time"
      /// The start, the end, the index or a sample of the movie has other bytes.
      case otherContent = "other_content"
      /// The movie has other tracks or fewer packets than the index states.
      case contradiction

      /// The reason in words, for a message that names the file.
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

    /// The path of the index.
    public let path: String
    /// True if the index was used, and the packets of the movie were not read.
    public internal(set) var isUsed = false
    /// True if the index was written, false if it existed already or could not be written.
    public internal(set) var isWritten = false
    /// The reason why an existing index was not used; nil if it was used or none existed.
    public internal(set) var refusal: Refusal?
    /// The reason why the index could not be written; nil if it was written or did not have to be.
    public internal(set) var writeFailure: String?

    init(path: String) { self.path = path }
  }
}
