// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRetiming

/// One of several shards of a constant-rate export.
///
/// Different processes or computers can make the shards.
///
/// The output frames of the export are divided into groups of two seconds, counted from frame 0. A
/// shard consists of a range of whole groups. Each group is encoded by a separate encoder on one
/// thread, so its packets do not depend on the number of shards.
public struct ExportShard: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The number of the shard, from 1.
  public let number: Int
  /// The number of shards of the export.
  public let count: Int

  /// The greatest number of shards of an export.
  public static let maximumCount = 100_000

  /// Creates a shard.
  ///
  /// - Returns: Nil unless the number is 1 to `count`, and `count` at most ``maximumCount``.
  public init?(exactly number: Int, of count: Int) {
    guard (1...Self.maximumCount).contains(count), (1...count).contains(number) else { return nil }
    self.number = number
    self.count = count
  }

  /// The number of this shard and the number of all shards, such as `3/8`.
  public var description: String { "\(number)/\(count)" }

  /// Returns the path of the shard's file, such as `film.shard-3-of-8.mov` for the output
  /// `film.mp4`.
  public func path(besides output: String) -> String {
    output.replacingLastPathComponent(with: "\(output.fileStem).shard-\(number)-of-\(count).mov")
  }

  /// Returns the sets of shards of which files exist next to an output.
  ///
  /// A set is complete if each of its shards has a file. All complete sets are returned, sorted by
  /// the number of shards. They give the same movie, unless some of them remain from an earlier
  /// plan. If no set is complete, only the set with the smallest fraction of missing files is
  /// returned; if several sets have this fraction, the one with the fewest shards.
  ///
  /// - Returns: All shards of each set, including missing ones; empty if no file exists.
  static func found(besides output: String) -> [[ExportShard]] {
    let (start, end) = ("\(output.fileStem).shard-", ".mov")
    var known: [Int: Int] = [:]
    for name in SystemFiles.entries(in: output.parentDirectory)
    where name.hasPrefix(start) && name.hasSuffix(end) {
      let numbers = name.dropFirst(start.count).dropLast(end.count).split(separator: "-")
      guard numbers.count == 3, numbers[1] == "of", let number = Int(numbers[0]),
        let count = Int(numbers[2]), let shard = ExportShard(exactly: number, of: count),
        shard.path(besides: output).lastPathComponent == name
      else { continue }
      known[count, default: 0] += 1
    }
    func shards(_ count: Int) -> [ExportShard] {
      (1...count).compactMap { ExportShard(exactly: $0, of: count) }
    }
    let complete = known.filter { $0.key == $0.value }.keys.sorted()
    guard complete.isEmpty else { return complete.map(shards) }
    let best = known.min { one, other in
      let (missing, others) = (one.key - one.value, other.key - other.value)
      // The fractions of missing files are compared by cross multiplication.
      let (left, right) = (missing * other.key, others * one.key)
      return left != right ? left < right : one.key < other.key
    }
    return best.map { [shards($0.key)] } ?? []
  }
}

/// The part of an export that is written.
public enum ExportPart: Hashable, Sendable {
  /// All of the export, encoded by a single encoder.
  case whole
  /// The video of one shard, written to the file ``ExportShard/path(besides:)`` next to the output.
  ///
  /// Only for a constant-rate export.
  case shard(ExportShard)
  /// The whole export, made from the video packets of existing shards and the audio.
  case joined
}

/// The groups of output frames that are encoded independently of each other.
struct FrameGroups: Sendable {
  /// The number of frames in a group; the last group may have fewer.
  let length: Int64
  let frameCount: Int64

  /// Divides the output frames into groups of two seconds, but at most 250 frames.
  ///
  /// The limit costs nothing, because the encoders make a key frame after 250 frames anyway.
  init(_ grid: OutputFrameGrid) {
    let frames =
      (Int64(grid.rate.numerator) * 2 + Int64(grid.rate.denominator) - 1)
      / Int64(grid.rate.denominator)
    length = min(max(1, frames), 250)
    frameCount = grid.count
  }

  var count: Int64 { (frameCount + length - 1) / length }

  /// Returns the range of output frames that belong to a shard.
  ///
  /// - Throws: `MediaError` with `.shardRefused` if there are more shards than groups.
  func frames(of shard: ExportShard) throws(MediaError) -> Range<Int64> {
    guard shard.count <= count else {
      throw MediaError(
        .shardRefused,
        "\(shard.count) shards are too many: the export has \(count) groups of \(length) frames",
        recovery: "choose at most \(count) shards")
    }
    let (number, shards) = (Int64(shard.number), Int64(shard.count))
    let first = (number - 1) * count / shards * length
    return first..<min(frameCount, number * count / shards * length)
  }
}
