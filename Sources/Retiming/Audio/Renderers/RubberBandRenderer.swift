// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The source at another speed and its own pitch, by Rubber Band, steered so that each moment comes
/// where the map has it.
///
/// A closed loop: before each small block the stretch is set from how far what has come out is from
/// where it should be. The engine by itself keeps only the average, and adds its own delay at every
/// change. Around onsets the map plays 1:1, since the engine spreads what it stretches: a click at
/// an eighth over 90 ms.
final class RubberBandRenderer: SegmentRenderer {
  private var stretcher: Stretcher
  private var map: TransientTimeMap
  private var detector: OnsetDetector?
  private var window: SourceWindow
  private var queue: SampleQueue
  /// The source sample from which positions in maps count, at which the engine starts.
  private let origin: Int64
  /// Where the piece itself starts, and the output sample at which the engine does.
  private let start: Double
  private let firstOutput: Int
  /// What of the source is stretched before the piece, to get the engine under way.
  private let leadStretch: Double
  /// How many samples of the source have been fed after the padding; less than zero before.
  private var fed: Int
  /// Over how many samples of the source an error is to be made up for.
  private let horizon: Double
  private let timeout: Int

  /// Makes a voice for a piece; `lead` samples before it and `tail` after it are made as well.
  ///
  /// The engine starts a tenth of a second earlier, on real samples: its windows are 43 ms to
  /// either side. In slow motion it does so at a stretch of 1, at which it gives the source's own
  /// waveform, so that the piece goes on from a neighbour at speed 1.
  init(_ piece: AudioPiece, sampleRate: Int, channelCount: Int) throws(MediaError) {
    let position = try piece.position(at: -piece.lead)
    let nearest = try position.wholeNumber(.towardNegativeInfinity, of: "the sample \(position)")
    let lead = sampleRate / 10
    let (first, overflow) = nearest.subtractingReportingOverflow(Int64(lead))
    guard !overflow else { throw MediaError(.notExact, "the sample \(position) is too far") }
    origin = first
    let base = try SpeedMap(piece, origin: first)
    let stretches = 1 / base.speeds.upperBound...1 / base.speeds.lowerBound
    start = base.source(at: Double(-piece.lead))
    leadStretch = min(1, 1 / base.speed(at: start))
    stretcher = try Stretcher(
      sampleRate: sampleRate, channelCount: channelCount, stretches: stretches)
    firstOutput = Int((Double(-piece.lead) - start * leadStretch).rounded())
    // As much before an onset as half a window, since it is heard from where it comes into one; and
    // less for accents, in which tones go on that the engine would rather stretch evenly.
    map = TransientTimeMap(
      base,
      TransientTimeMap.Extent(before: 40, after: 30, least: 0.15, sampleRate: sampleRate),
      bounds: base.source(at: 0)..<base.source(at: Double(piece.samples.count)))
    // What plays 1:1 must not be what the engine cannot do.
    let locks =
      stretches.lowerBound > (sampleRate < 44_100 ? 0.45 : 0.24) && stretches.upperBound <= 16
    detector = locks ? OnsetDetector(sampleRate: sampleRate, channelCount: channelCount) : nil
    window = SourceWindow(
      from: origin - Int64(stretcher.padLength), channelCount: channelCount)
    fed = -stretcher.padLength
    queue = SampleQueue(
      channelCount: channelCount,
      dropping: Int64(stretcher.delay) - piece.lead - Int64(firstOutput))
    horizon = 256 * Double(sampleRate) / 48_000
    // R3's latency is a window of the source and one of the output, each 4096 samples at 48 kHz
    // (measured: 6034 source samples at speed 2, 65536 at 32); and windows grow with the rate.
    timeout = 4 * 4096 * max(1, sampleRate / 24_000) * Int(max(1, base.speeds.upperBound) + 1)
  }

  func next(_ count: Int, _ read: SampleReader) throws -> Planes {
    var fruitless = 0
    while queue.count < count, fruitless < timeout {
      let before = queue.count
      try feed(read)
      fruitless = queue.count > before ? 0 : fruitless + stretcher.blockLength
    }
    return queue.take(count)
  }

  private func feed(_ read: SampleReader) throws {
    let length = stretcher.blockLength
    let ahead = detector == nil ? 0 : Int(map.extent.lookAhead)
    try window.read(
      upTo: origin + Int64(fed + length + Int(horizon) + ahead),
      { Self.encoded(try read($0, $1)) },
      seen: { block in
        guard var finder = detector.take() else { return }
        for onset in finder.append(block) {
          map.append(
            Double(onset.position - Int64(stretcher.padLength)),
            strength: onset.strength * onset.lockShare)
        }
        map.scanned(upTo: Double(finder.scanned - Int64(stretcher.padLength)))
        detector = finder
      })
    let index = Int(origin + Int64(fed) - window.range.lowerBound)
    let made = stretcher.process(window.planes, from: index, stretch: stretch)
    queue.append(Self.decoded(made))
    fed += length
    window.forget(before: origin + Int64(fed))
    map.forget(before: Double(fed - stretcher.padLength - 2 * length))
  }

  /// What to stretch the next window by.
  private var stretch: Double {
    // The middle of the next window: the padding is half of one. It should come out next, since
    // the engine's delay is as long. The window is complete with any sample of the block that is
    // fed now, on average with the one in the middle.
    let first = Double(fed - stretcher.padLength)
    guard first >= start || leadStretch < 1 else { return 1 }
    let position = first + Double(stretcher.blockLength) / 2
    let due = output(at: position + horizon)
    let plain = (due - output(at: position)) / horizon
    let wanted = (due - Double(stretcher.produced)) / horizon
    return min(max(plain + 0.2 * (wanted - plain), plain / 2), plain * 2)
  }

  /// Which sample the engine should give when a source position is in the middle of its window.
  private func output(at source: Double) -> Double {
    let offset =
      source < start
      ? map.output(at: start) - (start - source) * leadStretch : map.output(at: source)
    return offset - Double(firstOutput)
  }

  /// Two channels as their mean and half their difference, which the engine keeps together:
  /// as left and right it lets their phases drift apart (correlation .84 becomes .47 at 1/8).
  private static func encoded(_ planes: Planes) -> Planes {
    guard planes.count == 2 else { return planes }
    let pairs = zip(planes[0], planes[1])
    return [pairs.map { ($0 + $1) / 2 }, pairs.map { ($0 - $1) / 2 }]
  }

  private static func decoded(_ planes: Planes) -> Planes {
    guard planes.count == 2 else { return planes }
    let pairs = zip(planes[0], planes[1])
    return [pairs.map { $0 + $1 }, pairs.map { $0 - $1 }]
  }
}
