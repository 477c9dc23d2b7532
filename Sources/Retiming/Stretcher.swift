// SPDX-License-Identifier: Apache-2.0

import CRubberBand

/// Rubber Band's R3 engine, offline, for planar float samples at one stretch.
///
/// The value is the only owner of its `RubberBandState`. It is never told the input's length
/// (`rubberband_set_expected_input_duration` holds 32 bits, which an hour at a 32nd overflows;
/// without it the samples are the same and there is only no end), and never told that a block is
/// the last (3.1.2 then loses the tail): feed what follows until enough has come out.
struct Stretcher: ~Copyable {
  /// How many planes of samples go in and come out.
  let channelCount: Int
  /// How many samples to feed at a time: what comes out of one block must fit the engine's ring
  /// of 65536 samples, or input is lost.
  let blockLength: Int
  private let state: RubberBandState

  /// Makes an engine whose output is `stretch` times as long as its input.
  ///
  /// The corresponding call is `rubberband_new`.
  ///
  /// - Parameters:
  ///   - sampleRate: 8000 to 192000 hertz.
  ///   - channelCount: Above zero.
  ///   - stretch: 1/32 to 32.
  /// - Throws: `RetimingError` with `.engine` when Rubber Band gives no engine, or not R3.
  init(sampleRate: Int, channelCount: Int, stretch: Double) throws(RetimingError) {
    var options =
      RubberBandOptionProcessOffline.rawValue | RubberBandOptionEngineFiner.rawValue
      | RubberBandOptionChannelsTogether.rawValue
    // Where one hop ahead of the window lies outside it, 3.1.2 reads past the end of its memory
    // (valgrind: analyseChannel, at speeds above 8 and below 16, or from 4 on below 44.1 kHz),
    // and what it finds there may be NaN. Short windows have no such look ahead.
    if stretch > 1.0 / 16, stretch < (sampleRate < 44_100 ? 1.0 / 4 : 1.0 / 8) {
      options |= RubberBandOptionWindowShort.rawValue
    }
    guard
      let state = rubberband_new(
        UInt32(sampleRate), UInt32(channelCount), RubberBandOptions(options), stretch, 1)
    else { throw RetimingError(.engine, "Rubber Band did not start") }
    guard rubberband_get_engine_version(state) == 3 else {
      rubberband_delete(state)
      throw RetimingError(.engine, "Rubber Band has no R3 engine; version 3 or later is needed")
    }
    self.channelCount = channelCount
    self.blockLength = max(1, min(512, Int(32768 / max(stretch, 1))))
    self.state = state
  }

  deinit { rubberband_delete(state) }

  /// Takes a block, and gives all that is ready; drained each time, as the engine needs it.
  ///
  /// - Parameter input: One plane a channel, each of `blockLength` samples or fewer.
  /// - Returns: One plane a channel, all of one length, which may be zero.
  mutating func process(_ input: [[Float]]) -> [[Float]] {
    let length = input.sampleCount
    Self.withPlanes(input, length) { planes in
      rubberband_process(state, planes, UInt32(length), 0)
    }
    var output = [[Float]](repeating: [], count: channelCount)
    // Asking for more than is ready prints a warning; nothing ready is 0, the end is -1.
    while case let ready = rubberband_available(state), ready > 0 {
      output.append(samples: retrieve(Int(ready)))
    }
    return output
  }

  private func retrieve(_ count: Int) -> [[Float]] {
    let memory = UnsafeMutableBufferPointer<Float>.allocate(capacity: count * channelCount)
    defer { memory.deallocate() }
    memory.initialize(repeating: 0)
    let planes = (0..<channelCount).map { channel in
      memory.baseAddress.map { $0 + channel * count }
    }
    let got = Int(rubberband_retrieve(state, planes, UInt32(count)))
    return (0..<channelCount).map { channel in
      Array(memory[channel * count..<channel * count + got])
    }
  }

  private static func withPlanes(
    _ input: [[Float]], _ length: Int, _ body: ([UnsafePointer<Float>?]) -> Void
  ) {
    let memory = UnsafeMutableBufferPointer<Float>.allocate(
      capacity: max(1, length * input.count))
    defer { memory.deallocate() }
    for (channel, plane) in input.enumerated() {
      _ = memory.extracting(channel * length..<(channel + 1) * length).initialize(from: plane)
    }
    body(
      input.indices.map { channel in
        memory.baseAddress.map { UnsafePointer($0 + channel * length) }
      })
  }
}
