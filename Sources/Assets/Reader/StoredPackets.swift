// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// The packets of a track without a ``FrameTable``, such as audio, in the order in which they are
/// stored.
final class StoredPackets: SampleProducer {
  private var demuxer: Demuxer
  private let track: TrackFormat
  private let origin: Rational
  private let range: TimeRange?
  private var isAtEnd = false

  init(_ asset: Asset, _ track: AssetTrack, _ range: TimeRange?) throws(MediaError) {
    (self.track, origin, self.range) = (track.format, asset.origin, range)
    do throws(CallFailure) {
      var demuxer = try asset.demuxer()
      for other in demuxer.tracks where other.index != track.id {
        demuxer.skip(track: other.index, exceptKeyFrames: false)
      }
      if let start = range?.start, start > .zero,
        let ticks = try? ((start.seconds + origin) / track.format.timeBase)
          .rounded(.towardNegativeInfinity)
      {
        // If the container cannot seek, the error is ignored and reading begins at the start of the
        // file.
        try? demuxer.seek(track: track.id, toKeyFrameBefore: Int64(clamping: ticks))
      }
      self.demuxer = consume demuxer
    } catch { throw MediaError(reading: error) }
  }

  func next() throws(MediaError) -> AssetSample? {
    while !isAtEnd {
      let packet: Packet?
      do throws(CallFailure) { packet = try demuxer.nextPacket() } catch {
        throw MediaError(reading: error)
      }
      guard let packet else {
        isAtEnd = true
        return nil
      }
      guard packet.trackIndex == track.index, !packet.isCorrupt, let sample = sample(packet) else {
        continue
      }
      guard let range else { return sample }
      if sample.presentationTimeStamp >= range.end {
        isAtEnd = true
        return nil
      }
      let end = sample.presentationTimeStamp.seconds + sample.duration.seconds
      let isBefore =
        sample.duration == .zero
        ? sample.presentationTimeStamp < range.start : end <= range.start.seconds
      if !isBefore { return sample }
    }
    return nil
  }

  /// Converts a packet to a sample.
  ///
  /// Returns nil if the time of the packet is unknown or out of bounds.
  private func sample(_ packet: Packet) -> AssetSample? {
    func time(_ ticks: Int64?) -> MediaTime? {
      ticks.flatMap { try? MediaTime(Rational($0) * track.timeBase - origin) }
    }
    guard let shown = time(packet.pts ?? packet.dts) else { return nil }
    return AssetSample(
      .stored(packet.bytes), at: shown, decodedAt: time(packet.dts),
      duration: (try? MediaTime(Rational(max(0, packet.duration)) * track.timeBase)) ?? .zero,
      isKeyFrame: packet.isKeyFrame, isHidden: packet.isDiscarded)
  }
}
