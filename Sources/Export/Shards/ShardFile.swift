// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The file of a shard, with a stamp that identifies the shard and the export.
struct ShardFile: Sendable {
  let shard: ExportShard
  let path: String

  /// The metadata key of the stamp, which identifies the shard and the export.
  static let key = "com.overcrank.shard"

  init(_ shard: ExportShard, besides output: String) {
    self.shard = shard
    path = shard.path(besides: output)
  }

  /// Returns the stamp, which consists of the shard and the digest of the whole export.
  func stamp(_ digest: ExportDigest) -> String { "\(shard) \(digest)" }

  /// Whether the file may be overwritten: the path is unused, or leads directly to a shard, not
  /// through a symbolic link.
  ///
  /// Any other file must not be replaced, whatever it contains.
  var mayBeReplaced: Bool {
    guard SystemFiles.isEntry(path) else { return true }
    guard !SystemFiles.isSymbolicLink(path), let found = try? Demuxer(opening: path) else {
      return false
    }
    return found.metadata[Self.key] != nil
  }

  /// Checks that the file is complete and belongs to the export with this digest.
  ///
  /// - Throws: `MediaError` with `.shardMissing`, `.shardDamaged` or `.shardForeign`.
  func check(_ digest: ExportDigest) throws(MediaError) {
    guard SystemFiles.exists(path) else {
      throw failure(.shardMissing, "shard \(shard) is missing: \(path) does not exist")
    }
    let metadata: [String: String]
    do throws(CallFailure) { metadata = try Demuxer(opening: path).metadata } catch {
      if error.kind == .cancelled { throw .exportCancelled }
      throw failure(.shardDamaged, "shard \(shard) is damaged: \(path) cannot be read")
    }
    guard let stamp = metadata[Self.key] else {
      throw failure(.shardForeign, "\(path) is not a shard")
    }
    guard FileSeal.isIntact(path) else {
      throw failure(
        .shardDamaged, "shard \(shard) is damaged: \(path) has changed since it was made")
    }
    guard stamp == self.stamp(digest) else {
      throw failure(
        .shardForeign,
        "\(path) is a shard of another export: another source, plan or version")
    }
  }

  func failure(_ code: MediaError.Code, _ message: String) -> MediaError {
    MediaError(code, message, recovery: Self.recovery([shard]))
  }

  /// Returns the advice to make some shards again.
  static func recovery(_ shards: [ExportShard]) -> Recovery {
    let names = shards.map(\.description).joined(separator: ", ")
    return "make \(shards.count == 1 ? "shard" : "the shards") \(names) again, then join"
  }
}
