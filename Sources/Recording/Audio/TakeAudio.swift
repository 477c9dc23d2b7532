// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import OvercrankSimulatedCameras

/// The source of audio for takes, any number of which may run concurrently.
struct TakeAudio: Sendable {
  /// The tap that receives the audio.
  let feed: AudioTap
  /// The name of the audio device.
  let device: String
  /// The audio of a simulated camera, whose samples are read on demand.
  ///
  /// Nil for real devices, whose samples are read from the tap.
  let known: DeviceInput.Audio?

  /// The length of the audio history that the tap keeps for a slow writer, in seconds.
  ///
  /// The tap must keep the audio of all frames in the queue. The queue has space for two seconds of
  /// frames of the greatest size, so it may contain many more seconds of smaller, compressed
  /// frames.
  private static let keptAudio = 30

  /// Creates the source for the session's audio connection to an output.
  ///
  /// The tap receives audio only after the next start of the session, or after
  /// `CaptureSession.refresh(_:)` for this output. `seconds` is the length of the audio history to
  /// keep from before the take, in addition to the 30 s for a slow writer.
  ///
  /// Returns nil if the settings exclude audio, if no audio connection is enabled, or if the take
  /// leaves out the audio (``omission(from:to:_:)``).
  ///
  /// - Throws: `MediaError` with `.codecRefused` if the codec does not support the audio format.
  static func of(
    _ session: CaptureSession, into output: any CaptureOutput, _ settings: RecordingSettings,
    keeping seconds: Int
  ) throws(MediaError) -> TakeAudio? {
    guard let connection = connection(from: session, to: output, settings) else { return nil }
    if let refusal = refusal(of: connection, settings) {
      if leavesOut(connection, settings) { return nil }
      throw refusal
    }
    // Known audio is read on demand, so its tap needs no history. The tap only measures levels.
    let known = connection.camera?.audio
    guard
      let feed = try AudioTap(connection, seconds: known == nil ? Self.keptAudio + seconds : 1)
    else { return nil }
    return TakeAudio(feed: feed, device: connection.input.device.address, known: known)
  }

  /// The session's audio connection to an output, or nil if there is none or the settings exclude audio.
  private static func connection(
    from session: CaptureSession, to output: any CaptureOutput, _ settings: RecordingSettings
  ) -> CaptureConnection? {
    let candidates = session.connections
    guard settings.recordsAudio,
      let connection = candidates.first(where: {
        $0.output === output && $0.mediaType == .audio
      }), connection.isEnabled
    else { return nil }
    return connection
  }

  /// The error with which a take cannot store the audio of a connection, or nil.
  private static func refusal(
    of connection: CaptureConnection, _ settings: RecordingSettings
  ) -> MediaError? {
    guard let format = connection.audioFormat else { return nil }
    // Without a codec in the settings, a file that may contain PCM stores every format.
    let fallsBack = settings.audioCodec == nil && MovieContainer(recording: settings.path) != .mp4
    let codec = settings.audioCodec ?? .aac
    guard !fallsBack, !suits(codec, format.sampleRate, format.channelCount) else { return nil }
    return MediaError(
      .codecRefused,
      "\(codec.rawValue) does not support \(format.channelCount) channels at \(format.sampleRate) "
        + "Hz, the format of \(connection.input.device.address)",
      recovery: settings.audioCodec == nil
        ? Recovery("name the file .mov, which stores the audio uncompressed")
        : Recovery("store the audio uncompressed, as PCM", .change(.audioCodec)))
  }

  /// Whether a take leaves out audio that it cannot store: that of a camera, with a codec that the
  /// program did not choose.
  private static func leavesOut(
    _ connection: CaptureConnection, _ settings: RecordingSettings
  ) -> Bool {
    connection.isOptional && settings.audioCodec == nil
  }

  /// The reason why a take leaves out the audio of its camera, or nil.
  static func omission(
    from session: CaptureSession, to output: any CaptureOutput, _ settings: RecordingSettings
  ) -> MediaError? {
    guard let connection = connection(from: session, to: output, settings),
      leavesOut(connection, settings)
    else { return nil }
    return refusal(of: connection, settings)
  }

  /// The codec to use.
  ///
  /// This is the requested codec, if any. Otherwise it is AAC, or PCM if AAC does not support the
  /// audio format or the video is lossless.
  func codec(wanted: AudioCodec?, besideLossless isLossless: Bool) -> AudioCodec {
    wanted ?? (isLossless || !Self.suits(.aac, sampleRate, channelCount) ? .pcm : .aac)
  }

  /// The data rate and packet rate of the encoded audio, in bytes and packets per second.
  func rates(_ codec: AudioCodec) -> FileLimits.Audio {
    FileLimits.Audio(
      bytesPerSecond: Int64(channelCount) * (codec == .pcm ? Int64(sampleRate) * 2 : 12_000),
      packetsPerSecond: Int64(TakeAudioEncoder.packetsPerSecond(atRate: sampleRate)))
  }

