// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore

/// A sample rate converter for planar float audio.
///
/// The ratio of the rates is either fixed, or adjusted during conversion to follow a clock.
///
/// The filter is that of libswresample with 128 taps, a cutoff of 0.97 of the lower Nyquist
/// frequency, and a Kaiser window with beta 14. Artifacts are more than 130 dB below the signal.
/// The filter's delay is compensated: the first output sample has the time of the first input
/// sample. The value is the sole owner of its `SwrContext`.
package struct Resampler: ~Copyable {
  /// The maximum input rate of ``init(inputRate:outputRate:channelCount:)``.
  ///
  /// libswresample stores the product of the rate and the number of filter phases, 4096, in 30
  /// bits. The phases need 12 bits, so 18 bits remain for the rate.
  package static let largestInputRate: Int32 = (1 << 18) - 1

  /// The number of channels, each of which is one plane.
  package let channelCount: Int
  /// The libswresample context.
  ///
  /// The context is never nil while the value exists, but `swr_free` takes a pointer to an
  /// optional.
  private var context: OpaquePointer?
  /// The length of the filter in input samples.
  package let filterLength: Int
  private let inputRate: Int32
  private var takenCount: Int64 = 0

  /// Creates a resampler that outputs `outputRate` samples for every `inputRate` input samples.
  ///
  /// Only the ratio of the two rates matters. Pass it in lowest terms. Calls `swr_alloc_set_opts2`
  /// and `swr_init`.
  ///
  /// - Parameters:
  ///   - inputRate: Above zero, at most ``largestInputRate``.
  ///   - outputRate: Above zero.
  ///   - channelCount: From 1 to 64.
  /// - Throws: `CallFailure` if a number is out of range or memory is exhausted.
  package init(
    inputRate: Int32, outputRate: Int32, channelCount: Int
  ) throws(CallFailure) {
    guard (1...Self.largestInputRate).contains(inputRate), outputRate > 0,
      (1...64).contains(channelCount)
    else { throw ResamplerOperation.open.failure(CFFmpeg_EINVAL) }
    let narrowing = max(1, Double(inputRate) / Double(outputRate))
    let shift = Self.phaseShift(outputRate: outputRate, narrowing: narrowing)
    try self.init(
      inputRate: inputRate, outputRate: outputRate, channelCount: channelCount, phaseShift: shift,
      filterLength: Int((128 * narrowing / 0.97).rounded(.up)), flags: 0)
  }

  /// Creates a resampler with the ratio 1:1, which ``steer(partsPerMillion:)`` then adjusts.
  ///
  /// - Parameters:
  ///   - rate: Samples per second of both input and output, from 1 to ``largestInputRate``. The
  ///     value does not affect the result, because only the ratio of the two rates does.
  ///   - channelCount: From 1 to 64.
  /// - Throws: `CallFailure` if a number is out of range or memory is exhausted.
  package init(steeredAt rate: Int32, channelCount: Int) throws(CallFailure) {
    guard (1...Self.largestInputRate).contains(rate), (1...64).contains(channelCount) else {
      throw ResamplerOperation.open.failure(CFFmpeg_EINVAL)
    }
    // A phase shift of 12 makes 4096 filters, between which libswresample interpolates. At equal
    // rates, libswresample would only copy the samples. `SWR_FLAG_RESAMPLE` makes it resample.
    try self.init(
      inputRate: rate, outputRate: rate, channelCount: channelCount, phaseShift: 12,
      filterLength: Int((128 / 0.97).rounded(.up)), flags: Int64(SWR_FLAG_RESAMPLE))
  }

  private init(
    inputRate: Int32, outputRate: Int32, channelCount: Int, phaseShift: Int64, filterLength: Int,
    flags: Int64
  ) throws(CallFailure) {

    var layout = AVChannelLayout()
    av_channel_layout_default(&layout, Int32(channelCount))
    var sameLayout = layout  // A default channel layout owns no memory, so it can be copied.
    var context: OpaquePointer?
    var code = swr_alloc_set_opts2(
      &context, &layout, AV_SAMPLE_FMT_FLTP, outputRate, &sameLayout, AV_SAMPLE_FMT_FLTP,
      inputRate, 0, nil)
    if code >= 0, let handle = context {
      let options = UnsafeMutableRawPointer(handle)
      av_opt_set_int(options, "filter_size", 128, 0)
      av_opt_set_int(options, "phase_shift", phaseShift, 0)
      av_opt_set_int(options, "flags", flags, 0)
      av_opt_set_double(options, "cutoff", 0.97, 0)
      av_opt_set_double(options, "kaiser_beta", 14, 0)
      code = swr_init(handle)
    }
    guard code >= 0, context != nil else {
      swr_free(&context)
      throw ResamplerOperation.open.failure(min(code, -1))
    }
    self.channelCount = channelCount
    self.filterLength = filterLength
    self.inputRate = inputRate
    self.context = context
  }

  /// The base-2 logarithm of the number of filter phases.
  ///
  /// A phase is a filter for one fractional position between two input samples. With rates in
  /// lowest terms, the number of such positions equals the output rate. If there are at most 4096
  /// positions, each gets its own filter. For more positions, libswresample interpolates between
  /// 4096 filters.
  ///
  /// Downsampling needs longer filters, for which fewer phases suffice. Each halving of the rate
  /// therefore also halves the number of phases, down to 128. With 4096 phases, the filters for
  /// 1/32 of the input rate would take 69 MB.
  private static func phaseShift(outputRate: Int32, narrowing: Double) -> Int64 {
    var exact: Int64 = 0
    while 1 << exact < Int64(outputRate) { exact += 1 }
    guard exact > 12 else { return exact }
    var interpolated: Int64 = 12
    var remaining = narrowing
    while remaining >= 2, interpolated > 7 {
      remaining /= 2
      interpolated -= 1
    }
    return interpolated
  }

  deinit {
    // `swr_free` clears the variable that it receives, so it receives a copy.
    var last = context
    swr_free(&last)
  }

  /// Converts samples and returns all output that can be computed so far.
  ///
  /// Calls `swr_convert`.
  ///
  /// - Parameter input: An array for each channel, all of the same length.
  /// - Returns: One plane per channel, all of the same length, possibly empty.
  /// - Throws: `CallFailure` if the planes do not match the channels, or FFmpeg fails.
  package mutating func convert(_ input: [[Float]]) throws(CallFailure) -> [[Float]] {
    guard input.count == channelCount, let count = input.first?.count,
      let inputCount = Int32(exactly: count), input.allSatisfy({ $0.count == count })
    else { throw ResamplerOperation.convert.failure(CFFmpeg_EINVAL) }
    let capacity = swr_get_out_samples(context, inputCount)
    guard capacity >= 0 else { throw ResamplerOperation.convert.failure(capacity) }

    let (planes, made) = convertPlanes(
      context, input, channelCount: channelCount, capacity: Int(capacity))
    guard made >= 0 else { throw ResamplerOperation.convert.failure(made) }
    takenCount += Int64(count)
    return planes
  }

  /// Sets the ratio of input samples to output samples, which takes effect at the next output
  /// sample.
  ///
  /// The output continues without a discontinuity. Calls `swr_set_compensation`.
  ///
  /// - Parameter parts: The number of additional input samples that are consumed for a million
  ///   output samples, from -100 000 to 100 000, truncated to thousandths.
  /// - Throws: `CallFailure` if FFmpeg rejects the value.
  package mutating func steer(partsPerMillion parts: Double) throws(CallFailure) {
    let parts = parts.isFinite ? max(-100_000, min(100_000, parts)) : 0
    // libswresample ends a compensation after `distance` output samples. This distance lasts 5.8
    // hours at 48 kHz, and the next call comes much earlier.
    let distance: Int32 = 1_000_000_000
    let code = swr_set_compensation(context, Int32(-parts * 1_000), distance)
    guard code >= 0 else { throw ResamplerOperation.steer.failure(code) }
  }

  /// The exact position of the next output sample, in input samples after the first one.
  package var nextPosition: Double {
    // libswresample measures positions in units of 1/2^20 of a sample.
    let delay = swr_get_delay(context, Int64(inputRate) << 20)
    return Double(takenCount) - Double(delay) / 0x1p20
  }
}

