// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Options of every command.
struct CommonOptions: ParsableArguments, Sendable {
  @Flag(name: .long, help: "Print exactly one JSON document on standard output.")
  var json = false
}

/// Options of every command that writes a file.
struct WritingOptions: ParsableArguments, Sendable {
  @Flag(name: [.customShort("y"), .long], help: "Replace the output if it exists.")
  var overwrite = false

  @Option(help: "Progress on standard error: auto, bar, plain, json or none.")
  var progress = ProgressStyle.auto

  @Flag(help: "Print the plan and write nothing.")
  var dryRun = false
}
