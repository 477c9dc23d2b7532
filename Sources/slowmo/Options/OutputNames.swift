// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import OvercrankLinuxSystem

/// The file name that stands for standard output.
///
/// A file that is really named `-` is written `./-`.
let standardOutput = "-"

/// The output files of a command.
///
/// The names are checked before any work starts.
struct OutputNames {
  private var outputs: Set<[UInt8]> = []
  private let inputs: [(name: String, location: FileLocation)]

  /// - Parameter inputs: The paths of files that the command reads.
  init(inputs: [String]) { self.inputs = inputs.map { ($0, FileLocation($0)) } }

  /// Adds an output file.
  ///
  /// - Throws: `CommandError` if the file is also an input or another output. `--overwrite` does
  ///   not change this.
  mutating func add(_ name: String) throws {
    guard name != standardOutput else {
      if !outputs.insert(name.systemBytes).inserted { throw Self.twice(name) }
      return
    }
    let location = FileLocation(name)
    if let input = inputs.first(where: { $0.location.isFile(of: location) }) {
      let path = input.name == name ? "" : " (the same file as \(input.name))"
      throw CommandError(
        .cannotCreate, code: "output_is_input", "\(name)\(path) is read: it cannot be written too",
        hint: "choose another name for the output")
    }
    if !outputs.insert(location.name).inserted { throw Self.twice(name) }
  }

  private static func twice(_ name: String) -> CommandError {
    .usage("\(name) is given for two outputs", hint: "choose another name for one of them")
  }

  /// Throws if two outputs of one command are the same file, or if an output is an input.
  static func check(_ outputs: [String?], inputs: [String?]) throws {
    var names = OutputNames(inputs: inputs.compactMap(\.self))
    for output in outputs.compactMap(\.self) { try names.add(output) }
  }
}

extension CommonOptions {
  /// Throws if JSON and other data would both go to standard output.
  func check(standardOutputFor option: String, _ name: String?) throws {
    guard json, name == standardOutput else { return }
    throw ValidationError("\(option) - and --json both write to standard output")
  }
}
