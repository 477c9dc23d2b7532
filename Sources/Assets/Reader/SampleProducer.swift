// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Produces the samples of a track in order.
///
/// Used by one thread at a time.
protocol SampleProducer: AnyObject {
  /// The next sample, or nil at the end.
  func next() throws(MediaError) -> AssetSample?
}

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

/// The decoded frames of a track, in order of presentation.
final class DecodedFrames: SampleProducer {
  private var reader: FrameReader
  private let frames: FrameTable
  private let offset: Rational
  private let format: PixelFormat
  private let skipsUndecodable: Bool
  private var numbers: Range<Int>

  init(
    _ asset: Asset, _ track: AssetTrack, _ video: VideoTrack, _ range: TimeRange?,
    _ format: PixelFormat, _ undecodable: UndecodableFramePolicy
  ) throws(MediaError) {
    frames = video.frames
    offset = video.origin - asset.origin
    self.format = format
    skipsUndecodable = undecodable == .skip
    numbers = try video.frames.numbers(in: range, offset: offset)
    reader = try FrameReader(asset.choosing(track), undecodable: undecodable)
  }

  func next() throws(MediaError) -> AssetSample? {
    while let number = numbers.first {
      numbers.removeFirst()
      var image = PixelBuffer(format: format)
      do throws(MediaError) { try reader.copyFrame(at: number, into: &image) } catch {
        if skipsUndecodable, error.code == .invalidData { continue }
        throw error
      }
      let entry = frames.entries[number]
      return AssetSample(
        .image(image), at: try frames.time(ofTicks: entry.ticks, offset: offset),
        duration: MediaTime(entry.duration, over: frames.timescale), isKeyFrame: entry.isKeyFrame)
    }
    return nil
  }
}

/// The decoded audio of a track, block by block.
final class DecodedAudio: SampleProducer {
  private var reader: AudioReader
  private let sampleRate: Int
  private var positions: Range<Int64>

  private static let blockLength: Int64 = 4_096

  init(
    _ asset: Asset, _ track: AssetTrack, _ audio: AudioTrack, _ range: TimeRange?
  ) throws(MediaError) {
    sampleRate = audio.sampleRate
    positions = audio.startSample..<audio.startSample + audio.sampleCount
    if let range {
      let rate = Rational(Int64(audio.sampleRate))
      func position(at time: MediaTime) throws(MediaError) -> Int64 {
        let exact = try (time.seconds * rate).rounded(.towardPositiveInfinity)
        return Int64(clamping: exact)
      }
      positions = try (position(at: range.start)..<position(at: range.end)).clamped(to: positions)
    }
    reader = try AudioReader(asset.choosing(track))
  }

  func next() throws(MediaError) -> AssetSample? {
    guard let start = positions.first else { return nil }
    let count = min(Self.blockLength, positions.upperBound - start)
    positions = start + count..<positions.upperBound
    let samples = try reader.samples(from: start, count: Int(count))
    return AssetSample(
      .audio(samples), at: try MediaTime(Rational(Int128(start), over: Int128(sampleRate))),
      duration: try MediaTime(Rational(Int128(count), over: Int128(sampleRate))))
  }
}
