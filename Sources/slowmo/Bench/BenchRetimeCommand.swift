// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo bench retime [FILE]`: times an export.
struct BenchRetimeCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "retime",
    abstract: "Time an export of a whole clip at another speed.",
    discussion: """
      EXAMPLES
        slowmo bench retime -t 0.5 --runs 1
        slowmo bench retime -t 0.5 --fps 30 --runs 1 --baseline ffmpeg

      Without a file, the synthetic camera records a clip. Without --fps, the frames are copied. The
      audio is muted. The time is that of the whole command.

      MANUAL
      ffmpeg does the same work: with -itsscale and -c copy, or with the filters setpts and fps and
      the same encoder.
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
