// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore

/// Where the sound of takes comes from; one serves any number of them, also at the same time.
struct TakeAudio: Sendable {
  /// What listens to it.
  let feed: AudioTap
  /// The device that hears.
  let device: String
  /// What it hears, where that is a function of time: takes need not listen to it then.
  let known: DeviceInput.Audio?

  /// Seconds of sound that are kept for a writer that is late.
  ///
  /// The queue of pictures holds two seconds of the largest that there may be, and so many more of
  /// those that compress well.
  private static let keptAudio = 30

  /// What a session's connection of sound gives to an output, from the session's next start or
  /// refresh of the output on; nil where there is none, or none is wanted.
  ///
  /// Of the time before a take begins, `seconds` more are kept.
  ///
  /// - Throws: `MediaError` with `.codecRefused` for a codec that does not take such sound.
  static func of(
    _ session: CaptureSession, into output: any CaptureOutput, _ settings: RecordingSettings,
    keeping seconds: Int
  ) throws(MediaError) -> TakeAudio? {
    let candidates = session.connections
    guard settings.recordsAudio,
      let connection = candidates.first(where: {
        $0.output === output && $0.mediaType == .audio
      }), connection.isEnabled
    else { return nil }
    // What a camera of the program's own hears need not be listened to, but for its level.
    let known = connection.camera?.audio
    guard
      let feed = try AudioTap(connection, seconds: known == nil ? Self.keptAudio + seconds : 1)
    else { return nil }
    let source = TakeAudio(feed: feed, device: connection.input.device.address, known: known)
    if let codec = settings.audioCodec, !source.suits(codec) {
      throw MediaError(
        .codecRefused,
        "\(codec.rawValue) takes no \(source.channelCount) channels of \(source.sampleRate) "
          + "samples a second, as \(source.device) gives them",
        recovery: Recovery("store the audio uncompressed, as PCM", .change(.audioCodec)))
    }
    return source
  }

  /// How it is to be stored: as the user wants, else AAC where that takes it and pictures are not
  /// stored without loss either.
  func codec(wanted: AudioCodec?, besideLossless isLossless: Bool) -> AudioCodec {
    wanted ?? (isLossless || !suits(.aac) ? .pcm : .aac)
  }

  /// Bytes a second of the sound as it is stored, and packets.
  func rates(_ codec: AudioCodec) -> FileLimits.Audio {
    FileLimits.Audio(
      bytesPerSecond: Int64(channelCount) * (codec == .pcm ? Int64(sampleRate) * 2 : 12_000),
      packetsPerSecond: Int64(AudioTrack.packetsPerSecond(atRate: sampleRate)))
  }

  /// Whether there is an encoder that takes it.
  private func suits(_ codec: AudioCodec) -> Bool {
    do throws(LibAVError) {
      _ = try Encoder(
        audioCodec: codec.rawValue, sampleRate: sampleRate, channelCount: channelCount)
      return true
    } catch { return false }
  }

  /// Samples a second.
  var sampleRate: Int { feed.format.sampleRate }
  var channelCount: Int { feed.format.channelCount }

  /// Keeps the sound of the frames that wait in a queue which is closed: what is heard while they
  /// are written must not take its place.
  func end(behind queue: FrameQueue) {
    guard let last = queue[queue.endNumber - 1] else { return }
    // A camera may have been silent for some seconds when it was switched off.
    let end = last.observation.microseconds &+ 10_000_000
    feed.end(afterNanoseconds: end.saturatingMultiplied(by: 1_000))
  }

  /// Begins to place the sound on the time of a take, whose first picture is of this time of the
  /// capture clock.
  ///
  /// - Throws: `LibAVError` when there is no memory.
  func aligned(fromMicroseconds origin: Int64) throws(LibAVError) -> any AlignedAudio {
    guard let known else {
      return try AlignedMicrophone(feed, device: device, originMicroseconds: origin)
    }
    return AlignedSyntheticAudio(
      known.source, device: device, originMicroseconds: origin &- known.epochMicroseconds())
  }
}

/// Sound on the time of a take: sample n is heard n sampling periods after the first picture.
///
/// One thread uses it.
protocol AlignedAudio: AnyObject {
  /// What became of it, so far.
  var account: RecordedAudio { get }

  /// How many samples there are by now, of those before `end`, which are wanted.
  ///
  /// - Throws: `LibAVError` when the clock's correction fails.
  func samplesReady(before end: Int64) throws(LibAVError) -> Int64

  /// The next samples of each channel; of those that are ready.
  func take(_ count: Int) -> [[Float]]

  /// Waits for the last samples of the take, but not long, and puts silence where none come.
  ///
  /// - Throws: `LibAVError` when the clock's correction fails.
  func finish(before end: Int64) throws(LibAVError)
}

/// The synthetic camera's sound, which is on the clock of its pictures and always there.
private final class AlignedSyntheticAudio: AlignedAudio {
  private let source: SyntheticAudio
  /// The source's sample that sounds at the take's zero.
  private let offset: Int64
  private var takenCount: Int64 = 0
  private(set) var account = RecordedAudio()

  init(_ source: SyntheticAudio, device: String, originMicroseconds: Int64) {
    self.source = source
    offset = AudioTrack.sample(
      atMicroseconds: originMicroseconds, rate: SyntheticAudio.sampleRate)
    account.device = device
    account.startOffset = .zero
    account.driftPPM = 0
    // What rounding to a whole sample moved it.
    let exact = originMicroseconds.saturatingMultiplied(by: 1_000)
    account.maxSyncError = MediaTime(exactly: offset, over: SyntheticAudio.sampleRate)
      .map { .nanoseconds(Int64(clamping: ($0.wholeNanoseconds &- exact).magnitude)) }
  }

  func samplesReady(before end: Int64) -> Int64 { end }

  func take(_ count: Int) -> [[Float]] {
    let samples = source.samples(from: offset + takenCount, count: count)
    takenCount += Int64(count)
    return Array(repeating: samples, count: SyntheticAudio.channelCount)
  }

  func finish(before end: Int64) {}
}
