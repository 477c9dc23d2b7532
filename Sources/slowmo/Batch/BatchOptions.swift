// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import OvercrankLinuxSystem

/// Options of the commands that export several files.
struct BatchOptions: ParsableArguments, Sendable {
  @Option(
    help: "Number of files to export at the same time; they share the processors. Default: 1.")
  var jobs: Int?

  /// The paragraph of the help about several inputs.
  static let explanation = """
    Several inputs are a batch: -o is a directory, or a template with {name} (of the input) or
    {n:03} (its number, from 1). A batch continues after a failure, and exits with its worst
    status. Run it again to resume: a finished output stores a digest of source, plan and version,
    and is kept. With -y, an output with another digest is replaced.
    """

  private static let fields = ["name", "n"]
  private static let maximumJobs = 32

  func validate() throws {
    if let jobs, !(1...Self.maximumJobs).contains(jobs) {
      throw ValidationError("--jobs \(jobs) is not 1 to \(Self.maximumJobs)")
    }
  }

  /// Returns whether inputs and output describe a batch, and not a single export.
  func isUsed(_ inputs: [String], _ output: String) throws -> Bool {
    inputs.count > 1 || jobs != nil || Self.isDirectory(output)
      || Self.fields.contains { output.contains("{\($0)}") || output.contains("{\($0):") }
  }

  /// Throws unless the output can belong to a batch of exports.
  ///
  /// `hasOwnRate` is true if another option chooses the frame rate.
  func check(_ output: String, _ exporting: ExportOptions, hasOwnRate: Bool = false) throws {
    guard !exporting.isProject(output) else {
      throw ValidationError(
        "a batch writes movies: name a directory or a template such as {name}.mov")
    }
    guard exporting.shard == nil, !exporting.join else {
      throw ValidationError(
        "--shard and --join export a single file: give one input and one output")
    }
    try exporting.check(output: output, hasOwnRate: hasOwnRate)
  }

  private static func isDirectory(_ output: String) -> Bool {
    output.hasSuffix("/") || SystemFiles.kind(of: output) == .directory
  }

  /// Returns the output of each input.
  ///
  /// If `output` is a directory, the outputs are files `NAME.mov` in it.
  ///
  /// - Throws: `CommandError` if two inputs have the same output, an output is an input, or a
  ///   directory is missing.
  static func outputs(of inputs: [String], _ output: String) throws -> [String] {
    let directory = output.hasSuffix("/") ? output : output + "/"
    let pattern = isDirectory(output) ? directory + "{name}.mov" : output
    let template = try NameTemplate(pattern, fields: fields)
    guard inputs.count == 1 || fields.contains(where: template.holds) else {
      throw CommandError.usage(
        "\(inputs.count) inputs would have the output \(output)",
        hint: "add the input's name or number: '{name}.mov' or 'slow_{n:03}.mov'")
    }
    let outputs = inputs.enumerated().map { index, input in
      template.name(["name": .text(input.fileStem), "n": .number(Int64(index) + 1)])
    }
    var names = OutputNames(inputs: inputs)
    for output in outputs { try names.add(output) }
    for directory in Set(outputs.map(\.parentDirectory)).sorted()
    where SystemFiles.kind(of: directory) != .directory {
      throw CommandError(
        .cannotCreate, code: "cannot_create", "the directory \(directory) does not exist",
        hint: "create it first")
    }
    return outputs
  }
}
