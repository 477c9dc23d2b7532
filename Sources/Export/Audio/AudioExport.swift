// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import OvercrankRetiming

/// The audio of an export.
///
/// It is copied if the composition plays a whole asset unchanged, otherwise it is rendered and
/// encoded.
///
/// A separate thread makes the audio packets. The thread that writes the file interleaves them with
/// the video.
final class AudioExport {
  /// An audio packet, and its time in samples.
  struct TimedPacket: Sendable {
    let packet: Packet
    let pts: Int64
    let duration: Int64
  }

  private enum Made: Sendable {
    case ready(CodecParameters, maximumPackets: Int)
    case packet(TimedPacket)
    case report(ExportReport.Audio)
  }

  /// The audio track of the output.
  struct Track {
    let parameters: CodecParameters
    /// The sample descriptions of a copied track, which the output's container can store unchanged; empty
    /// to make one from the parameters.
    let descriptions: [SampleDescription]
    /// The number of ticks per second in the times of packets.
    let timescale: Int32
    let metadata: [String: String]
    /// An upper limit for the number of audio packets.
    let maximumPackets: Int
  }

  let track: Track
  private(set) var report: ExportReport.Audio
  private let queue: BoundedBlockingQueue<Made>
  private var pending: TimedPacket?
  private let work = DispatchGroup()

  /// Starts the audio thread for a plan.
  init(_ plan: AudioExportPlan, _ isCancelled: () -> Bool) throws {
    // Audio packets are small, so a long queue of several minutes of audio needs little memory.
    let queue = BoundedBlockingQueue<Made>(capacity: 10_000)
    self.queue = queue
    report = plan.report
    ExportThread.start(in: work, failed: { queue.end($0) }) {
      do {
        try Self.make(plan, on: queue)
        queue.end()
      } catch { queue.end(error) }
    }
    guard case .ready(let parameters, let most)? = try queue.next(isCancelled) else {
      throw MediaError.exportCancelled
    }
    track = Track(
      parameters: parameters, descriptions: plan.copiedDescriptions,
      timescale: Int32(clamping: plan.sampleRate),
      metadata: plan.language.map { ["language": $0] } ?? [:], maximumPackets: most)
  }

  /// Returns the next audio packet without removing it; nil at the end of the audio.
  func next(_ isCancelled: () -> Bool) throws -> TimedPacket? {
    while pending == nil {
      switch try queue.next(isCancelled) {
      case .packet(let packet): pending = packet
      case .report(let report): self.report = report
      case .ready: break
      case nil: return nil
      }
    }
    return pending
  }

  /// Removes the packet that ``next(_:)`` returned.
  func drop() { pending = nil }

  /// Stops the audio thread, and discards the packets that it has made.
  func stop() {
    queue.stop()
    work.waitShortly()
  }

  private static func make(_ plan: AudioExportPlan, on queue: BoundedBlockingQueue<Made>) throws {
    switch plan.method {
    case .copied: try copy(plan, to: queue)
    case .rendered(let segments, let retimer, let codec):
      try render(plan, segments, retimer, codec, to: queue)
    }
  }

  private static func copy(_ plan: AudioExportPlan, to queue: BoundedBlockingQueue<Made>) throws {
    let track = plan.track
    var packets: [TimedPacket] = []
    var demuxer = try plan.assets[0].demuxer()
    let rate = Rational(Int64(track.sampleRate))
    while !queue.isStopped, let packet = try demuxer.nextPacket() {
      guard packet.trackIndex == track.format.index, !packet.isCorrupt,
        let ticks = packet.pts ?? packet.dts
      else { continue }
      let scale = track.format.timeBase * rate
      let time = try (Rational(ticks) * scale).rounded(.halfAwayFromZero)
      let length = try (Rational(packet.duration) * scale)
        .rounded(.halfAwayFromZero)
      packets.append(
        TimedPacket(
          packet: packet, pts: Int64(clamping: time) - track.originSample,
          duration: Int64(clamping: length)))
    }
    guard queue.put(.ready(track.format.parameters, maximumPackets: packets.count)) else { return }
    let end = track.startSample + track.sampleCount
    for (number, packet) in packets.enumerated() {
      // A packet without a duration lasts until the next packet; the last packet lasts until the
      // end of the audio.
      let next = number + 1 < packets.count ? packets[number + 1].pts : end
      let length = packet.duration > 0 ? packet.duration : max(0, next - packet.pts)
      let whole = TimedPacket(packet: packet.packet, pts: packet.pts, duration: length)
      if !queue.put(.packet(whole)) { return }
    }
  }

  private static func render(
    _ plan: AudioExportPlan, _ segments: [AudioSegment], _ retimer: AudioRetimer,
    _ codec: AudioCodec, to queue: BoundedBlockingQueue<Made>
  ) throws {
    let track = plan.track
    let readers = try plan.assets.map {
      try AudioSource(
        $0, $0.audioTrack ?? track, sampleRate: plan.sampleRate, channelCount: plan.channelCount)
    }
    let encoder = try Encoder(
      audioCodec: codec.rawValue, sampleRate: plan.sampleRate, channelCount: plan.channelCount)
    let parameters = encoder.parameters
    var blocks = AudioBlockEncoder(encoder, channelCount: plan.channelCount) {
      _ = queue.put(.packet($0))
    }
    // The encoder may return more packets than it received blocks, because it delays audio and is
    // flushed at the end. The encoders in use return at most eight more.
    let most = Int(clamping: plan.report.samples / Int64(blocks.blockLength)) + 8
    guard queue.put(.ready(parameters, maximumPackets: most)) else { return }
    let rendered = try retimer.render(
      segments: segments, duration: plan.duration,
      parallelism: plan.processorCount,
      isCancelled: { queue.isStopped },
      read: { try readers[$0.id].samples(from: $1, count: $2, isReversed: $0.isReversed) },
      write: { try blocks.append($0) })
    try blocks.finish(at: rendered.samples)
    _ = queue.put(
      .report(
        ExportReport.Audio(
          algorithm: rendered.algorithm.rawValue, samples: rendered.samples,
          lengthErrorSamples: rendered.lengthErrorSamples, snapped: rendered.snapped)))
  }
}

extension Composition {
  /// Returns true if every track plays exactly the complete asset at speed 1, and false otherwise.
  func isWhole(of asset: Asset) -> Bool {
    !tracks.isEmpty
      && tracks.allSatisfy { track in
        guard track.segments.count == 1, let line = track.segments.first?.mapping?.line else {
          return false
        }
        return line.source == line.target && line.source.start == .zero
          && line.source.end == asset.duration && track.segments[0].source?.path == asset.path
      }
  }
}
