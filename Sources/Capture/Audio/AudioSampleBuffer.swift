// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// A block of captured audio samples and its capture time.
///
/// The block owns a copy of the samples.
public struct AudioSampleBuffer: Sendable {
  /// The sample format.
  public let format: AudioFormat
  /// The index of the first sample since the start of the stream, including lost samples.
  ///
  /// Without a gap, it equals the position of the previous block plus the ``sampleCount`` of that
  /// block.
  public let position: Int64
  /// The number of samples per channel.
  public let sampleCount: Int
  /// The capture time of the first sample, on the capture clock (`CLOCK_MONOTONIC`).
  ///
  /// The time is rounded to nanoseconds. It lies on a line fitted through many hardware timestamps,
  /// so it jitters less than a single timestamp.
  public let presentationTimeStamp: MediaTime
  /// The gap of lost samples before this block, or nil.
  public let gapBefore: AudioGap?
  private let bytes: [UInt8]

  init(
    format: AudioFormat, _ entry: AudioRing.Entry, bytes: [UInt8]
  ) {
    self.format = format
    position = entry.position
    sampleCount = entry.sampleCount
    presentationTimeStamp = MediaTime(nanoseconds: entry.nanoseconds)
    gapBefore = entry.gap
    self.bytes = bytes
  }

  /// The exact duration of the samples at the nominal sample rate.
  public var duration: MediaTime {
    // The initializer fails for a rate of zero and on overflow. The rate is above zero, and a block
    // is too short to overflow, so zero is never returned.
    MediaTime(exactly: sampleCount, over: format.sampleRate) ?? .zero
  }

  /// Calls a closure with the interleaved bytes, which are valid only during the call.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try bytes.span.withUnsafeBytes { (buffer) throws(Failure) in
      try body(buffer)
    }
  }

  /// The samples of a channel as numbers from -1 to 1.
  ///
  /// The first channel is 0. The array is empty if the channel does not exist.
  public func samples(ofChannel channel: Int) -> [Float] {
    guard (0..<format.channelCount).contains(channel) else { return [] }
    return bytes.withUnsafeBytes { format.samples(ofChannel: channel, in: $0) }
  }
}

extension AudioFormat {
  /// The samples of a channel as numbers from -1 to 1.
  package func samples(ofChannel channel: Int, in bytes: UnsafeRawBufferPointer) -> [Float] {
    let offset = channel * sampleFormat.byteCount
    return (0..<bytes.count / bytesPerSample).map { sample in
      Float(sampleFormat.value(in: bytes, at: sample * bytesPerSample + offset))
    }
  }
}

extension AudioFormat.SampleFormat {
  /// The sample at a byte offset as a number from -1 to 1.
  func value(in bytes: UnsafeRawBufferPointer, at offset: Int) -> Double {
    func whole<Whole: FixedWidthInteger & BitwiseCopyable>(_ type: Whole.Type) -> Whole {
      Whole(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
    }
    switch self {
    case .s16: return Double(whole(Int16.self)) * 0x1p-15
    // In this format the highest byte is unused. The shift discards it and moves the sign bit to
    // the top.
    case .s24: return Double(whole(Int32.self) &<< 8) * 0x1p-31
    case .s24Packed:
      let low = UInt32(whole(UInt16.self))
      let high = UInt32(bytes[offset + 2])
      return Double(Int32(bitPattern: low &<< 8 | high &<< 24)) * 0x1p-31
    case .s32: return Double(whole(Int32.self)) * 0x1p-31
    case .float: return Double(Float(bitPattern: whole(UInt32.self)))
    }
  }
}
