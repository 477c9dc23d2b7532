// SPDX-License-Identifier: Apache-2.0

import Foundation
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The result of a finished program.
package struct Finished: Sendable {
  /// The exit code, or 128 plus the number of the terminating signal.
  package let status: Int32
  package let output: String
  package let errors: String

  /// The JSON document that is the program's whole output.
  package func document() throws -> [String: Any] {
    let value = try JSONSerialization.jsonObject(with: Data(output.utf8))
    guard let document = value as? [String: Any] else { throw CocoaError(.coderReadCorrupt) }
    return document
  }
}

/// Runs a program until it ends.
///
/// A name without a slash is searched in PATH.
///
/// - Throws: The error that prevented the start.
package func run(
  _ program: String, _ arguments: [String], in directory: String? = nil
) async throws -> Finished {
  var executable: Executable = program.contains("/") ? .path(FilePath(program)) : .name(program)
  var arguments = arguments
  if let forkServers, [slowmoPath, "ffmpeg", "ffprobe"].contains(program) {
    executable = .path(FilePath("\(forkServers)/client"))
    let name = program.split(separator: "/").last ?? ""
    arguments = ["\(forkServers)/\(name)", program] + arguments
  }
  let result = try await Subprocess.run(
    executable, arguments: Arguments(arguments),
    workingDirectory: directory.map { FilePath($0) }, output: .string(limit: 64 << 20),
    error: .string(limit: 8 << 20))
  let status: Int32 =
    switch result.terminationStatus {
    case .exited(let code): code
    case .signaled(let signal): 128 + signal
    }
  return Finished(
    status: status, output: result.standardOutput, errors: result.standardError)
}

/// The directory of the fork servers, from which programs start faster; see `Tests/Tools/ForkServer`.
private let forkServers = ProcessInfo.processInfo.environment["FORK_SERVERS"]

/// The top directory of the checkout.
package let checkout = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
  .deletingLastPathComponent().deletingLastPathComponent().path

/// The command under test: the path in `SLOWMO`, otherwise the program that was built with these tests.
package let slowmoPath: String =
  ProcessInfo.processInfo.environment["SLOWMO"] ?? program("slowmo")

/// The path of a program that was built with these tests: it is in the directory of their bundle.
package func program(_ name: String) -> String {
  let bundle = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
  return URL(fileURLWithPath: bundle ?? CommandLine.arguments[0]).deletingLastPathComponent()
    .appendingPathComponent(name).path
}

/// A temporary directory, deleted on `deinit`.
package final class Scratch: Sendable {
  /// The path of the directory, without a trailing slash.
  package let path: String

  package init(in parent: String? = nil) throws {
    path = (parent ?? NSTemporaryDirectory()) + "/overcrank-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in the directory.
  package func file(_ name: String) -> String { "\(path)/\(name)" }

  /// The sorted names in the directory.
  package func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }
}

extension Scratch {
  /// Writes a text file that replaces one of `/proc` or `/sys`, and creates its directories.
  package func writeSystemFile(_ text: String, _ path: String) throws {
    let file = URL(fileURLWithPath: file(path))
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try text.write(to: file, atomically: false, encoding: .utf8)
  }
}
