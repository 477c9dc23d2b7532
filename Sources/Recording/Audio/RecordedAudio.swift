// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankMediaCore

/// The report of a take's audio.
public struct RecordedAudio: Hashable, Sendable, Codable {
  /// The name of the device, which is a microphone or a camera with audio.
  public var device = ""
  /// The codec of the audio in the file.
  public var codec = AudioCodec.pcm
  /// The sample rate in the file, in hertz.
  public var sampleRate = 0
  /// The number of channels in the file.
  public var channelCount = 0
  /// The number of samples per channel in the take.
  public var sampleCount: Int64 = 0
  /// The time from the first frame to the first audio.
  ///
  /// The file contains silence before the first audio. Nil if no audio arrived.
  public var startOffset: Duration?
  /// The gaps in order.
  ///
  /// In a gap, the file contains silence.
  public var gaps: [RecordedAudioGap] = []
  /// The device's rate error relative to the capture clock, in parts per million.
  ///
  /// Nil for a take that is too short to measure.
  public var driftPPM: Double?
  /// The greatest measured synchronization error between audio and video.
  public var maxSyncError: Duration?

  private enum CodingKeys: String, CodingKey {
    case device, codec, sampleRate, startOffset, gaps, maxSyncError
    case channelCount = "channels"
    case sampleCount = "samples"
    case driftPPM = "driftPpm"
  }
}

extension RecordedAudio {
  /// The report of the audio in a range of samples.
  ///
  /// If the first audio comes after the range, the whole range is one gap.
  func part(_ samples: Range<Int64>, rate: Int) -> RecordedAudio {
    func nanoseconds(_ sample: Int64) -> Int64 {
      MediaTime(exactly: sample, over: rate)?.wholeNanoseconds ?? 0
    }
    let start = nanoseconds(samples.lowerBound)
    var part = self
    let end = Duration.nanoseconds(nanoseconds(samples.upperBound))
    if let startOffset, !samples.isEmpty, startOffset >= end {
      part.startOffset = nil
      part.gaps = [
        RecordedAudioGap(time: .zero, sampleCount: Int64(samples.count), cause: .late)
      ]
      return part
    }
    part.startOffset = startOffset.map { max(.zero, $0 - .nanoseconds(start)) }
    part.gaps = gaps.compactMap { gap in
      let first = TakeAudioTrack.sample(atMicroseconds: gap.time.wholeMicroseconds, rate: rate)
      let lost = (first..<first + gap.sampleCount).clamped(to: samples)
      guard !lost.isEmpty else { return nil }
      var gap = gap
      gap.time =
        lost.lowerBound == first
        ? MediaTime(nanoseconds: gap.time.wholeNanoseconds &- start)
        : MediaTime(nanoseconds: nanoseconds(lost.lowerBound) &- start)
      gap.sampleCount = Int64(lost.count)
      return gap
    }
    return part
  }

  /// Merges this report with the report of the audio before a pause.
  ///
  /// `start` is the index in the file of the first sample after the pause.
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

/// A gap in the audio of a take, which is silent in the file.
public struct RecordedAudioGap: Hashable, Sendable, Codable {
  /// The reason for a gap in the audio.
  public enum Cause: String, Hashable, Sendable, CaseIterable, Codable {
    /// The sound card's buffer overflowed because the program did not read the audio in time.
    case overrun
    /// The system was suspended.
    case suspended
    /// Too many audio blocks were waiting for the writer.
    case outOfBuffers = "out_of_buffers"
    /// The microphone was disconnected and connected again.
    case restart
    /// The connection from the microphone to the output was disabled temporarily.
    case switchedOff = "switched_off"
    /// The sound card's timestamps jumped.
    case clockJump = "clock_jump"
    /// No audio arrived for at least one second.
    case late
    /// The microphone stopped delivering before the end of the take.
    case ended
  }

  /// The start of the silence, in the time of the file.
  public var time: MediaTime
  /// The length of the silence in samples per channel.
  public var sampleCount: Int64
  /// The reason for the gap.
  ///
  /// If several gaps were merged, this is the cause of the first one. If that cause is
  /// ``Cause/late``, this is the cause of the next merged gap.
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
