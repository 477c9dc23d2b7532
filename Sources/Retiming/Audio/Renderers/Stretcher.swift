// SPDX-License-Identifier: Apache-2.0

import CRubberBand
import OvercrankMediaCore

/// Rubber Band's R3 engine in real-time mode, with a time ratio that may change per block.
///
/// The struct owns its `RubberBandState` and buffers. The final flag of `rubberband_process` is
/// never set, because version 3.1.2 would then lose the last samples. To get them, feed further
/// input, such as silence, until enough output is available.
struct Stretcher: ~Copyable {
  /// The number of channels of input and output.
  let channelCount: Int
  /// The largest number of samples per block.
  static let blockLength = 512
  /// The number of padding samples to feed before the first input sample.
  ///
  /// The same number of output samples must be discarded.
  let padLength: Int
  let delay: Int
  /// The range of supported time ratios.
  let stretches: ClosedRange<Double>
  /// The number of output samples per channel so far.
  private(set) var produced: Int64 = 0
  private let state: RubberBandState
  private let input: UnsafeMutableBufferPointer<Float>
  private let output: UnsafeMutableBufferPointer<Float>

  private static let outputLength = 4096

  /// Creates an engine for a range of time ratios with `rubberband_new`.
  ///
  /// - Parameters:
  ///   - sampleRate: 8000 to 192000 Hz.
  ///   - channelCount: Above zero.
  ///   - stretches: The range of average time ratios, 1/64 to 64. The engine starts at the upper
  ///     bound.
  /// - Throws: `MediaError` with `.engine` if Rubber Band fails to start or is not R3.
  init(
    sampleRate: Int, channelCount: Int, stretches: ClosedRange<Double>
  ) throws(MediaError) {
    var options =
      RubberBandOptionProcessRealTime.rawValue | RubberBandOptionEngineFiner.rawValue
      | RubberBandOptionChannelsTogether.rawValue
    // Version 3.1.2 reads ahead to the next hop. At speeds from 8 to 16 (from 4 at sampling rates
    // below 44.1 kHz) that hop lies outside the analysis window. The read is then out of bounds
    // (analyseChannel, found with Valgrind), and the output may be NaN. If the range of ratios can
    // avoid these speeds, it is limited to the speeds below or above them. Otherwise the short
    // window is used, which does not read ahead.
    let harmful = 1.0 / 16..<(sampleRate < 44_100 ? 1.0 / 4 : 1.0 / 8)
    if stretches.lowerBound >= harmful.upperBound * 1.1 {
      self.stretches = harmful.upperBound * 1.01...32
    } else if stretches.upperBound <= harmful.lowerBound * 0.9 {
      self.stretches = 1.0 / 32...harmful.lowerBound * 0.99
    } else {
      options |= RubberBandOptionWindowShort.rawValue
      self.stretches = 1.0 / 32...32
    }
    guard
      let state = rubberband_new(
        UInt32(sampleRate), UInt32(channelCount), RubberBandOptions(options),
        stretches.upperBound, 1)
    else { throw MediaError(.engine, "Rubber Band did not start") }
    guard rubberband_get_engine_version(state) == 3 else {
      rubberband_delete(state)
      throw MediaError(.engine, "Rubber Band has no R3 engine; version 3 or later is needed")
    }
    self.channelCount = channelCount
    rubberband_set_max_process_size(state, UInt32(Self.blockLength))
    padLength = Int(rubberband_get_preferred_start_pad(state))
    delay = Int(rubberband_get_start_delay(state))
    self.state = state
    input = .allocate(capacity: Self.blockLength * channelCount)
    input.initialize(repeating: 0)
    output = .allocate(capacity: Self.outputLength * channelCount)
    output.initialize(repeating: 0)
  }

  deinit {
    rubberband_delete(state)
    input.deallocate()
    output.deallocate()
  }

  /// The number of samples that the next window still needs, at least 1.
  ///
  /// A block of this many samples completes exactly one window, so that each window can have its
  /// own time ratio, and its output fits into the engine's ring buffer.
  var required: Int { max(1, Int(rubberband_get_samples_required(state))) }

  /// Sets the time ratio for the windows that later blocks complete; clamped to `stretches`.
  func setRatio(_ stretch: Double) {
    rubberband_set_time_ratio(
      state, min(max(stretch, stretches.lowerBound), stretches.upperBound))
  }

  /// Processes one block and returns all available output.
  ///
  /// - Parameters:
  ///   - planes: The input, one plane per channel.
  ///   - range: The indices of the block's samples, at most `blockLength` and `required`.
  /// - Returns: One plane per channel, all of equal length, possibly empty.
  mutating func process(_ planes: Planes, _ range: Range<Int>) -> Planes {
    for channel in 0..<channelCount {
      _ = input.extracting((channel * Self.blockLength)...)
        .update(fromContentsOf: planes[channel][range])
    }
    let pointers = (0..<channelCount).map { channel in
      input.baseAddress.map { UnsafePointer($0 + channel * Self.blockLength) }
    }
    rubberband_process(state, pointers, UInt32(range.count), 0)
    var made = Planes(repeating: [], count: channelCount)
    // `rubberband_available` returns 0 if no output is ready yet, and -1 at the end. No more than
    // the available samples are retrieved, because Rubber Band would print a warning.
    while case let ready = rubberband_available(state), ready > 0 {
      retrieve(min(Int(ready), Self.outputLength), into: &made)
    }
    produced += Int64(made.sampleCount)
    return made
  }

  private func retrieve(_ count: Int, into made: inout Planes) {
    let planes = (0..<channelCount).map { channel in
      output.baseAddress.map { $0 + channel * Self.outputLength }
    }
    let got = Int(rubberband_retrieve(state, planes, UInt32(count)))
    for channel in 0..<channelCount {
      made[channel] += output.extracting(
        channel * Self.outputLength..<channel * Self.outputLength + got)
    }
  }
}
