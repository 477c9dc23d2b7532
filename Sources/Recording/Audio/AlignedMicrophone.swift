// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore

/// A microphone's sound on the time of a take.
final class AlignedMicrophone: AlignedAudio {
  /// For how long after its time sound is waited for, in seconds; a card's buffer holds half of
  /// that.
  ///
  /// Tests, whose machine may be busy, wait longer for what is sure to come.
  @TaskLocal static var timeout: Int64 = 1

  private let feed: AudioTap
  private let device: String
  private var cursor: AudioTap.Cursor
  private var placer: AudioAligner
  /// The samples of each channel that are placed and not taken yet.
  private var ready: [[Float]]
  /// Whether late sound is worth to wait for: not again after it did not come.
  private var waitsLong = true

  /// Begins with what the feed still has of the take's beginning.
  ///
  /// - Throws: `LibAVError` when the clock's correction cannot be set up.
  init(_ feed: AudioTap, device: String, originMicroseconds: Int64) throws(LibAVError) {
    let origin = originMicroseconds.saturatingMultiplied(by: 1_000)
    self.feed = feed
    self.device = device
    cursor = feed.cursor(atNanoseconds: origin)
    do throws(ResamplerError) {
      placer = try AudioAligner(
        rate: feed.format.sampleRate, channelCount: feed.format.channelCount,
        originNanoseconds: origin)
    } catch { throw LibAVError("correct the clock of", device, code: error.code) }
    ready = Array(repeating: [], count: feed.format.channelCount)
  }

  var account: RecordedAudio {
    var account = RecordedAudio()
    account.device = device
    account.startOffset = placer.startOffset.map { .nanoseconds($0) }
    account.gaps = placer.gaps
    account.driftPPM = placer.driftPPM
    if placer.startOffset != nil {
      account.maxSyncError = .nanoseconds(
        Int64(saturating: (placer.worstError * 1_000_000_000).rounded()))
    }
    return account
  }

  func samplesReady(before end: Int64) throws(LibAVError) -> Int64 {
    try pull(before: end)
    // The pictures are that far, so whatever was heard then should long be here; unless they come
    // faster than they were captured, out of a queue or a file, and nobody had the time to hear it.
    let due = end - Self.timeout * Int64(feed.format.sampleRate)
    while waitsLong, placer.outputCount < due, !feed.hasEnded {
      waitsLong = feed.wait(for: cursor, milliseconds: Int(Self.timeout) * 1_000)
      try pull(before: end)
    }
    if placer.outputCount < due { try fill(before: due) }
    return min(end, placer.outputCount)
  }

  func finish(before end: Int64) throws(LibAVError) {
    try pull(before: end)
    while placer.outputCount < end,
      feed.wait(for: cursor, milliseconds: Int(Self.timeout) * 1_000)
    {
      try pull(before: end)
    }
    if placer.outputCount < end { try fill(before: end, isLast: true) }
    placer.end(at: end)
  }

  func take(_ count: Int) -> [[Float]] {
    let block = ready.map { Array($0.prefix(count)) }
    for channel in ready.indices { ready[channel].removeFirst(min(count, ready[channel].count)) }
    return block
  }

  /// Places what has been heard, as far as it is wanted.
  private func pull(before end: Int64) throws(LibAVError) {
    while placer.outputCount < end, let piece = feed.read(&cursor) {
      waitsLong = true
      do throws(ResamplerError) { keep(try placer.place(piece)) } catch { throw wrapped(error) }
    }
  }

  private func fill(before end: Int64, isLast: Bool = false) throws(LibAVError) {
    let cause = feed.hasEnded ? RecordedAudioGap.Cause.ended : .late
    do throws(ResamplerError) {
      keep(try placer.fill(before: end, cause, isLast: isLast))
    } catch { throw wrapped(error) }
  }

  private func keep(_ samples: [[Float]]) {
    for channel in ready.indices { ready[channel] += samples[channel] }
  }

  private func wrapped(_ error: ResamplerError) -> LibAVError {
    LibAVError("correct the clock of", device, code: error.code)
  }
}
