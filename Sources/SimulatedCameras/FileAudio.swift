// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// The audio of a movie file that is played as a camera.
///
/// Sample 0 is the first sample of the file's preferred audio track.
struct FileAudio: KnownAudio {
  let sampleRate: Int
  let channelCount: Int
  /// The time of sample 0 in the file, in microseconds.
  let startMicroseconds: Int64
  /// The time of sample 0 in the file, in samples.
  private let firstSample: Int64
  private let path: String
  private let corrections: TimeCorrections?

  /// The rates and the number of channels with which a file can be a camera: memory is reserved for some
  /// seconds of its audio, and a block lasts 10 ms.
  private static let (rates, largestChannelCount) = (1_000...768_000, 64)

  /// Opens the audio of a file, and returns nil for a file without audio that can be decoded.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - corrections: The corrections of a clock that restarts; nil for any other file.
  init?(path: String, corrections: TimeCorrections?) {
    do throws(CallFailure) {
      let decoder = try FileAudioDecoder(path: path, corrections: corrections)
      guard let block = try decoder.nextBlock(), Self.rates.contains(block.rate),
        block.samples.count <= Self.largestChannelCount
      else { return nil }
      sampleRate = block.rate
      channelCount = block.samples.count
      startMicroseconds = block.time(inUnitsOf: 1_000_000) ?? 0
      firstSample = block.time(inUnitsOf: block.rate) ?? 0
    } catch { return nil }
    self.path = path
    self.corrections = corrections
  }

  func makeReader() -> any KnownAudioReader { FileAudioReader(self) }

  /// Opens a decoder that begins some blocks before a sample, or at the start of the file.
  fileprivate func open(before sample: Int64? = nil) throws(CallFailure) -> FileAudioDecoder {
    let decoder = try FileAudioDecoder(path: path, corrections: corrections)
    if let sample, let time = MediaTime(exactly: firstSample &+ sample, over: sampleRate) {
      try decoder.seek(before: time)
    }
    return decoder
  }

  /// Whether a decoder can begin at a sample other than the first.
  fileprivate var isSeekable: Bool { corrections == nil }

  /// The index of a block's first sample, according to the time of the block.
  fileprivate func index(of block: FileAudioBlock) -> Int64? {
    block.time(inUnitsOf: sampleRate).map { $0 &- firstSample }
  }
}

/// A decoded block of samples, an array for each channel.
private struct FileAudioBlock {
  let samples: [[Float]]
  let rate: Int
  /// The time of the first sample in units of `timeBase`; nil if the file states none.
  let ticks: Int64?
  let timeBase: Rational

  /// The time of the first sample, rounded to units of a fraction of a second.
  func time(inUnitsOf unitsPerSecond: Int) -> Int64? {
    guard let ticks, let scale = Int32(exactly: unitsPerSecond) else { return nil }
    return try? MediaTime(Rational(ticks) * timeBase)
      .converted(to: scale, rounding: .halfAwayFromZero).value
  }
}

/// Decodes the audio track of a file.
private final class FileAudioDecoder {
  private var demuxer: Demuxer
  private var decoder: Decoder
  private let track: TrackFormat
  private var isAtEnd = false

  init(path: String, corrections: TimeCorrections?) throws(CallFailure) {
    var demuxer = try Demuxer(opening: path)
    demuxer.corrections = corrections
    guard
      let track = demuxer.tracks.preferred(where: {
        $0.kind == .audio && $0.parameters.hasDecoder
      })
    else { throw CallFailure("find an audio track in", path, code: -22) }
    decoder = try Decoder(
      parameters: track.parameters, subject: path, timeBase: track.timeBase, threadCount: 1)
    self.track = track
    self.demuxer = demuxer
  }

  /// The time for which a decoder must run until its samples are those of a decoder that began at the
  /// start.
  ///
  /// AAC needs two packets, Opus 80 ms.
  private static let preRoll = MediaTime(1, over: 2).seconds

