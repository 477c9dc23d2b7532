// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

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
