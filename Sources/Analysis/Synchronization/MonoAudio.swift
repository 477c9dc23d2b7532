// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// The audio of an asset as one channel, from the asset's time zero.
struct MonoAudio {
  let samples: [Float]
  let sampleRate: Int

  /// The greatest duration of audio that is read, in seconds.
  static let longest = 1_800.0

  /// Reads the audio, at most the first half hour.
  ///
  /// - Throws: `MediaError` with `.invalidData` for audio that cannot be decoded, `.cancelled`.
  init(_ asset: Asset, isCancelled: () -> Bool) throws(MediaError) {
    var reader = try AudioReader(asset)
    guard let track = asset.audioTrack else {
      throw MediaError(.invalidData, "\(asset.path) contains no audio")
    }
    let rate = track.sampleRate
    let end = min(
      max(0, track.startSample + track.sampleCount), Int64(Self.longest * Double(rate)))
    var samples: [Float] = []
    let share = 1 / Float(max(1, track.channelCount))
    while samples.count < end {
      if isCancelled() { throw .readingCancelled(asset) }
      let count = Int(min(48_000, end - Int64(samples.count)))
      let block = try reader.samples(from: Int64(samples.count), count: count)
      guard var mixed = block.first else { break }
      for channel in block.dropFirst() {
        for index in mixed.indices { mixed[index] += channel[index] }
      }
      // A damaged file may contain NaN or huge samples.
      samples += mixed.map { $0.isFinite && abs($0) < 1e6 ? $0 * share : 0 }
    }
    self.init(samples, sampleRate: rate)
  }

  init(_ samples: [Float], sampleRate: Int) {
    (self.samples, self.sampleRate) = (samples, sampleRate)
  }

  /// Returns the same audio at another rate, with the same length in time.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a rate that libswresample does not support.
  func converted(to rate: Int) throws(MediaError) -> MonoAudio {
    guard rate != sampleRate else { return self }
    let divisor = Self.commonDivisor(rate, sampleRate)
    do throws(CallFailure) {
      var resampler = try Resampler(
        inputRate: Int32(clamping: sampleRate / divisor),
        outputRate: Int32(clamping: rate / divisor), channelCount: 1)
      // Silence at the end flushes the last samples out of the filter.
      let tail = [Float](repeating: 0, count: resampler.filterLength)
      var result: [Float] = []
      for start in stride(from: 0, to: samples.count, by: 1 << 16) {
        let block = Array(samples[start..<min(samples.count, start + 1 << 16)])
        result += try resampler.convert([block]).first ?? []
      }
      result += try resampler.convert([tail]).first ?? []
      let count = Int(Double(samples.count) * Double(rate) / Double(sampleRate))
      return MonoAudio(Array(result.prefix(count)), sampleRate: rate)
    } catch {
      throw MediaError(.notConvertible, "audio of \(sampleRate) Hz cannot be used: \(error)")
    }
  }

  private static func commonDivisor(_ one: Int, _ other: Int) -> Int {
    var (one, other) = (one, other)
    while other > 0 { (one, other) = (other, one % other) }
    return max(1, one)
  }

  /// Returns the signal for ``AudioAlignment``, without frequencies below about 100 Hz.
  ///
  /// It contains a copy at a lower rate, for the coarse search.
  ///
  /// - Throws: `MediaError` as ``converted(to:)`` does.
  func signal() throws(MediaError) -> AudioAlignment.Signal {
    var filtered = samples
    let decay = Float(1 - 2 * 3.141_593 * 100 / Double(sampleRate))
    var (last, output): (Float, Float) = (0, 0)
    for index in filtered.indices {
      output = decay * (output + filtered[index] - last)
      last = filtered[index]
      filtered[index] = output
    }
    let coarse = try MonoAudio(filtered, sampleRate: sampleRate)
      .converted(to: AudioAlignment.coarseRate)
    return AudioAlignment.Signal(samples: filtered, coarse: coarse.samples)
  }
}
