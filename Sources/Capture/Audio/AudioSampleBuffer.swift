// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// Captured sound with its time: some samples of all channels, in memory of their own.
public struct AudioSampleBuffer: Sendable {
  /// How the samples are stored.
  public let format: AudioFormat
  /// The number of the first sample since the stream began, those that are missing counted.
  ///
  /// Without a gap it is the last block's number and its ``sampleCount`` together.
  public let position: Int64
  /// Samples of each channel.
  public let sampleCount: Int
  /// When the first sample was heard, in the capture clock (CLOCK_MONOTONIC), to the nearest
  /// nanosecond: by the line through the hardware's time stamps.
  public let presentationTimeStamp: MediaTime
  /// What is missing before this block; nil where it follows the block before.
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

  /// How long the samples last by the card's label, exactly.
  public var duration: MediaTime {
    // The rate is above zero, and a block is short.
    MediaTime(exactly: sampleCount, over: format.sampleRate) ?? .zero
  }

  /// Shows the bytes, interleaved, which are valid inside the closure.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let result = bytes.withUnsafeBytes { buffer in
      Swift.Result { () throws(Failure) in try body(buffer) }
    }
    return try result.get()
  }

  /// The samples of a channel, counted from 0, as numbers between -1 and 1; none for a channel
  /// that there is not.
  public func samples(ofChannel channel: Int) -> [Float] {
    guard (0..<format.channelCount).contains(channel) else { return [] }
    return bytes.withUnsafeBytes { format.samples(ofChannel: channel, in: $0) }
  }
}

extension AudioFormat {
  /// The samples of a channel, as numbers between -1 and 1.
  func samples(ofChannel channel: Int, in bytes: UnsafeRawBufferPointer) -> [Float] {
    let offset = channel * sampleFormat.byteCount
    return (0..<bytes.count / bytesPerSample).map { sample in
      Float(sampleFormat.value(in: bytes, at: sample * bytesPerSample + offset))
    }
  }
}

extension AudioFormat.SampleFormat {
  /// The sample that begins at a byte, as a number between -1 and 1.
  func value(in bytes: UnsafeRawBufferPointer, at offset: Int) -> Double {
    func whole<Whole: FixedWidthInteger & BitwiseCopyable>(_ type: Whole.Type) -> Whole {
      Whole(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
    }
    switch self {
    case .s16: return Double(whole(Int16.self)) * 0x1p-15
    // Shifted up, what the highest byte holds is gone.
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
