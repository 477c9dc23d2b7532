// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import OvercrankLinuxSystem

/// The name that stands for standard output; `./-` is a file.
let standardOutput = "-"

/// The files that a verb is to write, looked at before anything is done.
struct OutputNames {
  private var outputs: Set<[UInt8]> = []
  private let inputs: [(name: String, place: FileLocation)]

  /// - Parameter inputs: The files that the verb reads.
  init(inputs: [String]) { self.inputs = inputs.map { ($0, FileLocation($0)) } }

  /// Adds a file to write.
  ///
  /// - Throws: `CommandError` where it is one of those that are read, or another one that is
  ///   written; whether a file may be replaced makes no difference.
  mutating func add(_ name: String) throws {
    guard name != standardOutput else {
      if !outputs.insert(name.systemBytes).inserted { throw Self.twice(name) }
      return
    }
    let place = FileLocation(name)
    if let input = inputs.first(where: { $0.place.isFile(of: place) }) {
      let path = input.name == name ? "" : ", which is \(input.name)"
      throw CommandError(
        .cannotCreate, code: "output_is_input", "\(name)\(path) is read: it cannot be written too",
        hint: "choose another name for the output")
    }
    if !outputs.insert(place.name).inserted { throw Self.twice(name) }
  }

  private static func twice(_ name: String) -> CommandError {
    .usage("\(name) cannot be two files at once", hint: "choose another name for one of them")
  }

  /// Refuses outputs of one verb that would destroy each other or what it reads.
  static func check(_ outputs: [String?], inputs: [String?]) throws {
    var names = OutputNames(inputs: inputs.compactMap(\.self))
    for output in outputs.compactMap(\.self) { try names.add(output) }
  }
}

extension CommonOptions {
  /// Refuses a document beside other data on standard output.
  func check(standardOutputFor option: String, _ name: String?) throws {
    guard json, name == standardOutput else { return }
    throw ValidationError("\(option) - and --json both write to standard output")
  }
}
