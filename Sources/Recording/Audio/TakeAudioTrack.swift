// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// The encoded audio of one file, which ends at the same time as the file's video.
///
/// If a take has several files, their audio is one sequence of samples: sample n belongs to the
/// time n sampling periods after the take's first frame, and is in exactly one file.
struct TakeAudioTrack: ~Copyable {
  /// The state of a take's audio at the end of a file, from which the next file continues.
  struct Continuation {
    let audio: any AlignedAudio
    /// The time in the take at which the file ends, in microseconds.
    let microseconds: Int64
    /// The number of aligned samples per channel in all files of the take so far.
    let sampleCount: Int64
    /// The last encoded samples of each channel.
    let recent: [[Float]]
  }

  private var blocks: TakeAudioEncoder
  private let source: TakeAudio
  /// The audio since the last pause, and the index in the file of its first sample.
  ///
  /// The index is negative if this audio started in an earlier file.
  private var (audio, start): (any AlignedAudio, Int64)
  /// The time in the take at which the file begins, in microseconds.
  private let fileStart: Int64
  /// The report of the audio before the last pause.
  private var earlier: RecordedAudio?
  private let codec: AudioCodec
  private let rate: Int
  private let channelCount: Int
  /// The number of samples per channel encoded so far.
  var sampleCount: Int64 { blocks.sampleCount }

  /// The description of the track for the file.
  ///
  /// - Throws: `CallFailure` if the file's container does not support the codec.
  func head(of path: String) throws(CallFailure) -> FragmentedMovieWriter.Track {
    try blocks.head(of: path)
  }

  /// Opens the encoder.
  ///
  /// `originMicroseconds` is the capture-clock time of the file's first frame. `earlier` is the
  /// audio at the end of the previous file, or nil for the first file.
  init(
    source: TakeAudio, codec: AudioCodec, originMicroseconds: Int64, after earlier: Continuation?
  ) throws(CallFailure) {
    let audio =
      if let earlier {
        earlier.audio
      } else {
        try source.aligned(fromMicroseconds: originMicroseconds)
      }
    self.blocks = try TakeAudioEncoder(
      codec: codec, sampleRate: source.sampleRate, channelCount: source.channelCount,
      after: earlier?.recent ?? [])
    (rate, channelCount) = (source.sampleRate, source.channelCount)
    self.codec = codec
    self.source = source
    (self.audio, start) = (audio, -(earlier?.sampleCount ?? 0))
    fileStart = earlier?.microseconds ?? 0
  }

  /// The state of the audio from which the take's next file continues.
  ///
  /// `end` is the time at which the next file begins, in microseconds of this file.
  func continuation(atMicroseconds end: Int64) -> Continuation {
    Continuation(
      audio: audio, microseconds: fileStart &+ end, sampleCount: sample(at: end) - start,
      recent: blocks.recent)
  }

  /// Converts a time of the file, in microseconds, to the index of the audio sample in the file.
  private func sample(at time: Int64) -> Int64 {
    Self.sample(atMicroseconds: fileStart &+ time, rate: rate)
      - Self.sample(atMicroseconds: fileStart, rate: rate)
  }

  /// The report of the audio encoded so far.
  var account: RecordedAudio { account(before: sampleCount) }

  /// The report of the file's audio before the sample `end`.
  private func account(before end: Int64) -> RecordedAudio {
    var account = audio.account.part(max(0, -start)..<max(0, end - start), rate: rate)
      .joined(to: earlier, atSample: max(0, start), rate: rate)
    account.codec = codec
    account.sampleRate = rate
    account.channelCount = channelCount
    account.sampleCount = sampleCount
    return account
  }

  /// The index of the sample nearest to a time; halves are rounded away from zero.
  static func sample(atMicroseconds time: Int64, rate: Int) -> Int64 {
    // An overflow of the time means that the driver's clock is broken. The result is then sample 0.
    (try? MediaTime(microseconds: time).converted(
      to: Int32(clamping: rate), rounding: .halfAwayFromZero
    ).value) ?? 0
  }

  /// Encodes the available audio up to a time of the file, in whole blocks.
  ///
  /// Returns the finished packets.
  mutating func advance(toMicroseconds time: Int64) throws(CallFailure) -> [Packet] {
    let end = sample(at: time)
    return try encode(upTo: start + (try audio.samplesReady(before: end - start)))
  }

  /// Ends the audio at a pause, and continues with the audio after it.
  ///
  /// `atMicroseconds` is the position of the pause in the file. `originMicroseconds` is the time at
  /// which the take continues, on the capture clock.
  mutating func resume(
    atMicroseconds time: Int64, originMicroseconds origin: Int64
  ) throws(CallFailure) -> [Packet] {
    let end = sample(at: time)
    try audio.finish(before: end - start)
    let packets = try encode(upTo: end)
    let left = Int(end - sampleCount) - blocks.restCount
    if left > 0 { blocks.keep(audio.take(left)) }
    earlier = account(before: end)
    (audio, start) = (try source.aligned(fromMicroseconds: origin), end)
    return packets
  }

  /// Encodes the remaining audio up to the end of the file, and flushes the encoder.
  mutating func finish(atMicroseconds time: Int64) throws(CallFailure) -> [Packet] {
    let end = sample(at: time)
    try audio.finish(before: end - start)
    let packets = try encode(upTo: end)
    let left = end - sampleCount
    if left > 0 { try encode(Int(left)) }
    return try packets + blocks.flush()
  }

  /// Encodes the whole blocks that end at or before the sample `end`.
  private mutating func encode(upTo end: Int64) throws(CallFailure) -> [Packet] {
    var packets: [Packet] = []
    // Several blocks may end before `end`, for example if frames were lost.
    while sampleCount + Int64(blocks.blockLength) <= end {
      try encode(blocks.blockLength)
      packets += try blocks.readyPackets()
    }
    return packets
  }

  private mutating func encode(_ count: Int) throws(CallFailure) {
    blocks.keep(audio.take(max(0, count - blocks.restCount)))
    try blocks.encode(count)
  }
}
