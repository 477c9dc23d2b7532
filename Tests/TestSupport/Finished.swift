// SPDX-License-Identifier: Apache-2.0

import Foundation
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// What a finished program said.
package struct Finished: Sendable {
  /// Its exit code, or 128 and the signal that ended it.
  package let status: Int32
  package let output: String
  package let errors: String

  /// The JSON document that the program printed, which is all it printed.
  package func document() throws -> [String: Any] {
    let value = try JSONSerialization.jsonObject(with: Data(output.utf8))
    guard let document = value as? [String: Any] else { throw CocoaError(.coderReadCorrupt) }
    return document
  }
}

/// Runs a program, found on the PATH unless it is a path, to its end.
///
/// - Throws: What kept it from being started.
package func run(
  _ program: String, _ arguments: [String], in folder: String? = nil
) async throws -> Finished {
  let executable: Executable =
    program.contains("/") ? .path(FilePath(program)) : .name(program)
  let result = try await Subprocess.run(
    executable, arguments: Arguments(arguments),
    workingDirectory: folder.map { FilePath($0) }, output: .string(limit: 64 << 20),
    error: .string(limit: 8 << 20))
  let status: Int32 =
    switch result.terminationStatus {
    case .exited(let code): code
    case .signaled(let signal): 128 + signal
    }
  return Finished(
    status: status, output: result.standardOutput, errors: result.standardError)
}

/// The command under test: what `SLOWMO` names, else the release build.
package let slowmoPath: String =
  ProcessInfo.processInfo.environment["SLOWMO"]
  ?? FileManager.default.currentDirectoryPath + "/.build/release/slowmo"

/// A folder of its own that goes away with the value.
package final class Scratch: Sendable {
  /// Its path, without a slash at the end.
  package let path: String

  package init(in parent: String? = nil) throws {
    path = (parent ?? NSTemporaryDirectory()) + "/overcrank-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in it.
  package func file(_ name: String) -> String { "\(path)/\(name)" }

  /// The names of what is in it, in order.
  package func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }
}
