// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo bench pitch [FILE]`: times the time stretching of audio.
struct BenchPitchCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "pitch",
    abstract: "Time an export whose audio is stretched by a time-pitch algorithm.",
    discussion: """
      EXAMPLES
        slowmo bench pitch -t 0.5 --runs 1
        slowmo bench pitch -t 0.5 --pitch time-domain --runs 1 --baseline ffmpeg

      Without a file, the synthetic camera records a clip with a tone and clicks. Its frames are
      copied. The time is that of the whole command.

      MANUAL
      ffmpeg stretches the audio alone: with the filter rubberband for spectral, asetrate for
      varispeed, and atempo for the others.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String?

  @Option(help: "Source seconds per output second. Default: 1/8.", transform: Speed.init(parsing:))
  var speed = Speed(1, over: 8)

  @Option(help: "The time-pitch algorithm.")
  var pitch = PitchOption(.spectral)

  @OptionGroup var source: BenchSourceOptions
  @OptionGroup var timing: BenchTimingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    try source.check(file)
    if pitch.algorithm == .mute { throw ValidationError("--pitch mute stretches no audio") }
  }

  func perform() throws -> ExitStatus {
    let bench = try BenchTiming(timing)
    let (path, asset) = try bench.source(file, source, mode: "128x96@30/mjpg")
    guard let audio = asset.audioTrack else {
      throw CommandError(
        .badData, code: "unsupported_source", "\(path) has no audio",
        hint: "choose a movie with audio, or omit FILE")
    }
    let report = try bench.report(
      "pitch", "\(asset.benchMode), speed \(speed), \(pitch.defaultValueDescription)",
      BenchTiming.Commands(
        slowmo: [
          "retime", path, "--speed", speed.description, "--copy", "--pitch",
          pitch.otherSpeeds == .snapped ? PitchOption.snapping : pitch.algorithm.rawValue,
        ],
        ffmpeg: ["-i", "file:" + path, "-vn", "-af", filter(audio.sampleRate), "-c:a", "aac"],
        container: "mov"))
    return try BenchDocument(report).print(common)
  }

  /// The ffmpeg filter that is nearest to the chosen algorithm.
  private func filter(_ sampleRate: Int) -> String {
    let tempo = speed.fraction.doubleValue
    switch pitch.algorithm {
    case .spectral: return "rubberband=tempo=\(tempo)"
    case .varispeed:
      return "asetrate=\(Double(sampleRate) * tempo),aresample=\(sampleRate)"
    default:
      // An atempo filter supports only tempos of at least 0.5, so filters are chained for slower
      // tempos.
      var (left, filters) = (tempo, [String]())
      while left < 0.5 {
        filters.append("atempo=0.5")
        left *= 2
      }
      return (filters + ["atempo=\(left)"]).joined(separator: ",")
    }
  }
}
