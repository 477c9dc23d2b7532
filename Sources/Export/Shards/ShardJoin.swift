// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming

/// Writes the video packets of all shards of an export, one shard after the other.
struct ShardJoin {
  let files: [ShardFile]
  let plan: ConstantRatePlan
  let isUpright: Bool

  /// Finds the shards next to an output, and checks them.
  ///
  /// If several sets of shards are complete, the first set that is intact and belongs to the export
  /// is joined.
  ///
  /// - Throws: `MediaError` of the first shard that is missing, damaged or foreign; its recovery
  ///   names all shards that must be made again. If no set can be joined, the error is that of the
  ///   first set.
  init(
    _ plan: ConstantRatePlan, _ settings: ExportSettings, _ digest: ExportDigest, isUpright: Bool
  ) throws(MediaError) {
    var files: [ShardFile]?
    var failure: MediaError?
    for shards in ExportShard.found(besides: settings.path) where files == nil {
      let found = shards.map { ShardFile($0, besides: settings.path) }
      do throws(MediaError) {
        try Self.check(found, plan, digest)
        files = found
      } catch { failure = failure ?? error }
    }
    guard let files else {
      throw failure
        ?? MediaError(
          .shardMissing, "no shard of \(settings.path) exists",
          recovery: "make the shards first")
    }
    self.files = files
    self.plan = plan
    self.isUpright = isUpright
  }

  /// Checks that each file in a set of shards is complete and belongs to the export.
  private static func check(
    _ files: [ShardFile], _ plan: ConstantRatePlan, _ digest: ExportDigest
  ) throws(MediaError) {
    var failures: [(shard: ExportShard, error: MediaError)] = []
    for file in files {
      _ = try plan.groups.frames(of: file.shard)
      do throws(MediaError) { try file.check(digest) } catch {
        failures.append((file.shard, error))
      }
    }
    guard let first = failures.first?.error else { return }
    let more = failures.count > 1 ? ", and \(failures.count - 1) more" : ""
    throw MediaError(
      first.code, first.message + more, recovery: ShardFile.recovery(failures.map(\.shard)))
  }

  /// Writes the video packets of all shards.
  func write(to output: inout ExportOutput, _ progress: (Int64, Int64) -> Void) throws {
    let timing = try SlotTiming(plan.slots.rate)
    var parameters: CodecParameters?
    var done: Int64 = 0
    for file in files {
      var demuxer = try Demuxer(opening: file.path)
      guard let track = demuxer.tracks.first(where: { $0.kind == .video }),
        track.timeBase == Rational(1, over: Int128(timing.timescale))
      else { throw Self.damaged(file) }
      if let parameters {
        guard track.parameters.decodesLike(parameters) else {
          throw file.failure(
            .shardForeign,
            "\(file.path) has another video format than the first shard: another encoder made it")
        }
      } else {
        parameters = track.parameters
        // The bit rate in the first shard's parameters describes that shard only, so it is removed.
        try output.begin(
          track.parameters.withoutBitRate(), timescale: timing.timescale, isUpright: isUpright)
      }
      let frames = try plan.groups.frames(of: file.shard)
      let start = frames.lowerBound * timing.ticksPerSlot
      var isKnown = [Bool](repeating: false, count: frames.count)
      while let packet = try demuxer.nextPacket() {
        guard packet.trackIndex == track.index, let ticks = packet.pts, let decoded = packet.dts
        else { continue }
        let (slot, rest) = ticks.quotientAndRemainder(dividingBy: timing.ticksPerSlot)
        guard rest == 0, let index = Int(exactly: slot), isKnown.indices.contains(index),
          !isKnown[index],
          packet.isKeyFrame || (slot + frames.lowerBound) % plan.groups.length != 0
        else { throw Self.damaged(file) }
        isKnown[index] = true
        try output.write(
          packet, pts: start + ticks, dts: start + decoded, duration: timing.ticksPerSlot)
        done += 1
        progress(done, plan.slots.count)
      }
      guard isKnown.allSatisfy(\.self) else { throw Self.damaged(file) }
    }
  }

  private static func damaged(_ file: ShardFile) -> MediaError {
    file.failure(
      .shardDamaged,
      "shard \(file.shard) is damaged: frames of \(file.path) are missing or repeated")
  }
}
