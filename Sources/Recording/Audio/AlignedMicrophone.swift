// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore

/// The audio of a microphone, aligned to the time of a take.
final class AlignedMicrophone: AlignedAudio {
  /// The time to wait for late audio, in seconds.
  ///
  /// The sound card's buffer holds only 0.5 s, so audio that is still missing after this time has
  /// been lost by the card.
  ///
  /// Tests on busy machines use a longer time.
  @TaskLocal static var timeout: Int64 = 1

  private let feed: AudioTap
  private let device: String
  private var cursor: AudioTap.Cursor
  private var aligner: AudioAligner
  /// Aligned samples that the writer has not taken yet, an array for each channel.
  private var ready: [[Float]]
  /// Whether the next request for samples waits for late audio.
  ///
  /// False after a timeout, until audio arrives again.
  private var waitsLong = true

  /// Starts at the beginning of the take or, if that is later, at the oldest audio that the tap
  /// still contains.
  ///
  /// - Throws: `CallFailure` if the resampler cannot be created.
  init(_ feed: AudioTap, device: String, originMicroseconds: Int64) throws(CallFailure) {
    let origin = originMicroseconds.saturatingMultiplied(by: 1_000)
    self.feed = feed
    self.device = device
    cursor = feed.cursor(atNanoseconds: origin)
    do throws(CallFailure) {
      aligner = try AudioAligner(
        rate: feed.format.sampleRate, channelCount: feed.format.channelCount,
        originNanoseconds: origin)
    } catch { throw error.attributed(to: "correct the clock of", device) }
    ready = Array(repeating: [], count: feed.format.channelCount)
  }

  var account: RecordedAudio {
    var account = RecordedAudio()
    account.device = device
    account.startOffset = aligner.startOffset.map { .nanoseconds($0) }
    account.gaps = aligner.gaps
    account.driftPPM = aligner.driftPPM
    if aligner.startOffset != nil {
      account.maxSyncError = .nanoseconds(
        Int64(saturating: (aligner.worstError * 1_000_000_000).rounded()))
    }
    return account
  }

  func samplesReady(before end: Int64) throws(CallFailure) -> Int64 {
    try pull(before: end)
    // The video has been stored up to `end`, so the audio up to `end` has usually arrived too. If
    // the video comes from a file, it is stored faster than in real time, and the audio has not
    // arrived yet. The loop then waits until the audio is at most one timeout behind the video.
    let due = end - Self.timeout * Int64(feed.format.sampleRate)
    while waitsLong, aligner.outputCount < due, !feed.hasEnded {
      waitsLong = feed.wait(for: cursor, milliseconds: Int(Self.timeout) * 1_000)
      try pull(before: end)
    }
    if aligner.outputCount < due { try fill(before: due) }
    return min(end, aligner.outputCount)
  }

  func finish(before end: Int64) throws(CallFailure) {
    try pull(before: end)
    while aligner.outputCount < end,
      feed.wait(for: cursor, milliseconds: Int(Self.timeout) * 1_000)
    {
      try pull(before: end)
    }
    if aligner.outputCount < end { try fill(before: end, isLast: true) }
  }

  func take(_ count: Int) -> [[Float]] {
    let block = ready.map { Array($0.prefix(count)) }
    for channel in ready.indices { ready[channel].removeFirst(min(count, ready[channel].count)) }
    return block
  }

  /// Aligns the audio that has arrived, up to the output sample `end`.
  private func pull(before end: Int64) throws(CallFailure) {
    while aligner.outputCount < end, let piece = feed.read(&cursor) {
      waitsLong = true
      do throws(CallFailure) { keep(try aligner.align(piece)) } catch {
        throw error.attributed(to: "correct the clock of", device)
      }
    }
  }

  private func fill(before end: Int64, isLast: Bool = false) throws(CallFailure) {
    let cause = feed.hasEnded ? RecordedAudioGap.Cause.ended : .late
    do throws(CallFailure) {
      keep(try aligner.fill(before: end, cause, isLast: isLast))
    } catch { throw error.attributed(to: "correct the clock of", device) }
  }

  private func keep(_ samples: [[Float]]) {
    for channel in ready.indices { ready[channel] += samples[channel] }
  }
}
