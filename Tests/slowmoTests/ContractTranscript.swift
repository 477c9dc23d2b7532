// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// What programs say to a list of calls, as a terminal would show it.
///
/// After each call stand its standard output, its standard error with `! ` before each line, and
/// its exit status. The width of help is fixed, and no terminal is asked.
struct Transcript {
  private(set) var text = ""
  /// Where the programs run; its path never appears.
  let folder: Scratch
  /// What hides figures of the machine.
  var mask: ContractMask
  /// Fake cameras that the command finds, as their driver reads them.
  var cameras: String?

  init(in folder: Scratch, mask: ContractMask = .none, cameras: String? = nil) {
    self.folder = folder
    self.mask = mask
    self.cameras = cameras
  }

  /// Runs the command, and notes what it says.
  ///
  /// - Parameter line: Its arguments as a shell reads them, with single quotes at most.
  /// - Returns: What it said.
  /// - Throws: What kept it from being started.
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
      "env", environment + [slowmoPath] + arguments, in: folder.path)
    note("\(cameras.map { "FAKEVIDEO='\($0)' " } ?? "")slowmo \(line)", finished)
    return finished
  }

  /// Runs a script, which finds the command as `$1`, and notes what is said.
  mutating func script(_ script: String, as line: String) async throws {
    let finished = try await run(
      "env", ["LC_ALL=C", "bash", "-c", script, "bash", slowmoPath], in: folder.path)
    note(line, finished)
  }

  /// Adds text of the test's own.
  mutating func add(_ more: String) { text += hidden(more) }

  private mutating func note(_ line: String, _ finished: Finished) {
    let output = mask.applied(to: finished.output)
    let errors =
      mask.showsErrors ? finished.errors.split(separator: "\n").map { "! \($0)\n" }.joined() : ""
    let end = output.isEmpty || output.hasSuffix("\n") ? "" : "\n"
    text += hidden("$ \(line)\n\(output)\(end)\(errors)= \(finished.status)\n\n")
  }

  /// Without paths of this machine.
  private func hidden(_ text: String) -> String {
    text.replacing(folder.path, with: "<folder>").replacing(slowmoPath, with: "<slowmo>")
  }
}

/// The fake cameras in front of programs.
enum FakeCameras {
  /// Built once.
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
