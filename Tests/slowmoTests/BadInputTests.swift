// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The exit code and the error line of each bad input.
///
/// No files may be left.
struct BadInputTests {
  private struct Case {
    let name: String
    let arguments: [String]
    let status: Int32
    /// Text that the error line must contain.
    let names: String
  }

  @Test func `Each bad input gives its exit code and one error line`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    try await prepare(scratch, take)
    let retime = ["retime", take, "-o", "out.mov", "--copy"]
    let cases = [
      Case(
        name: "missing file", arguments: ["info", "missing.mov"], status: 66,
        names: "missing.mov"),
      Case(
        name: "a directory", arguments: ["info", "subdirectory"], status: 65, names: "subdirectory"),
      Case(name: "a text file", arguments: ["info", "text.mov"], status: 65, names: "text.mov"),
      Case(
        name: "an empty file", arguments: ["info", "empty.mov"], status: 65, names: "empty.mov"),
      Case(
        name: "a truncated movie", arguments: ["info", "cut.mov"], status: 65, names: "cut.mov"),
      Case(
        name: "a truncated movie, retimed",
        arguments: ["retime", "cut.mov", "-o", "out.mov", "--speed", "1/8", "--copy"], status: 65,
        names: "cut.mov"),
      Case(
        name: "a movie whose index is in front, cut",
        arguments: ["frames", "front.mp4", "-o", "{index}.png"], status: 65, names: "front.mp4"),
      Case(
        name: "an unknown device", arguments: ["record", "nosuch", "-o", "out.mov", "-t", "1"],
        status: 69, names: "nosuch"),
      Case(
        name: "an unknown node",
        arguments: ["record", "/dev/video99", "-o", "out.mov", "-t", "1"], status: 69,
        names: "/dev/video99"),
      Case(
        name: "a node that is no camera",
        arguments: ["record", "/dev/null", "-o", "out.mov", "-t", "1"], status: 69,
        names: "/dev/null"),
      Case(
        name: "a missing file as camera",
        arguments: ["record", "file:missing.mov", "-o", "out.mov", "-t", "1"], status: 66,
        names: "missing.mov"),
      Case(
        name: "an output that exists",
        arguments: ["retime", take, "-o", "text.mov", "--speed", "1/8", "--copy"], status: 73,
        names: "text.mov"),
      Case(
        name: "a recording's output that exists",
        arguments: ["record", "synthetic:320x240@60", "-o", "text.mov", "-t", "1"], status: 73,
        names: "text.mov"),
      Case(
        name: "an output directory that does not exist",
        arguments: ["retime", take, "-o", "nowhere/out.mov", "--speed", "1/8", "--copy"],
        status: 73, names: "nowhere/out.mov"),
      Case(
        name: "a recording's directory that does not exist",
        arguments: ["record", "synthetic:320x240@60", "-o", "nowhere/out.mov", "-t", "1"],
        status: 73, names: "nowhere/out.mov"),
      Case(name: "speed 0", arguments: retime + ["--speed", "0"], status: 64, names: "--speed"),
      Case(name: "speed -0", arguments: retime + ["--speed", "-0"], status: 64, names: "--speed"),
      Case(
        name: "a preset backwards",
        arguments: retime + ["--preset", "impact", "--at", "1", "--speed", "-1/8"], status: 64,
        names: "--preset"),
      Case(
        name: "a range outside the clip",
        arguments: retime + ["--range", "5..6", "--speed", "1/8"],
        status: 64, names: take),
      Case(
        name: "a range beyond the end", arguments: retime + ["--range", "3..5", "--speed", "1/8"],
        status: 64, names: take),
      Case(
        name: "overlapping ranges",
        arguments: retime + [
          "--range", "1..2", "--speed", "1/8", "--range", "1.5..3", "--speed", "1/2",
        ], status: 64, names: "overlap"),
      Case(
        name: "a reversed range", arguments: retime + ["--range", "2..1", "--speed", "1/8"],
        status: 64, names: "2..1"),
      Case(
        name: "unequal counts",
        arguments: retime + ["--range", "1..2", "--range", "2..3", "--speed", "1/8"],
        status: 64, names: "--range"),
      Case(
        name: "neither way to export",
        arguments: ["retime", take, "-o", "out.mov", "--speed", "1/8"],
        status: 64, names: "--copy"),
      Case(
        name: "a container that is not written",
        arguments: ["retime", take, "-o", "out.mkv", "--speed", "1/8", "--copy"], status: 64,
        names: "out.mkv"),
      Case(
        name: "a speed that an algorithm lacks",
        arguments: retime + ["--speed", "1/8", "--pitch", "low-quality"], status: 64,
        names: "low-quality"),
      Case(
        name: "a frame that is not there",
        arguments: ["frames", take, "--at", "960f", "-o", "out.png"], status: 64, names: "960f"),
      Case(
        name: "one name for many frames",
        arguments: ["frames", take, "--range", "0..1", "-o", "out.png"], status: 64,
        names: "out.png"),
      Case(
        name: "a mode there is not",
        arguments: ["record", "file:\(take)", "--mode", "640x480", "-o", "out.mov"], status: 64,
        names: "640x480"),
      Case(
        name: "uncompressed frames of a camera that compresses",
        arguments: ["record", "file:\(take)", "--codec", "raw", "-o", "out.mov"], status: 64,
        names: "mjpeg"),
      Case(
        name: "a setting of a camera that has none",
        arguments: ["controls", "synthetic", "gain=1"],
        status: 64, names: "gain"),
      Case(
        name: "a setting without a value", arguments: ["controls", "synthetic", "gain"], status: 64,
        names: "gain"),
      Case(
        name: "settings of no device", arguments: ["controls", "/dev/video99"], status: 69,
        names: "/dev/video99"),
      Case(name: "an unknown verb", arguments: ["slowdown"], status: 64, names: "slowdown"),
      Case(
        name: "an unknown option", arguments: ["info", take, "--fast"], status: 64, names: "--fast"),
    ]
    let before = try scratch.names()
    for test in cases {
      let finished = try await run(slowmoPath, test.arguments, in: scratch.path)
      #expect(finished.status == test.status, "\(test.name): \(finished.errors)")
      #expect(
        finished.errors.split(separator: "\n", omittingEmptySubsequences: false).count == 2
          && finished.errors.hasSuffix("\n"), "\(test.name): \(finished.errors)")
      #expect(finished.errors.contains(test.names), "\(test.name): \(finished.errors)")
      #expect(finished.output.isEmpty, "\(test.name): \(finished.output)")
      let json = try await run(slowmoPath, test.arguments + ["--json"], in: scratch.path)
      #expect(json.status == test.status, "\(test.name) with --json: \(json.errors)")
      let error = try #require(try json.document()["error"] as? [String: String], "\(test.name)")
      #expect(error["code"]?.isEmpty == false && error["message"]?.isEmpty == false, "\(test.name)")
      #expect(try scratch.names() == before, "\(test.name) left something behind")
    }
  }

  @Test(.enabled(if: getuid() == 0, "only root can become another user"))
  func `An unreadable file fails with exit code 77`() async throws {
    let scratch = try Scratch(in: "/var/tmp")
    let path = scratch.file("secret.mov")
    try Data("movie".utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    // All users may run this copy, since the checkout may be unreadable for some users.
    let copy = scratch.file("slowmo")
    try FileManager.default.copyItem(
      atPath: URL(fileURLWithPath: slowmoPath).resolvingSymlinksInPath().path, toPath: copy)
    let finished = try await run(
      "setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", copy, "info", path])
    #expect(finished.status == 77, "\(finished.errors)")
    #expect(finished.errors.contains(path))
  }

  private func prepare(_ scratch: Scratch, _ take: String) async throws {
    func write(_ name: String, _ data: Data) throws {
      try data.write(to: URL(fileURLWithPath: scratch.file(name)))
    }
    try FileManager.default.createDirectory(
      atPath: scratch.file("subdirectory"), withIntermediateDirectories: false)
    try write("text.mov", Data("This is no movie.\n".utf8))
    try write("empty.mov", Data())
    let whole = try Data(contentsOf: URL(fileURLWithPath: take))
    try write("cut.mov", whole.prefix(whole.count / 2))
    try write("front.mp4", try await indexInFront(take, scratch).prefix(whole.count / 2))
  }

  /// The take with its index moved to the front, so that half of the file still contains the index.
  private func indexInFront(_ take: String, _ scratch: Scratch) async throws -> Data {
    let path = scratch.file("whole.mp4")
    let finished = try await run(
      "ffmpeg",
      ["-v", "error", "-i", take, "-c", "copy", "-movflags", "faststart", path])
    try #require(finished.status == 0, "\(finished.errors)")
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try Data(contentsOf: URL(fileURLWithPath: path))
  }
}
