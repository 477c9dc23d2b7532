// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Takes that several tests share, each recorded once.
actor Takes {
  static let shared = Takes()
  private let directory: Scratch?
  private var running: [String: Task<String, any Error>] = [:]

  private init() { directory = try? Scratch() }

  /// A take of four seconds from the synthetic camera at 320x240 and 240 fps.
  ///
  /// It has no lost frames on any machine.
  static func plain() async throws -> String {
    try await shared.take("plain.mov", "synthetic:320x240@240?pace=max", seconds: "4")
  }

  /// A take of two seconds from the synthetic camera at 320x240 and 240 fps.
  static func short() async throws -> String {
    try await shared.take("short.mov", "synthetic:320x240@240?pace=max", seconds: "2")
  }

  /// A take of two seconds with an intended loss of 5 % of its frames, and its report in
  /// `lossy.mov.json`.
  static func lossy() async throws -> String {
    try await shared.take(
      "lossy.mov", "synthetic:320x240@240?drop=5%&seed=7&pace=max", seconds: "2")
  }

  /// The plain take with the marks `mark1` at 1 s and `mark2` at 2 s.
  static func marked() async throws -> String { try await shared.markedTake() }

  private func markedTake() async throws -> String {
    if let task = running["marked.mov"] { return try await task.value }
    let (path, keys) = try (
      #require(directory).file("marked.mov"), #require(directory).file("marks.txt")
    )
    let task = Task {
      try "0 space\n0 home\n0 right\n0 m\n0 right\n0 m\n0 w\n".write(
        toFile: keys, atomically: true, encoding: .utf8)
      let finished = try await slowmo(
        "play", Self.plain(), "--script", keys, "--audio", "none", "-o", path)
      try #require(finished.status == 0, "\(finished.errors)")
      return path
    }
    running["marked.mov"] = task
    return try await task.value
  }

  private func take(_ name: String, _ device: String, seconds: String) async throws -> String {
    if let task = running[name] { return try await task.value }
    let path = try #require(directory).file(name)
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

/// Shell functions for scripts.
///
/// `await CONDITION PROCESS` waits until the condition holds or the process has ended. In the
/// condition, `$1` is a parameter of the function. `size FILE` prints the number of bytes of a
/// file, and `frames FILE` prints the value of a camera's frame counter.
let scriptFunctions = """
  await() { until eval "$1" || ! kill -0 "$2" 2>/dev/null; do sleep 0.05; done; }
  size() { stat -c %s "$1" 2>/dev/null || echo 0; }
  frames() { [ -s "$1" ] && od -An -tu8 "$1" | tr -d ' ' || echo 0; }

  """

/// Runs a bash script with ``scriptFunctions``.
///
/// The command under test is `$1`.
func bash(_ script: String, _ arguments: String..., in directory: String? = nil) async throws
  -> Finished
{
  try await run(
    "bash", ["-c", scriptFunctions + script, "bash", slowmoPath] + arguments, in: directory)
}

/// Runs the command under test.
func slowmo(_ arguments: String..., in directory: String? = nil) async throws -> Finished {
  try await run(slowmoPath, arguments, in: directory)
}

/// A UDP port that is free for IPv4 and IPv6.
func freePort() throws -> UInt16 {
  let descriptor = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue), 0)
  try #require(descriptor >= 0)
  defer { close(descriptor) }
  var address = sockaddr_in6()
  address.sin6_family = sa_family_t(AF_INET6)
  var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
  let result = withUnsafeMutablePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(descriptor, $0, length) == 0 ? getsockname(descriptor, $0, &length) : -1
    }
  }
  try #require(result == 0)
  return UInt16(bigEndian: address.sin6_port)
}

/// The JSON document in a file.
func document(_ path: String) throws -> [String: Any] {
  let value = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
  return try #require(value as? [String: Any])
}
