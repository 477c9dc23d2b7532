// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc

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