/// Converts planes of audio with libswresample.
///
/// - Parameters:
///   - context: The conversion.
///   - input: An array for each channel of the input, all of the same length.
///   - channelCount: The number of channels of the output.
///   - capacity: The greatest number of samples per channel of the output.
/// - Returns: The planes of the output, and the result of `swr_convert`, which is negative if it failed.
private func convertPlanes(
  _ context: OpaquePointer?, _ input: [[Float]], channelCount: Int, capacity: Int
) -> (planes: [[Float]], code: Int32) {
  // C expects an array of pointers to planes. One allocation contains all planes.
  let count = input.first?.count ?? 0
  let length = max(1, count, capacity)
  let memory = UnsafeMutableBufferPointer<Float>.allocate(
    capacity: length * (input.count + channelCount))
  defer { memory.deallocate() }
  func plane(_ number: Int) -> UnsafeMutableBufferPointer<Float> {
    memory.extracting(number * length..<(number + 1) * length)
  }
  func bytes(_ number: Int) -> UnsafeMutablePointer<UInt8>? {
    plane(number).baseAddress
      .map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: UInt8.self) }
  }
  for (number, samples) in input.enumerated() { _ = plane(number).initialize(from: samples) }
  var inputs = input.indices.map { bytes($0).map { UnsafePointer($0) } }
  var outputs = (0..<channelCount).map { bytes(input.count + $0) }
  let made = swr_convert(
    context, &outputs, Int32(clamping: capacity), &inputs, Int32(clamping: count))
  let planes = (0..<channelCount).map { Array(plane(input.count + $0)[..<Int(max(0, made))]) }
  return (planes, made)
}

/// The calls to libswresample, as they stand in failures.
private enum ResamplerOperation {
  case open
  case convert
  case steer

  func failure(_ code: Int32) -> CallFailure {
    switch self {
    case .open: CallFailure("set up a change of", "sampling rate", code: code)
    case .convert: CallFailure("change", "the sampling rate", code: code)
    case .steer: CallFailure("correct", "the sampling rate", code: code)
    }
  }
}

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
    guard let context, Int32(exactly: first.count) != nil else {
      let silence = [Float](repeating: 0, count: first.count)
      if inputCount == 1 { return (0..<outputCount).map { $0 < 2 ? first : silence } }
      return (0..<outputCount).map { $0 < inputCount ? planes[$0] : silence }
    }
    // At equal rates there is no delay, so each call returns as many samples as it receives.
    return convertPlanes(context, planes, channelCount: outputCount, capacity: first.count).planes
  }
}
