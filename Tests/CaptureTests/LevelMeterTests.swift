// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankALSA
import OvercrankDeviceDiscovery
import TestSupport
import Testing

@testable import OvercrankCapture

/// The bytes of samples on all channels, as an audio card would deliver them.
private func bytes(
  _ format: AudioFormat, count: Int, _ wave: (_ sample: Int, _ channel: Int) -> Double
) -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: count * format.bytesPerSample)
  bytes.withUnsafeMutableBytes { bytes in
    guard let start = bytes.baseAddress else { return }
    for sample in 0..<count {
      for channel in 0..<format.channelCount {
        FakeAudioCard.store(
          wave(sample, channel), as: format.sampleFormat.layout,
          at: start + sample * format.bytesPerSample + channel * format.sampleFormat.byteCount)
      }
    }
  }
  return bytes
}

struct LevelMeterTests {
  @Test(arguments: AudioFormat.SampleFormat.allCases, [44_100, 48_000])
  func `The RMS level of a sine is 3.01 dB below its peak level`(
    layout: AudioFormat.SampleFormat, rate: Int
  ) {
    let format = AudioFormat(layout, sampleRate: rate, channelCount: 2)
    let (loud, quiet) = (1.0, pow(10, -12.0 / 20))
    let audio = bytes(format, count: rate) { sample, channel in
      let phase = 2 * Double.pi * 997 * Double(sample) / Double(rate)
      return (channel == 0 ? loud : quiet) * sin(phase)
    }
    let meter = LevelMeter(format)
    #expect(meter.levels.allSatisfy { $0.peakDBFS == -.infinity })
    // The audio blocks have random lengths.
    var random = SeededGenerator(seed: UInt64(rate))
    var first = 0
    while first < rate {
      let count = min(rate - first, Int.random(in: 1...1_000, using: &random))
      audio.withUnsafeBytes { audio in
        let piece = audio[first * format.bytesPerSample..<(first + count) * format.bytesPerSample]
        meter.measure(UnsafeRawBufferPointer(rebasing: piece), sampleCount: count)
      }
      first += count
    }
    let levels = meter.levels
    #expect(abs(levels[0].peakDBFS) < 0.01 && abs(levels[0].averageDBFS + 3.01) < 0.01)
    #expect(abs(levels[1].peakDBFS + 12) < 0.01 && abs(levels[1].averageDBFS + 15.01) < 0.01)
    meter.reset()
    #expect(meter.levels.allSatisfy { $0.averageDBFS == -.infinity })
  }

  @Test func `The level meter forgets samples after 300 ms`() {
    let format = AudioFormat(.s16, sampleRate: 48_000, channelCount: 1)
    let meter = LevelMeter(format)
    let (loud, silent) = (
      bytes(format, count: 480) { _, _ in 0.5 }, bytes(format, count: 480) { _, _ in 0 }
    )
    loud.withUnsafeBytes { meter.measure($0, sampleCount: 480) }
    #expect(abs(meter.levels[0].averageDBFS - 20 * log10(0.5)) < 0.001)
    for number in 1...30 {
      silent.withUnsafeBytes { meter.measure($0, sampleCount: 480) }
      let level = meter.levels[0]
      if number < 30 {
        #expect(abs(level.peakDBFS - 20 * log10(0.5)) < 0.001)
        #expect(abs(level.averageDBFS - 10 * log10(0.25 / Double(number + 1))) < 0.001)
      } else {
        #expect(level.peakDBFS == -.infinity && level.averageDBFS == -.infinity)
      }
    }
  }

  @Test(arguments: AudioFormat.SampleFormat.allCases)
  func `An audio sample reads back unchanged in each sample format`(
    layout: AudioFormat.SampleFormat
  ) {
    let format = AudioFormat(layout, sampleRate: 48_000, channelCount: 1)
    let values = [-1, -0.75, -0.5, 0, 0.25, 0.5, 0.96875]
    let stored = bytes(format, count: values.count) { sample, _ in values[sample] }
    let read = stored.withUnsafeBytes { stored in
      values.indices.map { layout.value(in: stored, at: $0 * format.bytesPerSample) }
    }
    #expect(read == values)
  }
}
