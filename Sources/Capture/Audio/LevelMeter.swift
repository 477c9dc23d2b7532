// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import Synchronization

/// The level of an audio channel.
///
/// Values are in decibels relative to full scale (dBFS). 0 is the greatest possible sample value,
/// and silence is minus infinity. A full-scale sine has an average of -3.01 dBFS.
public struct AudioLevel: Hashable, Sendable {
  /// The root mean square over the last 300 ms, in dBFS.
  public let averageDBFS: Double
  /// The greatest absolute sample value of the last 300 ms, in dBFS.
  public let peakDBFS: Double

  /// Creates a level from the mean square and the greatest absolute value of samples from -1 to 1.
  init(power: Double, peak: Double) {
    averageDBFS = 10 * log10(power)
    peakDBFS = 20 * log10(peak)
  }
}

/// Measures the level of audio blocks on the capture thread.
///
/// Other threads read the results without a lock. The average and the peak of a channel are stored
/// in one atomic value, so both always describe the same 300 ms.
final class LevelMeter: Sendable {
  /// The number of 10 ms segments over which levels are measured.
  private static let pieceCount = 30

  /// The sum of squares and the peak of a channel's samples in one 10 ms segment.
  private struct Piece {
    var sumOfSquares = 0.0
    var peak = 0.0
  }

  private let format: AudioFormat
  /// The number of samples per channel in a 10 ms segment.
  private let pieceLength: Int
  // Used only by the capture thread. Each channel has a ring of complete segments, followed by the
  // segment that is being filled.
  private nonisolated(unsafe) let pieces: UnsafeMutablePointer<Piece>
  private nonisolated(unsafe) var filledPieces = 0
  private nonisolated(unsafe) var samplesInPiece = 0
  /// The power and the peak of each channel, as two packed 32-bit floats.
  private nonisolated(unsafe) let results: UnsafeMutablePointer<Atomic<UInt64>>

  init(_ format: AudioFormat) {
    self.format = format
    pieceLength = max(1, format.sampleRate / 100)
    let count = format.channelCount * (Self.pieceCount + 1)
    pieces = .allocate(capacity: count)
    pieces.initialize(repeating: Piece(), count: count)
    results = .allocate(capacity: format.channelCount)
    for channel in 0..<format.channelCount { (results + channel).initialize(to: Atomic(0)) }
  }

  deinit {
    pieces.deallocate()
    results.deinitialize(count: format.channelCount)
    results.deallocate()
  }

  /// The current level of each audio channel.
  var levels: [AudioLevel] {
    (0..<format.channelCount).map { channel in
      let bits = results[channel].load(ordering: .relaxed)
      return AudioLevel(
        power: Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits >> 32))),
        peak: Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))))
    }
  }

  /// Measures the samples of a block.
  ///
  /// Call this on the capture thread.
  func measure(_ bytes: UnsafeRawBufferPointer, sampleCount: Int) {
    var first = 0
    while first < sampleCount {
      let count = min(sampleCount - first, pieceLength - samplesInPiece)
      for channel in 0..<format.channelCount { measure(bytes, first, count, channel) }
      first += count
      samplesInPiece += count
      if samplesInPiece == pieceLength { finishPiece() }
    }
  }

  /// Resets the levels to silence at the end of the stream.
  func reset() {
    pieces.update(repeating: Piece(), count: format.channelCount * (Self.pieceCount + 1))
    (filledPieces, samplesInPiece) = (0, 0)
    for channel in 0..<format.channelCount { results[channel].store(0, ordering: .relaxed) }
  }

  private func measure(
    _ bytes: UnsafeRawBufferPointer, _ first: Int, _ count: Int, _ channel: Int
  ) {
    let position = channel * (Self.pieceCount + 1) + Self.pieceCount
    var piece = pieces[position]
    var offset = first * format.bytesPerSample + channel * format.sampleFormat.byteCount
    for _ in 0..<count {
      let value = format.sampleFormat.value(in: bytes, at: offset)
      piece.sumOfSquares += value * value
      piece.peak = max(piece.peak, abs(value))
      offset += format.bytesPerSample
    }
    pieces[position] = piece
  }

  private func finishPiece() {
    let slot = filledPieces % Self.pieceCount
    filledPieces += 1
    samplesInPiece = 0
    let length = Double(min(filledPieces, Self.pieceCount) * pieceLength)
    for channel in 0..<format.channelCount {
      let own = pieces + channel * (Self.pieceCount + 1)
      own[slot] = own[Self.pieceCount]
      own[Self.pieceCount] = Piece()
      var (sum, peak) = (0.0, 0.0)
      for index in 0..<Self.pieceCount {
        sum += own[index].sumOfSquares
        peak = max(peak, own[index].peak)
      }
      let (power, top) = (Float(sum / length).bitPattern, Float(peak).bitPattern)
      results[channel].store(UInt64(power) << 32 | UInt64(top), ordering: .relaxed)
    }
  }
}
