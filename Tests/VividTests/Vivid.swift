// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The machine under test: one with the kernel's virtual V4L2 driver loaded.
enum Vivid {
  /// The first node of a vivid capture device, or nil where there is none.
  static let node: String? = {
    let folder = "/sys/class/video4linux"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return
      names
      .filter { name in
        let title = try? String(contentsOfFile: "\(folder)/\(name)/name", encoding: .utf8)
        return title?.contains("vivid") == true && title?.contains("-vid-cap") == true
      }
      .sorted { $0.localizedStandardCompare($1) == .orderedAscending }
      .first.map { "/dev/\($0)" }
  }()

  static var isPresent: Bool { node != nil }

  /// Printed beside every test that a machine without vivid does not run.
  static let whyNot: String =
    "no vivid device here: run Tests/Lab/run-tests.sh, or load it with sudo modprobe vivid"

  /// The command under test.
  static let slowmo =
    ProcessInfo.processInfo.environment["SLOWMO"]
    ?? FileManager.default.currentDirectoryPath + "/.build/release/slowmo"

  /// A folder that may be written to.
  static let folder =
    ProcessInfo.processInfo.environment["LAB_OUT"] ?? NSTemporaryDirectory()
}

/// What a finished program said.
struct Finished {
  let status: Int32
  let output: String
  let errors: String

  /// The JSON document that the program printed.
  func document() throws -> [String: Any] {
    let value = try JSONSerialization.jsonObject(with: Data(output.utf8))
    guard let document = value as? [String: Any] else {
      throw CocoaError(.coderReadCorrupt)
    }
    return document
  }
}

/// Runs a program to its end.
func run(_ program: String, _ arguments: String...) throws -> Finished {
  try run(program, arguments)
}

/// Runs a program to its end; its output goes through files, which never fill up.
func run(_ program: String, _ arguments: [String]) throws -> Finished {
  let name = "\(Vivid.folder)/run-\(UUID().uuidString)"
  defer {
    try? FileManager.default.removeItem(atPath: name + ".out")
    try? FileManager.default.removeItem(atPath: name + ".err")
  }
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = [program] + arguments
  process.standardInput = FileHandle.nullDevice
  process.standardOutput = try emptyFile(name + ".out")
  process.standardError = try emptyFile(name + ".err")
  try process.run()
  process.waitUntilExit()
  return Finished(
    status: process.terminationStatus,
    output: try String(contentsOfFile: name + ".out", encoding: .utf8),
    errors: try String(contentsOfFile: name + ".err", encoding: .utf8))
}

private func emptyFile(_ path: String) throws -> FileHandle {
  guard FileManager.default.createFile(atPath: path, contents: nil),
    let handle = FileHandle(forWritingAtPath: path)
  else { throw CocoaError(.fileWriteUnknown) }
  return handle
}
