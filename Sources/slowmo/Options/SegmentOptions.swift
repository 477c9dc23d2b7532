// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The options of `record` that divide a recording into files.
struct SegmentOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: "Begin a new file after this much time; FILE is a template: game_{n:03}.mov.",
    transform: positiveDuration)
  var segment: MediaTime?

  @Option(
    parsing: .unconditional,
    help: """
      If the camera is lost, wait this long for it, then continue in the next file; FILE is a \
      template.
      """,
    transform: positiveDuration)
  var reconnect: MediaTime?

  /// Whether these options allow a recording with several files.
  var hasSeveralFiles: Bool { option != nil }

  /// The option of this group that was given, for messages; nil if none was given.
  var option: String? {
    segment != nil ? "--segment" : reconnect != nil ? "--reconnect" : nil
  }

  /// Checks these options against the other options of the command.
  func check(_ output: String, isTriggered: Bool, isBurst: Bool, hasTable: Bool) throws {
    guard let option else { return }
    if isTriggered { throw ValidationError("\(option) and --trigger exclude each other") }
    if reconnect != nil, isBurst {
      throw ValidationError("--burst and --reconnect exclude each other")
    }
    if hasTable {
      throw ValidationError(
        "--frames-csv excludes \(option): use slowmo frames --csv for each file")
    }
    do { _ = try ClipNames.template(output, for: option) } catch let error as CommandError {
      throw ValidationError(error.line)
    }
  }
}
