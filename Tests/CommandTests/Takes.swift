// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// Takes that several tests look at, each recorded once.
actor Takes {
  static let shared = Takes()
  private let folder: Scratch?
  private var running: [String: Task<String, any Error>] = [:]

  private init() { folder = try? Scratch() }

  /// Four seconds of the synthetic camera at 320x240 and 240 frames a second.
  static func plain() async throws -> String {
    try await shared.take("plain.mov", "synthetic:320x240@240", seconds: "4")
  }

  /// Two seconds of which 5 % are lost on purpose; the report is beside it.
  static func lossy() async throws -> String {
    try await shared.take("lossy.mov", "synthetic:320x240@240?drop=5%&seed=7", seconds: "2")
  }

  private func take(_ name: String, _ device: String, seconds: String) async throws -> String {
    if let task = running[name] { return try await task.value }
    let path = try #require(folder).file(name)
    let task = Task {
      let finished = try await slowmo(
        "record", device, "-o", path, "-t", seconds, "--report", path + ".json")
      try #require(finished.status == 0, "\(finished.errors)")
      return path
    }
    running[name] = task
    return try await task.value
  }
}

/// Runs the command under test.
func slowmo(_ arguments: String..., in folder: String? = nil) async throws -> Finished {
  try await run(slowmoPath, arguments, in: folder)
}

/// A JSON document in a file.
func document(_ path: String) throws -> [String: Any] {
  let value = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
  return try #require(value as? [String: Any])
}

/// The top folder of the checkout.
let checkout = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
  .deletingLastPathComponent().deletingLastPathComponent().path
