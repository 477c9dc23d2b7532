// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A renderer that keeps the pitch, using Rubber Band, with closed-loop control of its timing.
///
/// Rubber Band alone only keeps the average time ratio, and applies each change late. So before
/// each block, the renderer sets a ratio that corrects the timing error of the output so far.
/// Around onsets the map runs 1:1, because Rubber Band smears transients: at 1/8 speed a click is
/// spread over 90 ms.
final class RubberBandRenderer: SegmentRenderer {
  private var stretcher: Stretcher
  private var map: TransientTimeMap
  private var detector: OnsetDetector?
  private var window: SourceWindow
  private var queue: SampleQueue
  /// The source sample at which the engine starts; positions in maps are relative to this sample.
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
  /// The largest timing error that is not corrected, in output samples.
  private let tolerance: Double
  /// The length of blocks, or nil where each block completes one window of the engine.
  ///
  /// Blocks that complete one window each give equal hops, which cost least. They are used only for
  /// stretches from 1 to 3. Below 1, blocks of a fixed length stay closer to the source: the
  /// spectral convergence of music at a stretch of 0.8 is -23.6 dB instead of -20.8 dB. Above 3,
  /// equal hops let the phases of partials drift apart: the loudness of a chord at a stretch of 8
  /// is up to 67 source samples late. With blocks of a fixed length, whose hops vary, it is only up
  /// to 37 samples late.
  private let fixedLength: Int?
  /// The time ratio of the last analysis window.
  private var ratio = 1.0
  private let timeout: Int

  /// Creates a renderer for a piece, including its lead and tail.
  ///
  /// The engine starts with the samples 0.1 s before the piece, because its windows reach 43 ms to
  /// each side. For slow motion the time ratio is 1 until the piece starts, which reproduces the
  /// source waveform. So the piece continues smoothly from a neighbor at speed 1.
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
    // other audio.
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
    tolerance = Double(sampleRate) / 10_000
    // A fixed block is shorter than a hop, so that each window can have its own time ratio.
    let isSteady = stretches.lowerBound >= 1 && stretches.upperBound <= 3
    fixedLength = isSteady ? nil : max(4, min(64, Int(128 / max(1, stretches.upperBound))))
    // The engine counts as stuck after this many source samples without output. The limit exceeds
    // R3's latency: a source window and an output window of 4096 samples each at 48 kHz, more at
    // higher sampling rates. In source samples, the length of the output window is multiplied by
    // the speed. Measured latencies: 6034 source samples at speed 2, and 65536 at speed 32.
    timeout = 4 * 4096 * max(1, sampleRate / 24_000) * Int(max(1, base.speeds.upperBound) + 1)
  }

  func next(_ count: Int, _ read: SampleReader) throws -> Planes {
    var fruitless = 0
    while queue.count < count, fruitless < timeout {
      let before = queue.count
      let length = try feed(read)
      fruitless = queue.count > before ? 0 : fruitless + length
    }
    return queue.take(count)
  }

  /// Feeds one block to the engine, and returns the block's length in samples.
  private func feed(_ read: SampleReader) throws -> Int {
    let required = fixedLength ?? stretcher.required
    let length = min(required, Stretcher.blockLength)
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
    if length == required {
      // The middle of the window lies half a window (the padding) before the newest sample of the
      // window. A window completes at any sample of a fixed block, on average at the middle of the
      // block.
      let newest = fed + (fixedLength == nil ? length : length / 2)
      ratio = stretch(at: Double(newest - stretcher.padLength))
      stretcher.setRatio(ratio)
    }
    let made = stretcher.process(window.planes, index..<index + length)
    queue.append(Self.decoded(made))
    fed += length
    window.forget(before: origin + Int64(fed))
    map.forget(before: Double(fed - stretcher.padLength))
    return length
  }

  /// Returns the time ratio for the window whose middle lies at a source position.
  private func stretch(at position: Double) -> Double {
    guard position >= start || leadStretch < 1 else { return 1 }
    let here = output(at: position)
    let plain = (output(at: position + horizon) - here) / horizon
    let error = here - Double(stretcher.produced)
    let wanted = min(max(plain + 0.2 * error / horizon, plain / 2), plain * 2)
    guard fixedLength == nil else { return wanted }
    // If two consecutive windows have different hops, the engine transforms one more spectrum,
    // which is a tenth of its work. So the ratio is kept while the timing error is small, or while
    // a correction would hardly change the ratio.
    if error.magnitude <= tolerance { return (plain * 0x1p20).rounded() * 0x1p-20 }
    return (wanted - ratio).magnitude <= ratio * 0.005 ? ratio : wanted
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
    return [sum(planes[0], planes[1], by: 0.5, 0.5), sum(planes[0], planes[1], by: 0.5, -0.5)]
  }

  private static func decoded(_ planes: Planes) -> Planes {
    guard planes.count == 2 else { return planes }
    return [sum(planes[0], planes[1], by: 1, 1), sum(planes[0], planes[1], by: 1, -1)]
  }

  /// Returns the weighted sum of two channels of one length.
  ///
  /// The unsafe buffers let the compiler use vector instructions. With `zip` and `map` instead, a
  /// spectral export executes 0.4 percent more instructions.
  private static func sum(
    _ first: [Float], _ second: [Float], by gain: Float, _ otherGain: Float
  ) -> [Float] {
    // For no samples, the array below would write to the storage that all empty arrays share.
    guard !first.isEmpty else { return [] }
    return [Float](unsafeUninitializedCapacity: first.count) { sum, count in
      first.withUnsafeBufferPointer { first in
        second.withUnsafeBufferPointer { second in
          for index in first.indices {
            sum.initializeElement(at: index, to: first[index] * gain + second[index] * otherGain)
          }
        }
      }
      count = first.count
    }
  }
}