  /// Continues with the packets from ``preRoll`` before a time of the file.
  func seek(before time: MediaTime) throws(CallFailure) {
    let target = (time.seconds - Self.preRoll) / track.timeBase
    guard let ticks = try? target.rounded(.towardNegativeInfinity) else { return }
    try demuxer.seek(track: track.index, toPacketBefore: Int64(clamping: ticks))
  }

  func nextBlock() throws(CallFailure) -> FileAudioBlock? {
    while true {
      if let frame = try decoder.nextFrame() {
        guard let samples = frame.samples(), samples.first?.isEmpty == false else { continue }
        return FileAudioBlock(
          samples: samples, rate: frame.sampleRate, ticks: frame.pts, timeBase: track.timeBase)
      }
      guard !isAtEnd else { return nil }
      let packet = try demuxer.nextPacket()
      isAtEnd = packet == nil
      guard packet == nil || packet?.trackIndex == track.index else { continue }
      try decoder.send(packet)
    }
  }
}

/// Reads the audio of a file block by block.
private final class FileAudioReader: KnownAudioReader {
  private let audio: FileAudio
  private var decoder: FileAudioDecoder?
  private var block: [[Float]] = []
  /// The index of the first sample in the block.
  private var blockStart: Int64 = 0
  /// The index of the first sample that can be read without a restart, which is the end of the block
  /// before this one.
  private var start: Int64 = 0
  private(set) var end: Int64?

  /// The greatest deviation of a block's time that is taken for rounding, in seconds: 1/200.
  private static let roundingShare: Int64 = 200
  /// The longest gap that the times of blocks may show, in seconds.
  private static let longestGap: Int64 = 60
  /// The distance from which seeking costs less than decoding, in seconds.
  private static let seekDistance: Int64 = 10

  init(_ audio: FileAudio) { self.audio = audio }

  private var blockEnd: Int64 { blockStart + Int64(block.first?.count ?? 0) }

  func read(_ count: Int, from first: Int64, into target: UnsafeMutablePointer<Float>) {
    let last = first + Int64(count)
    target.update(repeating: 0, count: count * audio.channelCount)
    var position = max(0, first)
    guard position < end ?? .max else { return }
    if position < start || position - blockEnd > Int64(audio.sampleRate) * Self.seekDistance {
      move(to: position)
    }
    while position < last, position < end ?? .max {
      guard position < blockEnd else {
        advance()
        continue
      }
      position = max(position, blockStart)
      let stop = min(last, blockEnd)
      guard position < stop else { break }
      for sample in position..<stop {
        for channel in block.indices {
          target[Int(sample - first) * audio.channelCount + channel] =
            block[channel][Int(sample - blockStart)]
        }
      }
      position = stop
    }
  }

  /// Continues at the block that contains a sample, or earlier.
  private func move(to position: Int64) {
    decoder = nil
    block = []
    (start, blockStart) = (0, 0)
    guard audio.isSeekable, position > Int64(audio.sampleRate) * Self.seekDistance,
      let sought = try? audio.open(before: position), let next = try? sought.nextBlock(),
      let first = audio.index(of: next), (0...position).contains(first), accepts(next)
    else { return }
    (decoder, block) = (sought, next.samples)
    (start, blockStart) = (first, first)
  }

  private func accepts(_ block: FileAudioBlock) -> Bool {
    block.rate == audio.sampleRate && block.samples.count == audio.channelCount
  }

  /// Decodes the next block.
  ///
  /// Audio that cannot be decoded any further ends there.
  private func advance() {
    let before = blockEnd
    do throws(CallFailure) {
      if decoder == nil { decoder = try audio.open() }
      guard let next = try decoder?.nextBlock(), accepts(next) else {
        end = before
        return
      }
      let rate = Int64(audio.sampleRate)
      let stated = audio.index(of: next) ?? before
      // The times of a damaged file may be any numbers.
      let (gap, overflow) = stated.subtractingReportingOverflow(before)
      let isContinuous =
        overflow || gap.magnitude <= rate / Self.roundingShare || gap > rate * Self.longestGap
      block = next.samples
      start = before
      blockStart = isContinuous ? before : stated
    } catch { end = before }
  }
}
