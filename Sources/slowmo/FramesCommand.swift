// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Overcrank

/// `slowmo frames FILE`: single frames as PNG files, by number and by time.
struct FramesCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "frames",
    abstract: "Write single frames as PNG files, and the times of all of them as CSV.",
    discussion: """
      EXAMPLES
        slowmo frames take.mov --at 1 -o 'frame_{index:06}.png'
        slowmo frames take.mov --at 120f --at 1.25 -o 'frame_{index:06}_{us}.png'
        slowmo frames take.mov --range 0.5..0.52 -o 'impact/{index:06}.png' --csv impact.csv
        slowmo frames take.mov --csv times.csv

      In the name {index} is the frame's number from 0, {us} and {ms} its time, {name} the
      movie's name; {index:06} has six digits at least.
      """)

  @Argument(help: "The movie file.")
  var file: String

  @Option(
    parsing: .unconditional, help: "The frames of this range, such as 1.2..1.5.",
    transform: TimeRangeExpression.init(parsing:))
  var range: TimeRangeExpression?

  @Option(
    parsing: .unconditionalSingleValue, help: "The frame shown at this time; may be repeated.",
    transform: TimeExpression.init(parsing:))
  var at: [TimeExpression] = []

  @Option(name: .shortAndLong, help: "The files to write, such as 'dir/{index:06}.png'.")
  var output: String?

  @Option(help: "Write a line for each frame: number, times, sequence, what is missing.")
  var csv: String?

  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if range != nil && !at.isEmpty { throw ValidationError("--range and --at exclude each other") }
    if output == nil && csv == nil {
      throw ValidationError("nothing to write: give -o 'dir/{index:06}.png' or --csv FILE")
    }
  }
}
