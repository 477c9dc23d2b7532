// SPDX-License-Identifier: Apache-2.0

import CRubberBand
import OvercrankMediaCore

/// Rubber Band's R3 engine, in real-time mode, for planar float samples at a stretch that may
/// change with every block.
///
/// The value is the only owner of its `RubberBandState` and of its memory. The engine is never
/// told that a block is the last (3.1.2 then loses the tail): feed what follows until enough has
/// come out.
struct Stretcher: ~Copyable {
  /// How many planes of samples go in and come out.
  let channelCount: Int
  /// How many samples are fed at a time: fewer than lie between two of the engine's windows, so
  /// that each window has its own stretch, and so few that what comes out fits its ring.
  let blockLength: Int
  /// How many samples go in before the first one that is to come out, and how many that come out
  /// are to be thrown away.
  let padLength: Int
  let delay: Int
  /// What the engine can be set to without harm.
  let stretches: ClosedRange<Double>
  /// How many samples have come out.
  private(set) var produced: Int64 = 0
  private let state: RubberBandState
  private let input: UnsafeMutableBufferPointer<Float>
  private let output: UnsafeMutableBufferPointer<Float>

  private static let outputLength = 4096

  /// Makes an engine for a range of stretches.
  ///
  /// The corresponding call is `rubberband_new`.
  ///
  /// - Parameters:
  ///   - sampleRate: 8000 to 192000 hertz.
  ///   - channelCount: Above zero.
  ///   - stretches: What will be asked for on average, 1/64 to 64; it starts at the upper bound.
  /// - Throws: `MediaError` with `.engine` when Rubber Band gives no engine, or not R3.
  init(
    sampleRate: Int, channelCount: Int, stretches: ClosedRange<Double>
  ) throws(MediaError) {
    var options =
      RubberBandOptionProcessRealTime.rawValue | RubberBandOptionEngineFiner.rawValue
      | RubberBandOptionChannelsTogether.rawValue
    // Where one hop ahead of the window lies outside it, 3.1.2 reads past the end of its memory
    // (valgrind: analyseChannel, at speeds above 8 and below 16, or from 4 on below 44.1 kHz),
    // and what it finds there may be NaN. Short windows have no such look ahead.
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
    blockLength = max(4, min(64, Int(128 / max(stretches.upperBound, 1))))
    rubberband_set_max_process_size(state, UInt32(blockLength))
    padLength = Int(rubberband_get_preferred_start_pad(state))
    delay = Int(rubberband_get_start_delay(state))
    self.state = state
    input = .allocate(capacity: blockLength * channelCount)
    input.initialize(repeating: 0)
    output = .allocate(capacity: Self.outputLength * channelCount)
    output.initialize(repeating: 0)
  }

  deinit {
    rubberband_delete(state)
    input.deallocate()
    output.deallocate()
  }

  /// Takes a block, and gives all that is ready; drained each time, as the engine needs it.
  ///
  /// - Parameters:
  ///   - planes: One plane a channel.
  ///   - start: Where in them the block starts, of `blockLength` samples.
  ///   - stretch: For the windows that this block completes; one of `stretches` is set.
  /// - Returns: One plane a channel, all of one length, which may be zero.
  mutating func process(_ planes: Planes, from start: Int, stretch: Double) -> Planes {
    rubberband_set_time_ratio(
      state, min(max(stretch, stretches.lowerBound), stretches.upperBound))
    for channel in 0..<channelCount {
      for index in 0..<blockLength {
        input[channel * blockLength + index] = planes[channel][start + index]
      }
    }
    let pointers = (0..<channelCount).map { channel in
      input.baseAddress.map { UnsafePointer($0 + channel * blockLength) }
    }
    rubberband_process(state, pointers, UInt32(blockLength), 0)
    var made = Planes(repeating: [], count: channelCount)
    // Asking for more than is ready prints a warning; nothing ready is 0, the end is -1.
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
