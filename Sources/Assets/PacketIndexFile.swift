// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMovieFormat

/// A file next to a movie that contains the index of the movie's packets.
///
/// The content is not trusted: each number is checked against bounds and against the size of the
/// file. The file contains no byte positions in the movie. All integers are little-endian:
///
/// | Bytes | Content |
/// |---|---|
/// | 8 | `OVCRINDX` |
/// | 4, 4 | version, number of tracks |
/// | 8, 8, 8 | size of the movie, seconds and nanoseconds of its modification time |
/// | 64 | digest of the movie in hexadecimal digits, see `ContentDigest.ofFile` |
/// | 4, 4, 8, 8 | per track: number, flags, complete packets, stored packets |
/// | 8, 8 | only with flag 4: first audio sample and number of samples |
/// | 8, 8, 8, 8 | per packet: presentation time, decode time, duration, flags |
/// | 4 | CRC-32 of all bytes before |
///
/// The flags of a track are the sum of 1 if the track is encrypted, 2 if its times may contradict
/// the order in which the decoder returns frames, and 4 if its first sample and number of samples
/// are stored.
struct PacketIndexFile: Hashable {
  /// The packets of one track.
  struct Track: Hashable {
    let number: Int
    let isEncrypted: Bool
    /// Whether times may contradict the order in which the decoder returns frames.
    var isSuspicious = false
    let wholeCount: Int
    let packets: [PacketRecord]
    /// The exact extent of an audio track, see ``AudioExtentFinder``.
    var extent: AudioExtent?
  }

  /// The properties of a movie by which a change of the movie is recognized.
  struct MovieState: Hashable {
    let byteCount: Int64
    let seconds: Int64
    let nanoseconds: Int64
    let digest: String

    /// Reads the state of a movie; nil if the movie cannot be read.
    init?(_ path: String) {
      var status = stat()
      guard stat(path.systemPath, &status) == 0, let digest = try? ContentDigest.ofFile(path) else {
        return nil
      }
      byteCount = Int64(status.st_size)
      seconds = Int64(status.st_mtim.tv_sec)
      nanoseconds = Int64(status.st_mtim.tv_nsec)
      self.digest = digest
    }

    fileprivate init(byteCount: Int64, seconds: Int64, nanoseconds: Int64, digest: String) {
      (self.byteCount, self.digest) = (byteCount, digest)
      (self.seconds, self.nanoseconds) = (seconds, nanoseconds)
    }

    /// Returns the first difference between this state and the current state of the movie, or nil.
    func refusal(now: MovieState) -> Asset.KeptIndex.Refusal? {
      if byteCount != now.byteCount { return .otherSize }
      if seconds != now.seconds || nanoseconds != now.nanoseconds { return .otherModificationTime }
      return digest == now.digest ? nil : .otherContent
    }
  }

  let movie: MovieState
  let tracks: [Track]

  private static let magic = Array("OVCRINDX".utf8)
  private static let version: UInt32 = 3
  private static let headBytes = 8 + 8 + 24 + ContentDigest.digitCount
  private static let packetBytes = 32
  /// The greatest size of an index file that is read, which is enough for 32 million packets.
  private static let maximumBytes: Int64 = 1 << 30
  /// The range of accepted packet times, in ticks; sums of times in this range cannot overflow.
  private static let times = -(Int64(1) << 56)...Int64(1) << 56

  /// The path of the index file of a movie.
  static func path(besides movie: String) -> String { movie + ".frameindex" }

  init(_ movie: MovieState, tracks: [Track]) {
    (self.movie, self.tracks) = (movie, tracks)
  }

