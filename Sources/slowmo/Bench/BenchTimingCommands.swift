// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo bench writer`: times recording without a camera's pace.
struct BenchWriterCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "writer",
    abstract: "Time the recording of a file, as fast as its frames can be written.",
    discussion: """
      EXAMPLES
        slowmo bench writer -t 0.5 --runs 1
        slowmo bench writer --mode 1280x720@240/mjpg -t 0.5 --runs 1 --baseline ffmpeg --json

      The synthetic camera records a clip. The clip is then played as a camera and recorded as
      slowmo record file:CLIP?pace=max does. The time is that of the whole command. ffmpeg copies
      the same clip: ffmpeg -i CLIP -c copy.
      """)

  @OptionGroup var source: BenchSourceOptions
  @OptionGroup var timing: BenchTimingOptions
  @OptionGroup var common: CommonOptions

  func perform() throws -> ExitStatus {
    let bench = try BenchTiming(timing)
    let (path, asset) = try bench.source(nil, source, mode: "640x480@240/mjpg")
    let report = try bench.report(
      "writer", asset.benchMode,
      BenchTiming.Commands(
        slowmo: ["record", "file:\(path)?pace=max"],
        ffmpeg: ["-i", "file:" + path, "-map", "0:v", "-c", "copy"], container: "mov"))
    return try BenchDocument(report).print(common)
  }
}

/// `slowmo bench retime [FILE]`: times an export.
struct BenchRetimeCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "retime",
    abstract: "Time an export of a whole clip at another speed.",
    discussion: """
      EXAMPLES
        slowmo bench retime -t 0.5 --runs 1
        slowmo bench retime take.mov --fps 30 --runs 1 --baseline ffmpeg

      Without a file, the clip is one of the synthetic camera. Without --fps, the frames are
      copied. The audio is muted. The time is that of the whole command. ffmpeg does the same
      work: with -itsscale and -c copy, or with the filters setpts and fps and the same encoder.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String?

  @Option(help: "Source seconds per output second. Default: 1/8.", transform: Speed.init(parsing:))
  var speed = Speed(1, over: 8)

  @Option(help: "Export at this constant rate.", transform: FrameRate.init(parsing:))
  var fps: FrameRate?

  @OptionGroup var source: BenchSourceOptions
  @OptionGroup var timing: BenchTimingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws { try source.check(file) }

  func perform() throws -> ExitStatus {
    let bench = try BenchTiming(timing)
    let (path, asset) = try bench.source(file, source, mode: "640x480@240/mjpg")
    let slowmo = ["retime", path, "--speed", speed.description, "--pitch", "mute"]
    let factor = "\(1 / speed.fraction.doubleValue)"
    let commands =
      if let fps {
        BenchTiming.Commands(
          slowmo: slowmo + ["--fps", fps.description],
          ffmpeg: [
            "-i", "file:" + path, "-an", "-vf", "setpts=PTS*\(factor),fps=\(fps):round=up", "-c:v",
            "libx264", "-preset", "medium", "-crf", "18", "-movflags", "+faststart",
          ], container: "mp4")
      } else {
        BenchTiming.Commands(
          slowmo: slowmo + ["--copy"],
          ffmpeg: ["-itsscale", factor, "-i", "file:" + path, "-map", "0:v", "-c", "copy"],
          container: "mov")
      }
    let kind = fps.map { "\(ModeRequest(rate: $0))" } ?? "copied"
    let report = try bench.report("retime", "\(asset.benchMode), speed \(speed), \(kind)", commands)
    return try BenchDocument(report).print(common)
  }
}

/// `slowmo bench pitch [FILE]`: times the time stretching of audio.
struct BenchPitchCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "pitch",
    abstract: "Time an export whose audio is stretched by a time-pitch algorithm.",
    discussion: """
      EXAMPLES
        slowmo bench pitch -t 0.5 --runs 1
        slowmo bench pitch take.mov --pitch time-domain --runs 1 --baseline ffmpeg

      Without a file, the clip is one of the synthetic camera, which has a tone and clicks. Its
      frames are copied. The time is that of the whole command. ffmpeg stretches the audio alone,
      with the filter rubberband for spectral, asetrate for varispeed and atempo for the others.
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

  /// The filter of ffmpeg that is nearest to the algorithm.
  private func filter(_ sampleRate: Int) -> String {
    let tempo = speed.fraction.doubleValue
    switch pitch.algorithm {
    case .spectral: return "rubberband=tempo=\(tempo)"
    case .varispeed:
      return "asetrate=\(Double(sampleRate) * tempo),aresample=\(sampleRate)"
    default:
      // Each atempo filter supports tempos from 0.5 up.
      var (left, filters) = (tempo, [String]())
      while left < 0.5 {
        filters.append("atempo=0.5")
        left *= 2
      }
      return (filters + ["atempo=\(left)"]).joined(separator: ",")
    }
  }
}

extension Asset {
  /// The size, rate, format and duration of the movie, which two reports must share.
  var benchMode: String {
    let video = videoTrack.map { track in
      let rest = ModeRequest(rate: track.nominalFrameRate, fourcc: track.codec.rawValue)
      return "\(track.width)x\(track.height)\(rest)"
    }
    return "\(video ?? "no video"), \(duration.displayText) s"
  }
}
