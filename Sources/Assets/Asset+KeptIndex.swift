// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore

extension Asset {
  /// Opens a movie with the packet index that is stored next to it.
  ///
  /// If no valid index exists, reads the packets and writes an index.
  static func withKeptIndex(
    path: String, allowsTruncation: Bool
  ) throws(MediaError) -> Asset {
    var use = KeptIndex(path: PacketIndexFile.path(besides: path))
    let state = PacketIndexFile.MovieState(path)
    switch PacketIndexFile.read(use.path) {
    case nil: break
    case .failure(let refusal): use.refusal = refusal.reason
    case .success(let file):
      use.refusal = state.map { file.movie.refusal(now: $0) } ?? .unreadable
      if use.refusal == nil {
        // If the stored index yields no asset, the packets of the movie are read instead.
        if let index = try? AssetIndex(path, kept: file.tracks), !index.isContradicted,
          var asset = try? Asset(path, index, allowsTruncation: allowsTruncation)
        {
          use.isUsed = true
          asset.keptIndex = use
          return asset
        }
        use.refusal = .contradiction
      }
    }
    let index = try AssetIndex.reading(path)
    var asset = try Asset(path, index, allowsTruncation: allowsTruncation)
    use.writeFailure = index.write(state, &use)
    asset.keptIndex = use
    return asset
  }
}

extension AssetIndex {
  /// Writes the packet index next to the movie.
  ///
  /// `state` is the state of the movie before its packets were read.
  ///
  /// - Returns: The reason why the index was not written, or nil.
  fileprivate func write(
    _ state: PacketIndexFile.MovieState?, _ use: inout Asset.KeptIndex
  ) -> String? {
    guard use.refusal != .otherKind, use.refusal != .unreadable else {
      return "the name belongs to another file"
    }
    guard !SystemFiles.isSymbolicLink(use.path) else { return "the name is a symbolic link" }
    guard let state, state == PacketIndexFile.MovieState(path) else {
      return "the movie changed while it was read"
    }
    // The index file contains corrected times, but not the corrections, which other readers of the
    // movie need.
    guard corrections == nil else { return "the clock of the movie restarts" }
    let tracks = packets.keys.sorted().map { number in
      PacketIndexFile.Track(
        number: number, isEncrypted: encrypted.contains(number),
        isSuspicious: suspicious.contains(number),
        wholeCount: wholeCounts[number, default: 0], packets: packets[number] ?? [],
        extent: extents[number])
    }
    guard let bytes = PacketIndexFile(state, tracks: tracks).bytes else {
      return "the movie has too many packets or times out of bounds"
    }
    do throws(FileCreationError) {
      try WholeFile.write(bytes, to: use.path, overwrites: true)
      use.isWritten = true
      return nil
    } catch { return MediaError(error).message }
  }
}
