// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// A change of sampling rate by a fraction, for planar float samples; one that is steered follows
/// a clock that is a little too fast or too slow.
///
/// libswresample with filters long enough that what it adds is more than 130 dB below the
/// signal: 128 taps, cut at 0.97 of the lower Nyquist frequency, Kaiser window of 14. The first
/// output sample lies on the first input sample. The value is the only owner of its `SwrContext`.
package struct Resampler: ~Copyable {
  /// The largest input rate that ``init(inputRate:outputRate:channelCount:)`` takes.
  ///
  /// The position is counted in steps of 1/4096 input sample, in 30 bits.
  package static let largestInputRate: Int32 = (1 << 18) - 1

  /// How many planes of samples go in and come out.
  package let channelCount: Int
  /// Never nil while this value lives; `swr_free` takes it by reference.
  private var context: OpaquePointer?
  /// The filter's length in input samples.
  package let filterLength: Int
  private let inputRate: Int32
  private var takenCount: Int64 = 0

  /// Makes a resampler that gives `outputRate` samples for each `inputRate` that it takes.
  ///
  /// Only their fraction matters; reduce it. The corresponding calls are `swr_alloc_set_opts2`
  /// and `swr_init`.
  ///
  /// - Parameters:
  ///   - inputRate: Above zero and up to ``largestInputRate``.
  ///   - outputRate: Above zero.
  ///   - channelCount: 1 to 64.
  /// - Throws: `ResamplerError` when the numbers are outside these limits, or without memory.
  package init(
    inputRate: Int32, outputRate: Int32, channelCount: Int
  ) throws(ResamplerError) {
    guard (1...Self.largestInputRate).contains(inputRate), outputRate > 0,
      (1...64).contains(channelCount)
    else { throw ResamplerError(operation: .open, code: CFFmpeg_EINVAL) }
    let narrowing = max(1, Double(inputRate) / Double(outputRate))
    let shift = Self.phaseShift(outputRate: outputRate, narrowing: narrowing)
    try self.init(
      inputRate: inputRate, outputRate: outputRate, channelCount: channelCount, phaseShift: shift,
      filterLength: Int((128 * narrowing / 0.97).rounded(.up)), flags: 0)
  }

  /// Makes a resampler that gives one sample for each that it takes, but for what
  /// ``steer(partsPerMillion:)`` sets.
  ///
  /// - Parameters:
  ///   - rate: Samples a second, from 1 to ``largestInputRate``; it sets nothing but the unit.
  ///   - channelCount: 1 to 64.
  /// - Throws: `ResamplerError` when the numbers are outside these limits, or without memory.
  package init(steeredAt rate: Int32, channelCount: Int) throws(ResamplerError) {
    guard (1...Self.largestInputRate).contains(rate), (1...64).contains(channelCount) else {
      throw ResamplerError(operation: .open, code: CFFmpeg_EINVAL)
    }
    // Between 4096 filters it interpolates; without the flag, equal rates pass untouched.
    try self.init(
      inputRate: rate, outputRate: rate, channelCount: channelCount, phaseShift: 12,
      filterLength: Int((128 / 0.97).rounded(.up)), flags: Int64(SWR_FLAG_RESAMPLE))
  }

  private init(
    inputRate: Int32, outputRate: Int32, channelCount: Int, phaseShift: Int64, filterLength: Int,
    flags: Int64
  ) throws(ResamplerError) {

    var layout = AVChannelLayout()
    av_channel_layout_default(&layout, Int32(channelCount))
    var sameLayout = layout  // A default layout owns no memory, so a copy is a whole one.
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
      throw ResamplerError(operation: .open, code: min(code, -1))
    }
    self.channelCount = channelCount
    self.filterLength = filterLength
    self.inputRate = inputRate
    self.context = context
  }

  /// The logarithm of the number of filters, one for each fraction of an input sample.
  ///
  /// With as many as the output rate, libswresample uses no other fraction, and more would cost
  /// memory (69 MB at a 32nd of the rate) for the same samples. Above 4096 it interpolates, and
  /// filters that are longer because they narrow the band need fewer.
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
    // `swr_free` also clears the variable that it is given; a copy of the pointer will do.
    var last = context
    swr_free(&last)
  }

  /// Takes samples, and gives all those that can be computed from what has come so far.
  ///
  /// The corresponding call is `swr_convert`.
  ///
  /// - Parameter input: One plane a channel, all of one length.
  /// - Returns: One plane a channel, all of one length, which may be zero.
  /// - Throws: `ResamplerError` when the planes do not fit the channels, or FFmpeg refuses.
  package mutating func convert(_ input: [[Float]]) throws(ResamplerError) -> [[Float]] {
    guard input.count == channelCount, let count = input.first?.count,
      let inputCount = Int32(exactly: count), input.allSatisfy({ $0.count == count })
    else { throw ResamplerError(operation: .convert, code: CFFmpeg_EINVAL) }
    let capacity = swr_get_out_samples(context, inputCount)
    guard capacity >= 0 else { throw ResamplerError(operation: .convert, code: capacity) }

    // One block for all planes each way: C wants an array of pointers.
    let source = UnsafeMutableBufferPointer<Float>.allocate(capacity: max(1, count * channelCount))
    let result = UnsafeMutableBufferPointer<Float>.allocate(
      capacity: max(1, Int(capacity) * channelCount))
    defer {
      source.deallocate()
      result.deallocate()
    }
    var sourcePlanes: [UnsafePointer<UInt8>?] = []
    var resultPlanes: [UnsafeMutablePointer<UInt8>?] = []
    for (channel, plane) in input.enumerated() {
      let part = source.extracting(channel * count..<(channel + 1) * count)
      _ = part.initialize(from: plane)
      sourcePlanes.append(Self.bytes(part.baseAddress).map { UnsafePointer($0) })
      let space = result.extracting(channel * Int(capacity)..<(channel + 1) * Int(capacity))
      resultPlanes.append(Self.bytes(space.baseAddress))
    }
    let made = swr_convert(context, &resultPlanes, capacity, &sourcePlanes, inputCount)
    guard made >= 0 else { throw ResamplerError(operation: .convert, code: made) }
    takenCount += Int64(count)
    return (0..<channelCount).map { channel in
      let start = channel * Int(capacity)
      return Array(result[start..<start + Int(made)])
    }
  }

  /// Takes more input, or less, for the same output from now on.
  ///
  /// The change is of the pace alone: between samples the sound goes on. The corresponding call is
  /// `swr_set_compensation`.
  ///
  /// - Parameter parts: How many samples more than a million are taken for a million, to the
  ///   nearest whole millionth or a little less; between -100 000 and 100 000.
  /// - Throws: `ResamplerError` when FFmpeg refuses.
  package mutating func steer(partsPerMillion parts: Double) throws(ResamplerError) {
    let parts = parts.isFinite ? max(-100_000, min(100_000, parts)) : 0
    // Over the longest time there is: before it is over there is another call.
    let distance: Int32 = 1_000_000_000
    let code = swr_set_compensation(context, Int32(-parts * 1_000), distance)
    guard code >= 0 else { throw ResamplerError(operation: .steer, code: code) }
  }

  /// Where the next output sample lies in the input, in samples from its first, exactly.
  package var nextPosition: Double {
    // A 2^20th of a sample is the unit that libswresample counts in.
    let delay = swr_get_delay(context, Int64(inputRate) << 20)
    return Double(takenCount) - Double(delay) / 0x1p20
  }

  /// A plane as C declares it, which knows only bytes.
  private static func bytes(_ plane: UnsafeMutablePointer<Float>?) -> UnsafeMutablePointer<UInt8>? {
    plane.map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: UInt8.self) }
  }
}

/// A failed call to libswresample: what was tried, and FFmpeg's reason.
package struct ResamplerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was tried, worded to complete "Could not …".
  package enum Operation: String, Sendable {
    case open = "set up a change of sampling rate"
    case convert = "change the sampling rate"
    case steer = "correct the sampling rate"
  }

  /// What was tried.
  package let operation: Operation
  /// The negative `AVERROR` code.
  package let code: Int32

  /// One sentence without a final period, for people.
  package var description: String {
    var text = [CChar](repeating: 0, count: 128)
    av_strerror(code, &text, text.count)
    let reason = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return "Could not \(operation.rawValue): \(String(decoding: reason, as: UTF8.self))"
  }
}
