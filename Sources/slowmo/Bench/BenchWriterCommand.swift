// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo bench writer`: times recording at full speed, instead of at the pace of a camera.
struct BenchWriterCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "writer",
    abstract: "Time the recording of a file, as fast as its frames can be written.",
    discussion: """
      EXAMPLES
        slowmo bench writer -t 0.5 --runs 1
        slowmo bench writer --mode 640x480@240/mjpg -t 0.5 --runs 1 --baseline ffmpeg

      The synthetic camera records a clip. The clip is then played as a camera and recorded again,
      as slowmo record file:CLIP?pace=max --audio none does. The time is that of the whole command.

      MANUAL
      ffmpeg copies the same clip: ffmpeg -i CLIP -c copy.
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
        slowmo: ["record", "file:\(path)?pace=max", "--audio", "none"],
        ffmpeg: ["-i", "file:" + path, "-map", "0:v", "-c", "copy"], container: "mov"))
    return try BenchDocument(report).print(common)
  }
}
