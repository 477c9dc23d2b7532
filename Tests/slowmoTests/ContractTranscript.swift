// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// A list of command lines with their output, as a terminal would show them.
///
/// Each command line is followed by its standard output, its standard error with `! ` before each
/// line, and its exit status. The width of help texts is fixed.
struct Transcript {
  private(set) var text = ""
  /// The working directory.
  ///
  /// Its path is hidden in the transcript.
  let directory: Scratch
  /// The mask of values to hide.
  var mask: ContractMask
  /// The configuration of the fake cameras.
  var cameras: String?

  init(in directory: Scratch, mask: ContractMask = .none, cameras: String? = nil) {
    self.directory = directory
    self.mask = mask
    self.cameras = cameras
  }

  /// Runs the command, and adds its output.
  ///
  /// - Parameter line: The arguments, which may have single quotes.
  /// - Returns: The result of the command.
  /// - Throws: An error if the command could not be started.
  @discardableResult
  mutating func slowmo(_ line: String) async throws -> Finished {
    var environment = ["COLUMNS=100", "LC_ALL=C"]
    if let cameras {
      environment += ["FAKEVIDEO=\(cameras)", "LD_PRELOAD=\(try await FakeCameras.library())"]
    }
    let arguments = line.matches(of: /'([^']*)'|(\S+)/).map {
      String($0.output.1 ?? $0.output.2 ?? "")
    }
    let finished = try await run(
      "env", environment + [slowmoPath] + arguments, in: directory.path)
    note("\(cameras.map { "FAKEVIDEO='\($0)' " } ?? "")slowmo \(line)", finished)
    return finished
  }

  /// Runs a shell script, which has the command as `$1`, and adds the output.
  mutating func script(_ script: String, as line: String) async throws {
    let finished = try await run(
      "env", ["LC_ALL=C", "bash", "-c", script, "bash", slowmoPath], in: directory.path)
    note(line, finished)
  }

  /// Adds text that the test supplies.
  mutating func add(_ more: String) { text += hidden(more) }

  private mutating func note(_ line: String, _ finished: Finished) {
    let output = mask.applied(to: finished.output)
    let errors =
      mask.showsErrors ? finished.errors.split(separator: "\n").map { "! \($0)\n" }.joined() : ""
    let end = output.isEmpty || output.hasSuffix("\n") ? "" : "\n"
    text += hidden("$ \(line)\n\(output)\(end)\(errors)= \(finished.status)\n\n")
  }

  /// Replaces the paths of this machine in a text.
  private func hidden(_ text: String) -> String {
    text.replacing(directory.path, with: "<folder>").replacing(slowmoPath, with: "<slowmo>")
  }
}

/// The library with the driver of fake cameras, which programs preload.
enum FakeCameras {
  /// The built library.
  ///
  /// It is built once.
  private static let built = Task {
    let scratch = try Scratch()
    let library = scratch.file("libfakevideo.so")
    let built = try await run("\(checkout)/Tests/Tools/FakeVideo4Linux/build.sh", [library])
    try #require(built.status == 0, "\(built.errors)")
    return (library: library, scratch: scratch)
  }

  /// The path of the library to preload.
  static func library() async throws -> String { try await built.value.library }
}
