// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import Synchronization

/// Renders a composition at a constant frame rate.
///
/// One thread decodes, one converts and blends, and one encodes; short queues connect them. The
/// caller's thread writes the packets and polls for cancellation.
struct ConstantRateExport: Sendable {
  let plan: ConstantRatePlan
  let assets: [Asset]
  let track: VideoTrack
  let settings: RenderSettings
  let undecodable: UndecodableFramePolicy
  let geometry: FrameGeometry
  /// The number of processors to use; nil for all.
  let processorCount: Int?
  /// The constant rate factor; nil for the one in the settings.
  let crf: Double?
  /// The segments of the composition's video track.
  let segments: [TrackSegment]
  /// The greatest number of colors in a GIF; nil for the most that a palette can have.
  let colorCount: Int?

  /// Values for the report that become known only while frames are written.
  struct Written {
    let undecodable: [ExportReport.UndecodableFrame]
    /// The number of output frames skipped because of undecodable frames.
    let leftOut: Int64
    /// The synthesized frames; nil if none were requested.
    let synthesized: SynthesizedFrames?
    /// The numbers of the written output frames in ascending order; nil for all.
    let slots: [Int64]?
    /// The contents of the output frames; nil if no synthesized frames were requested.
    let contents: [TimeMapBuilder.Run]?
  }

  /// Renders and writes all frames.
  func write(
    to output: inout ExportOutput, _ progress: (Int64, Int64) -> Void
  ) throws -> Written {
    let flicker =
      settings.removesFlicker
      ? try FlickerRemoval(plan.frames, assets, isCancelled: output.isCancelled) : nil
    let colors = Encoder.ColorTags(track.format.parameters, storedAs: geometry.format)
    let burnIn = try settings.burnIn.map {
      try BurnInRenderer(
        $0, plan, segments: segments, assets: assets, geometry, TransferFunction(colors))
    }
    let palette =
      settings.encoding == .gif
      ? try ColorPalette(
        plan, assets, geometry, colors, flicker, burnIn, colorCount: colorCount,
        isCancelled: output.isCancelled) : nil
    let work = FrameWork(self, colors, flicker, burnIn, palette)
    defer { work.stop() }
    guard case .ready(let parameters)? = try output.next(of: work) else {
      throw MediaError.exportCancelled
    }
    let timing = try SlotTiming(plan.slots.rate, settings.encoding)
    let count = Int64(plan.rendered.count)
    try output.begin(
      parameters, timescale: timing.timescale, isUpright: settings.rotatesFrames,
      endTicks: settings.encoding.animatedImage.map { _ in timing.ticks(of: count) })
    var done: Int64 = 0
    var written: [Int64] = []
    while let made = try output.next(of: work) {
      switch made {
      case .ready: continue
      case .collected: break
      case .packet(let packet, let start):
        let pts = packet.pts ?? 0
        try output.write(
          packet, pts: start + pts, dts: start + (packet.dts ?? pts), duration: timing.ticksPerSlot)
        if undecodable == .skip { written.append((start + pts) / timing.ticksPerSlot) }
        // The encoder has already returned its frames as collected ones.
        if settings.encoding.isOnePacket { continue }
      }
      done += 1
      progress(done, count)
    }
    return Written(
      undecodable: work.undecodable.withLock { $0 }, leftOut: count - done,
      synthesized: plan.inBetweens == nil ? nil : work.synthesized.withLock { $0 },
      slots: done < count ? written.sorted() : nil,
      contents: plan.inBetweens == nil ? nil : work.contents.withLock { $0 })
  }
}

extension ExportOutput {
  fileprivate func next(of work: FrameWork) throws -> FrameWork.Encoded? {
    try work.encoded.next(isCancelled)
  }
}
