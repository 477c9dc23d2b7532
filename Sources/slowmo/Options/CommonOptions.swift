// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// What every verb takes.
struct CommonOptions: ParsableArguments {
  @Flag(name: .long, help: "Print exactly one JSON document on standard output.")
  var json = false
}

/// What every verb that writes a file takes besides.
struct WritingOptions: ParsableArguments {
  @Flag(name: [.customShort("y"), .long], help: "Replace the output if it exists.")
  var overwrite = false

  @Option(help: "How to tell progress on standard error: auto, bar, plain, json or none.")
  var progress = ProgressStyle.auto

  @Flag(help: "Print what would be done, and write nothing.")
  var dryRun = false
}