  /// Reads the index file of a movie.
  ///
  /// - Returns: The index, or the reason why it cannot be used; nil if the file does not exist.
  static func read(_ path: String) -> Result<PacketIndexFile, IndexRefusal>? {
    guard SystemFiles.isEntry(path) else { return nil }
    var status = stat()
    guard stat(path.systemPath, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_size <= maximumBytes,
      let file = try? RandomAccessFile(opening: path, forWriting: false)
    else { return .failure(IndexRefusal(.unreadable)) }
    let bytes = file.read(Int(status.st_size), at: 0)
    do { return .success(try PacketIndexFile(parsing: bytes)) } catch { return .failure(error) }
  }

  /// Parses the bytes of an index file.
  init(parsing bytes: [UInt8]) throws(IndexRefusal) {
    guard bytes.starts(with: Self.magic) else { throw IndexRefusal(.otherKind) }
    var reader = LittleEndianReader(bytes, at: Self.magic.count)
    guard let version = reader.next(UInt32.self), version == Self.version else {
      throw IndexRefusal(.otherVersion)
    }
    guard bytes.count >= Self.headBytes + 4,
      bytes.dropLast(4).withContiguousStorageIfAvailable({
        CRC32.checksum(of: UnsafeRawBufferPointer($0))
      }) == LittleEndianReader(bytes, at: bytes.count - 4).peek(UInt32.self),
      let read = Self.content(&reader, end: bytes.count - 4)
    else { throw IndexRefusal(.damaged) }
    self = read
  }

  private static func content(_ reader: inout LittleEndianReader, end: Int) -> PacketIndexFile? {
    guard let trackCount = reader.next(UInt32.self), let byteCount = reader.next(Int64.self),
      let seconds = reader.next(Int64.self), let nanoseconds = reader.next(Int64.self),
      let digest = reader.text(ContentDigest.digitCount)
    else { return nil }
    var tracks: [Track] = []
    // Each track consumes bytes of the file, so even a wrong number of tracks ends this loop.
    for _ in 0..<trackCount {
      guard let track = track(&reader, end: end),
        !tracks.contains(where: { $0.number == track.number })
      else { return nil }
      tracks.append(track)
    }
    let movie = MovieState(
      byteCount: byteCount, seconds: seconds, nanoseconds: nanoseconds, digest: digest)
    return reader.position == end ? PacketIndexFile(movie, tracks: tracks) : nil
  }

  private static func track(_ reader: inout LittleEndianReader, end: Int) -> Track? {
    guard let number = reader.next(UInt32.self), let flags = reader.next(UInt32.self), flags <= 7,
      let whole = reader.next(Int64.self), let stored = reader.next(Int64.self), stored >= 0,
      stored <= (end - reader.position) / packetBytes, whole >= stored, whole <= times.upperBound
    else { return nil }
    var extent: AudioExtent?
    if flags & 4 != 0 {
      guard let start = reader.next(Int64.self), let count = reader.next(Int64.self),
        times.contains(start), (0...times.upperBound).contains(count)
      else { return nil }
      extent = AudioExtent(start: start, count: count)
    }
    var packets: [PacketRecord] = []
    packets.reserveCapacity(Int(stored))
    for _ in 0..<stored {
      guard let pts = reader.next(Int64.self), let dts = reader.next(Int64.self),
        let duration = reader.next(Int64.self), let flags = reader.next(Int64.self),
        let packet = PacketRecord(pts: pts, dts: dts, duration: duration, flags: flags),
        times.contains(pts), times.contains(dts), times.contains(duration)
      else { return nil }
      packets.append(packet)
    }
    return Track(
      number: Int(number), isEncrypted: flags & 1 != 0, isSuspicious: flags & 2 != 0,
      wholeCount: Int(whole), packets: packets, extent: extent)
  }

  /// The bytes of the index file; nil if a time is out of bounds.
  var bytes: [UInt8]? {
    var result = Self.magic
    result.reserveCapacity(
      Self.headBytes + 4 + tracks.reduce(0) { $0 + 40 + $1.packets.count * Self.packetBytes })
    func append(_ number: some FixedWidthInteger) {
      withUnsafeBytes(of: number.littleEndian) { result.append(contentsOf: $0) }
    }
    append(Self.version)
    append(UInt32(tracks.count))
    append(movie.byteCount)
    append(movie.seconds)
    append(movie.nanoseconds)
    result += movie.digest.utf8
    for track in tracks {
      append(UInt32(track.number))
      let flags: [(Bool, UInt32)] = [
        (track.isEncrypted, 1), (track.isSuspicious, 2), (track.extent != nil, 4),
      ]
      append(flags.reduce(UInt32(0)) { $0 | ($1.0 ? $1.1 : 0) })
      append(Int64(track.wholeCount))
      append(Int64(track.packets.count))
      if let extent = track.extent {
        guard Self.times.contains(extent.start), Self.times.contains(extent.count) else {
          return nil
        }
        append(extent.start)
        append(extent.count)
      }
      for packet in track.packets {
        guard Self.times.contains(packet.pts), Self.times.contains(packet.dts ?? 0),
          Self.times.contains(packet.duration)
        else { return nil }
        append(packet.pts)
        append(packet.dts ?? 0)
        append(packet.duration)
        append(packet.flags)
      }
    }
    append(result.withUnsafeBytes { CRC32.checksum(of: $0) })
    return Int64(result.count) <= Self.maximumBytes ? result : nil
  }
}

/// The reason why an index file is not used, as an error.
struct IndexRefusal: Error, Hashable {
  let reason: Asset.KeptIndex.Refusal

  init(_ reason: Asset.KeptIndex.Refusal) { self.reason = reason }
}

/// Reads integers, and stops at the end of the bytes.
private struct LittleEndianReader {
  private let bytes: [UInt8]
  private(set) var position: Int

  init(_ bytes: [UInt8], at position: Int) { (self.bytes, self.position) = (bytes, position) }

  func peek<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
    let size = MemoryLayout<Number>.size
    guard position >= 0, bytes.count - position >= size else { return nil }
    return bytes.withUnsafeBytes {
      Number(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: Number.self))
    }
  }

  mutating func next<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
    guard let number = peek(type) else { return nil }
    position += MemoryLayout<Number>.size
    return number
  }

  mutating func text(_ count: Int) -> String? {
    guard bytes.count - position >= count else { return nil }
    defer { position += count }
    return String(decoding: bytes[position..<position + count], as: UTF8.self)
  }
}

extension PacketRecord {
  fileprivate init?(pts: Int64, dts: Int64, duration: Int64, flags: Int64) {
    guard 0..<32 ~= flags else { return nil }
    self.init(
      pts: pts, dts: flags & 1 != 0 ? dts : nil, duration: duration, isKeyFrame: flags & 2 != 0,
      isIndependent: flags & 4 != 0, isDiscarded: flags & 8 != 0, isStated: flags & 16 != 0)
  }

  fileprivate var flags: Int64 {
    (dts != nil ? 1 : 0) | (isKeyFrame ? 2 : 0) | (isIndependent ? 4 : 0) | (isDiscarded ? 8 : 0)
      | (isStated ? 16 : 0)
  }
}

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
