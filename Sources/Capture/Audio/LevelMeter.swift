// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import Synchronization

/// How loud a channel is.
///
/// In decibels of full scale: 0 is the largest sample that there can be, and silence is minus
/// infinity. A sine whose peak is 0 has an average of -3.01.
public struct AudioLevel: Hashable, Sendable {
  /// The power over the last 300 ms, as that of a constant signal.
  public let averageDBFS: Double
  /// The largest sample of the last 300 ms.
  public let peakDBFS: Double

  /// Takes the mean of the squares and the largest size of samples between -1 and 1.
  init(power: Double, peak: Double) {
    averageDBFS = 10 * log10(power)
    peakDBFS = 20 * log10(peak)
  }
}

/// Measures blocks on the capture thread, where nobody has to take them for it.
///
/// What it found is read from other threads without a lock; average and peak of a channel are of
/// the same instant.
final class LevelMeter: Sendable {
  /// Pieces of 10 ms that make up the window.
  private static let pieceCount = 30

  /// What a piece of a channel held.
  private struct Piece {
    var sumOfSquares = 0.0
    var peak = 0.0
  }

  private let format: AudioFormat
  /// Samples of a piece.
  private let pieceLength: Int
  // The capture thread's own: for each channel the pieces in turn, then the one that is begun.
  private nonisolated(unsafe) let pieces: UnsafeMutablePointer<Piece>
  private nonisolated(unsafe) var filledPieces = 0
  private nonisolated(unsafe) var samplesInPiece = 0
  /// For each channel power and peak, as the bits of two floating-point numbers.
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

  /// The level of each channel.
  var levels: [AudioLevel] {
    (0..<format.channelCount).map { channel in
      let bits = results[channel].load(ordering: .relaxed)
      return AudioLevel(
        power: Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits >> 32))),
        peak: Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))))
    }
  }

  /// Measures the samples of a block; on the capture thread.
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

  /// Shows silence: no sound comes any more.
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
