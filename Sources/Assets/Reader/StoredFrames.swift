// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// The packets of a video track that has a ``FrameTable``, in decode order.
final class StoredFrames: SampleProducer {
  private let asset: Asset
  private let cursor: PacketCursor
  private let track: VideoTrack
  private let offset: Rational
  /// The index of the frame that each packet contains, or nil for a hidden packet.
  private let numbers: [Int?]
  private var indices: Range<Int>

  init(
    _ asset: Asset, _ track: AssetTrack, _ video: VideoTrack, _ range: TimeRange?
  ) throws(MediaError) {
    (self.asset, self.track) = (asset, video)
    offset = video.origin - asset.origin
    cursor = PacketCursor(asset.choosing(track))
    let frames = video.frames
    var numbers = [Int?](repeating: nil, count: frames.entries.count + frames.hiddenPackets.count)
    for (number, entry) in frames.entries.enumerated() where entry.decodeIndex < numbers.count {
      numbers[entry.decodeIndex] = number
    }
    self.numbers = numbers
    indices = numbers.indices
    guard range != nil else { return }
    let shown = try frames.numbers(in: range, offset: offset)
    guard let first = shown.first, let last = frames.entries[shown].map(\.decodeIndex).max() else {
      indices = 0..<0
      return
    }
    indices = frames.decodingStart(ofFrame: first)..<last + 1
  }

  func next() throws(MediaError) -> AssetSample? {
    guard let index = indices.first else { return nil }
    indices.removeFirst()
    let found: Packet?
    do throws(CallFailure) { found = try cursor.packet(at: index) } catch {
      throw MediaError(reading: error)
    }
    guard let packet = found else {
      throw .invalid(asset.path, "ends before packet \(index), which its index names")
    }
    let (frames, content) = (track.frames, AssetSample.Content.stored(packet.bytes))
    func time(_ ticks: Int64) -> MediaTime? {
      let (units, unitOverflow) = ticks.multipliedReportingOverflow(by: frames.refinement)
      let (distance, overflow) = units.subtractingReportingOverflow(frames.originTicks)
      let (scaled, scaleOverflow) = distance.multipliedReportingOverflow(by: frames.tickFactor)
      guard !unitOverflow, !overflow, !scaleOverflow else { return nil }
      return try? frames.time(ofTicks: scaled, offset: offset)
    }
    let decodeTime = packet.dts.flatMap(time)
    guard let number = numbers[index] else {
      return AssetSample(
        content, at: (packet.pts ?? packet.dts).flatMap(time) ?? .zero, decodedAt: decodeTime,
        duration: .zero, isKeyFrame: packet.isKeyFrame, isHidden: true)
    }
    let entry = frames.entries[number]
    return AssetSample(
      content, at: try frames.time(ofTicks: entry.ticks, offset: offset), decodedAt: decodeTime,
      duration: MediaTime(entry.duration, over: frames.timescale), isKeyFrame: entry.isKeyFrame)
  }
}

extension Packet {
  /// A copy of the packet's bytes.
  var bytes: [UInt8] { withBytes { Array($0) } }
}
