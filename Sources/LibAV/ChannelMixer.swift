// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// Converts planar float audio to another number of channels.
///
/// A single channel is copied to the two front channels at full level. All other conversions are
/// those of libswresample between the default speaker layouts. If a number of channels has no
/// default layout, only the first channels are kept. The value is the sole owner of its
/// `SwrContext`.
package struct ChannelMixer: ~Copyable {
  private let inputCount: Int
  private let outputCount: Int
  /// The libswresample context; nil if channels are only copied.
  private var context: OpaquePointer?

  /// Creates a mixer that converts the number of channels.
  ///
  /// Calls `swr_alloc_set_opts2` and `swr_init`.
  package init(from inputCount: Int, to outputCount: Int) {
    (self.inputCount, self.outputCount) = (inputCount, outputCount)
    guard inputCount > 1, inputCount != outputCount, inputCount <= 64, outputCount <= 64 else {
      return
    }
    var (input, output) = (AVChannelLayout(), AVChannelLayout())
    av_channel_layout_default(&input, Int32(inputCount))
    av_channel_layout_default(&output, Int32(outputCount))
    // Any sample rate can be passed here, because input and output have the same rate.
    guard
      swr_alloc_set_opts2(
        &context, &output, AV_SAMPLE_FMT_FLTP, 48_000, &input, AV_SAMPLE_FMT_FLTP, 48_000, 0, nil)
        >= 0, swr_init(context) >= 0
    else {
      swr_free(&context)
      return
    }
  }

  deinit {
    var last = context
    swr_free(&last)
  }

  /// Converts samples, one array for each channel, all of the same length.
  package func mixed(_ planes: [[Float]]) -> [[Float]] {
    guard planes.count == inputCount, inputCount != outputCount, let first = planes.first else {
      return planes
    }
    guard let context, let count = Int32(exactly: first.count) else {
      let silence = [Float](repeating: 0, count: first.count)
      if inputCount == 1 { return (0..<outputCount).map { $0 < 2 ? first : silence } }
      return (0..<outputCount).map { $0 < inputCount ? planes[$0] : silence }
    }
    let length = max(1, first.count)
    let memory = UnsafeMutableBufferPointer<Float>.allocate(
      capacity: length * (inputCount + outputCount))
    memory.initialize(repeating: 0)
    defer { memory.deallocate() }
    func plane(_ number: Int) -> UnsafeMutablePointer<UInt8>? {
      memory.extracting(number * length..<(number + 1) * length).baseAddress
        .map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: UInt8.self) }
    }
    for (number, samples) in planes.enumerated() {
      for (index, sample) in samples.prefix(first.count).enumerated() {
        memory[number * length + index] = sample
      }
    }
    var inputs = (0..<inputCount).map { plane($0).map { UnsafePointer($0) } }
    var outputs = (0..<outputCount).map { plane(inputCount + $0) }
    // At equal rates there is no delay, so each call returns as many samples as it receives.
    _ = swr_convert(context, &outputs, count, &inputs, count)
    return (0..<outputCount).map { number in
      let start = (inputCount + number) * length
      return Array(memory[start..<start + first.count])
    }
  }
}
