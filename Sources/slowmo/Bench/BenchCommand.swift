// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank

/// `slowmo bench`: measures the cost of the toolkit's work on this machine.
struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure the cost of capturing, writing, retiming and pitch on this machine.",
    discussion: """
      EXAMPLES
        slowmo bench capture synthetic:640x480@240 -t 0.5
        slowmo bench retime -t 0.5 --runs 1 --fps 30 --json
        slowmo bench capture --mode 320x240@120/grey -t 0.5 --json
        slowmo bench writer -t 0.5 --runs 1
        slowmo bench pitch -t 0.5 --runs 1 --pitch varispeed

      Two reports of --json are compared by slowmo bench diff.
      """,
    subcommands: [
      BenchCaptureCommand.self, BenchWriterCommand.self, BenchRetimeCommand.self,
      BenchPitchCommand.self, BenchDiffCommand.self,
    ])
}

/// The option for the directory of a benchmark's temporary files.
struct BenchDirectoryOptions: ParsableArguments {
  @Option(
    name: .customLong("folder"),
    help: "Directory for the temporary files. Default: /dev/shm, else TMPDIR.",
    completion: .directory)
  var directory: String?

  var path: String {
    if let directory { return directory }
    if access("/dev/shm", W_OK) == 0 { return "/dev/shm" }
    return getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
  }
}

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