  /// Whether the encoder of a codec supports the audio format.
  private static func suits(
    _ codec: AudioCodec, _ sampleRate: Int, _ channelCount: Int
  ) -> Bool {
    do throws(CallFailure) {
      _ = try Encoder(
        audioCodec: codec.rawValue, sampleRate: sampleRate, channelCount: channelCount)
      return true
    } catch { return false }
  }

  /// The sample rate of the audio in hertz.
  var sampleRate: Int { feed.format.sampleRate }
  var channelCount: Int { feed.format.channelCount }

  /// Stops the tap 10 s after the last frame of a closed queue.
  ///
  /// While the queued frames are written, newer audio would otherwise replace the audio of these
  /// frames in the tap.
  func end(behind queue: FrameQueue) {
    guard let last = queue[queue.endNumber - 1] else { return }
    // If the camera delivered no frames for some seconds before it was stopped, the audio of these
    // seconds still belongs to the take. The tap therefore continues for 10 s after the last frame.
    let end = last.observation.microseconds &+ 10_000_000
    feed.end(afterNanoseconds: end.saturatingMultiplied(by: 1_000))
  }

  /// Starts to align audio to a take.
  ///
  /// `origin` is the time of the take's first frame on the capture clock.
  ///
  /// - Throws: `CallFailure` if memory is unavailable.
  func aligned(fromMicroseconds origin: Int64) throws(CallFailure) -> any AlignedAudio {
    guard let known else {
      return try AlignedMicrophone(feed, device: device, originMicroseconds: origin)
    }
    return AlignedKnownAudio(
      known.source, device: device, originMicroseconds: origin &- known.epochMicroseconds())
  }
}

/// Audio that is aligned to a take: sample n belongs to the time n sampling periods after the
/// take's first frame.
///
/// Used by one thread only.
protocol AlignedAudio: AnyObject {
  /// The report of the take's audio so far.
  var account: RecordedAudio { get }

  /// The number of samples that ``take(_:)`` can return now, without those at or after sample
  /// `end`.
  ///
  /// - Throws: `CallFailure` if the resampler fails.
  func samplesReady(before end: Int64) throws(CallFailure) -> Int64

  /// Removes the next `count` available samples of each channel.
  func take(_ count: Int) -> [[Float]]

  /// Waits a limited time for the last samples of the take, and fills the rest with silence.
  ///
  /// - Throws: `CallFailure` if the resampler fails.
  func finish(before end: Int64) throws(CallFailure)
}

/// The audio of a simulated camera.
///
/// It uses the same clock as the frames, and is always available.
private final class AlignedKnownAudio: AlignedAudio {
  private let reader: any KnownAudioReader
  private let sampleRate: Int
  private let channelCount: Int
  /// The index in the known audio of the sample at the first frame of the take.
  private let offset: Int64
  private var takenCount: Int64 = 0
  /// The samples that were read before they are taken, interleaved.
  private var rest: [Float] = []
  private(set) var account = RecordedAudio()

  init(_ source: any KnownAudio, device: String, originMicroseconds: Int64) {
    reader = source.makeReader()
    (sampleRate, channelCount) = (source.sampleRate, source.channelCount)
    offset = TakeAudioTrack.sample(atMicroseconds: originMicroseconds, rate: sampleRate)
    account.device = device
    account.startOffset = .nanoseconds(
      MediaTime(exactly: max(0, -offset), over: sampleRate)?.wholeNanoseconds ?? 0)
    account.driftPPM = 0
    // The audio starts at the sample nearest to the first frame. The synchronization error is the
    // distance between that sample and the frame.
    let exact = originMicroseconds.saturatingMultiplied(by: 1_000)
    account.maxSyncError = MediaTime(exactly: offset, over: sampleRate)
      .map { .nanoseconds(Int64(clamping: ($0.wholeNanoseconds &- exact).magnitude)) }
  }

  func samplesReady(before end: Int64) -> Int64 { end }

  func take(_ count: Int) -> [[Float]] {
    let kept = Array(rest.prefix(count * channelCount))
    let samples = kept + read(count - kept.count / channelCount)
    rest.removeFirst(kept.count)
    return (0..<channelCount).map { channel in
      (0..<count).map { samples[$0 * channelCount + channel] }
    }
  }

  /// Reads the next samples, interleaved.
  private func read(_ count: Int) -> [Float] {
    // For no samples, the array below would write to the storage that all empty arrays share.
    guard count > 0 else { return [] }
    let first = offset + takenCount
    takenCount += Int64(count)
    return [Float](unsafeUninitializedCapacity: count * channelCount) { buffer, total in
      if let start = buffer.baseAddress { reader.read(count, from: first, into: start) }
      total = count * channelCount
    }
  }

  func finish(before end: Int64) {
    // The last samples show whether the audio ends before them. A reader that has read them would have to
    // start again for earlier ones.
    rest = read(Int(max(0, end - takenCount)))
    guard let known = reader.end.map({ max(0, $0 - offset) }), known < end else { return }
    account.gaps.append(
      RecordedAudioGap(
        time: MediaTime(exactly: known, over: sampleRate) ?? .zero, sampleCount: end - known,
        cause: .ended))
  }
}
