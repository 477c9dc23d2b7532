// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A renderer that keeps the pitch, using Rubber Band, with closed-loop control of its timing.
///
/// Rubber Band by itself keeps only the average time ratio, and applies each change late. So before
/// each block, the renderer sets a ratio that corrects the timing error of the output so far.
/// Around onsets the map runs 1:1, because Rubber Band smears transients: at 1/8 speed a click is
/// spread over 90 ms.
final class RubberBandRenderer: SegmentRenderer {
  private var stretcher: Stretcher
  private var map: TransientTimeMap
  private var detector: OnsetDetector?
  private var window: SourceWindow
  private var queue: SampleQueue
  /// The source sample at which the engine starts; positions in maps are relative to it.
  private let origin: Int64
  /// The source position of the piece's first rendered sample, including its lead (`start`), and
  /// the output sample at which the engine starts (`firstOutput`).
  ///
  /// The engine starts before the first rendered sample.
  private let start: Double
  private let firstOutput: Int
  /// The time ratio while the engine processes the source before `start`.
  private let leadStretch: Double
  /// The source sample to be fed next, relative to `origin`; negative while the engine gets its
  /// start padding.
  private var fed: Int
  /// The number of source samples within which a timing error should be corrected; a larger number
  /// gives smoother ratios.
  private let horizon: Double
  private let timeout: Int

  /// Creates a renderer for a piece, including its lead and tail.
  ///
  /// The engine starts 0.1 s earlier on real samples, because its windows reach 43 ms to each side.
  /// For slow motion the time ratio is 1 until the piece starts, which reproduces the source
  /// waveform. So the piece continues smoothly from a neighbor at speed 1.
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
    // An onset becomes audible as soon as an analysis window contains it, up to half a window
    // early. The 1:1 section therefore starts about half a window (40 ms) before the onset. Weak
    // onsets get shorter sections, because continuing tones around them sound smoother when the
    // engine stretches them evenly.
    map = TransientTimeMap(
      base,
      TransientTimeMap.Extent(before: 40, after: 30, least: 0.15, sampleRate: sampleRate),
      bounds: base.source(at: 0)..<base.source(at: Double(piece.samples.count)))
    // A 1:1 section needs a time ratio of 1, which the engine handles only if it is set up for
    // moderate speeds. At other speeds onsets are not detected, so they are stretched like all
    // audio.
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
    // The engine counts as stuck after this many source samples without output. The limit exceeds
    // R3's latency: a source window and an output window of 4096 samples each at 48 kHz, more at
    // higher sampling rates. In source samples, the output window counts times the speed. Measured
    // latencies: 6034 source samples at speed 2, and 65536 at speed 32.
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

  /// The time ratio for the next window.
  private var stretch: Double {
    // The ratio applies to the next window, so the timing error is measured at the middle of that
    // window. The middle lies half a window (the padding) before the newest sample. A window
    // completes at any sample of a block, on average at its middle, so half a block is added.
    let first = Double(fed - stretcher.padLength)
    guard first >= start || leadStretch < 1 else { return 1 }
    let position = first + Double(stretcher.blockLength) / 2
    let due = output(at: position + horizon)
    let plain = (due - output(at: position)) / horizon
    let wanted = (due - Double(stretcher.produced)) / horizon
    return min(max(plain + 0.2 * (wanted - plain), plain / 2), plain * 2)
  }

  /// Returns the engine's output sample that a source position should have, counted from the
  /// engine's first output sample.
  private func output(at source: Double) -> Double {
    let offset =
      source < start
      ? map.output(at: start) - (start - source) * leadStretch : map.output(at: source)
    return offset - Double(firstOutput)
  }

  /// Encodes stereo as mid and side, so that left and right stay in phase.
  ///
  /// If the engine gets left and right as its channels, their phases drift apart: at 1/8 speed a
  /// correlation of 0.84 falls to 0.47.
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
