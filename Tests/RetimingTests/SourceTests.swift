// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// Audio segments of several sources.
struct SourceTests {
  private static let rate = 48_000

  private static func segment(
    _ start: Int64, _ count: Int64, at target: Int64, of source: AudioSegment.Source
  ) throws -> AudioSegment {
    func time(_ samples: Int64) throws -> MediaTime {
      MediaTime(samples, over: Int32(rate))
    }
    return AudioSegment(
      PlaybackMapping(
        try TimeMapping(
          source: TimeRange(start: time(start), duration: time(count)),
          target: TimeRange(start: time(target), duration: time(count)))), of: source)
  }

  @Test(arguments: [AudioTimePitchAlgorithm.spectral, .timeDomain, .varispeed, .lowQuality])
  func `Each audio segment reads its own source forward or backward`(
    algorithm: AudioTimePitchAlgorithm
  ) throws {
    // The source time continues across sources, so only the source id distinguishes them.
    let sources: [AudioSegment.Source] = [
      .init(id: 3), .init(id: 7), .init(id: 7, isReversed: true), .init(id: 3),
    ]
    let segments = try sources.enumerated().map { index, source in
      try Self.segment(Int64(index) * 100, 100, at: Int64(index) * 100, of: source)
    }
    let retimer = try AudioRetimer(algorithm: algorithm, sampleRate: Self.rate, channelCount: 1)
    var made: [Float] = []
    _ = try retimer.render(
      segments: segments,
      read: { source, start, count in
        let sign: Float = source.isReversed ? -1 : 1
        return [(0..<count).map { sign * (Float(source.id) + Float(start + Int64($0)) / 1_000) }]
      },
      write: { made += $0[0] })
    let wanted = (0..<400).map { index -> Float in
      let source = sources[index / 100]
      return (source.isReversed ? -1 : 1) * (Float(source.id) + Float(index) / 1_000)
    }
    #expect(made == wanted)
  }
}
