// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankMediaCore

/// What became of the sound of a take.
public struct RecordedAudio: Hashable, Sendable, Codable {
  /// Where it was heard: a microphone, or a camera that hears.
  public var device = ""
  /// The codec.
  public var codec = AudioCodec.pcm
  /// Samples a second in the file.
  public var sampleRate = 0
  /// Channels in the file.
  public var channelCount = 0
  /// Samples of each channel that belong to the take.
  public var sampleCount: Int64 = 0
  /// How much later than the first picture the sound begins.
  ///
  /// Until then the file is silent. Nil where nothing was heard at all.
  public var startOffset: Duration?
  /// Where sound is missing, in order; the file is silent there.
  public var gaps: [RecordedAudioGap] = []
  /// How much faster than the capture clock the device took its samples, in millionths, as the
  /// whole take shows it; nil for a take too short to tell.
  public var driftPPM: Double?
  /// The farthest that a sample was found from its place in time.
  public var maxSyncError: Duration?

  private enum CodingKeys: String, CodingKey {
    case device, codec, sampleRate, startOffset, gaps, maxSyncError
    case channelCount = "channels"
    case sampleCount = "samples"
    case driftPPM = "driftPpm"
  }
}

extension RecordedAudio {
  /// What became of the sound of a take that was paused: of the part before the pause, and of this
  /// one, which begins at a sample of the take.
  func joined(to earlier: RecordedAudio?, atSample start: Int64, rate: Int) -> RecordedAudio {
    guard let earlier else { return self }
    let offset = MediaTime(exactly: start, over: rate)?.wholeNanoseconds ?? 0
    var joined = self
    joined.startOffset = earlier.startOffset ?? startOffset.map { $0 + .nanoseconds(offset) }
    var late = gaps
    for index in late.indices {
      late[index].time = MediaTime(nanoseconds: late[index].time.wholeNanoseconds &+ offset)
    }
    joined.gaps = earlier.gaps + late
    joined.driftPPM = driftPPM ?? earlier.driftPPM
    joined.maxSyncError = [earlier.maxSyncError, maxSyncError].compactMap { $0 }.max()
    return joined
  }
}

/// Sound that is missing, and stands as silence in the file.
public struct RecordedAudioGap: Hashable, Sendable, Codable {
  /// Why it is missing.
  public enum Cause: String, Hashable, Sendable, CaseIterable, Codable {
    /// The card's buffer ran over: this program did not come to read it in time.
    case overrun
    /// The machine slept.
    case suspended
    /// Too many blocks waited for the writer.
    case outOfBuffers = "out_of_buffers"
    /// The microphone was away, and came back.
    case restart
    /// The connection was switched off for a while.
    case switchedOff = "switched_off"
    /// The times that the card tells jumped.
    case clockJump = "clock_jump"
    /// Nothing came, for a second or longer.
    case late
    /// The microphone ended before the take did.
    case ended
  }

  /// Where the silence begins, in the time of the file.
  public var time: MediaTime
  /// How long it is, in samples of the file.
  public var sampleCount: Int64
  /// Why the first of them is missing.
  public var cause: Cause

  private enum CodingKeys: String, CodingKey {
    case cause
    case time = "at"
    case sampleCount = "samples"
  }
}

extension RecordedAudioGap.Cause {
  init(_ interruption: AudioInterruption) {
    self =
      switch interruption {
      case .missing(.overrun): .overrun
      case .missing(.suspended): .suspended
      case .missing(.outOfBuffers): .outOfBuffers
      case .restart: .restart
      case .switchedOff: .switchedOff
      }
  }
}
