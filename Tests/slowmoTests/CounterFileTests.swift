// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The file of the option `counter=`, in which the camera counts frames.
struct CounterFileTests {
  private static let camera = "synthetic:160x120@240?pace=max&counter=counter"

  private func record(_ scratch: Scratch, _ options: String...) async throws -> Finished {
    try await run(
      slowmoPath,
      ["record", Self.camera, "-o", "a.mov", "--frames", "24", "--progress", "none", "--json"]
        + options, in: scratch.path)
  }

  private func count(_ scratch: Scratch) throws -> UInt64 {
    let data = try Data(contentsOf: URL(fileURLWithPath: scratch.file("counter")))
    try #require(data.count == 8)
    return data.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
  }

  @Test func `A take creates a frame counter file or resets an old one`() async throws {
    let scratch = try Scratch()
    for _ in 0..<2 {
      let finished = try await record(scratch, "-y")
      #expect(finished.status == 0, "\(finished.errors)")
      #expect((24..<48).contains(try count(scratch)))
    }
  }

  @Test func `A frame counter does not overwrite a file of another kind`() async throws {
    let scratch = try Scratch()
    for bytes in [Data(), Data("seven b".utf8), Data((0..<100_000).map { UInt8($0 & 0xFF) })] {
      let other = URL(fileURLWithPath: scratch.file("counter"))
      try bytes.write(to: other)
      let finished = try await record(scratch)
      #expect(finished.status == 69, "\(finished.output)")
      let error = try #require(try finished.document()["error"] as? [String: String])
      #expect(error["code"] == "device_failed")
      #expect(error["message"]?.contains("counter: it exists") == true, "\(error)")
      #expect(try Data(contentsOf: other) == bytes)
      // The take is not started.
      #expect(try scratch.names() == ["counter"])
    }
  }

  @Test func `A symbolic link is rejected as a frame counter file`() async throws {
    let scratch = try Scratch()
    let target = URL(fileURLWithPath: scratch.file("target"))
    for bytes in [Data("12345678".utf8), nil] {
      try? FileManager.default.removeItem(at: target)
      try bytes?.write(to: target)
      try? FileManager.default.removeItem(atPath: scratch.file("counter"))
      try FileManager.default.createSymbolicLink(
        atPath: scratch.file("counter"), withDestinationPath: "target")
      let finished = try await record(scratch)
      #expect(finished.status == 69, "\(finished.output)")
      let error = try #require(try finished.document()["error"] as? [String: String])
      #expect(error["message"]?.contains("symbolic link") == true, "\(error)")
      #expect((try? Data(contentsOf: target)) == bytes)
    }
  }

  @Test func `A rejected take does not create the frame counter file`() async throws {
    let scratch = try Scratch()
    try Data("a movie".utf8).write(to: URL(fileURLWithPath: scratch.file("a.mov")))
    let taken = try await record(scratch)
    #expect(taken.status == 73, "\(taken.output)")
    let refused = try await record(scratch, "-y", "--codec", "copy", "--mode", "160x120@240/grey")
    #expect(refused.status == 64, "\(refused.output)")
    let planned = try await record(scratch, "-y", "--dry-run")
    #expect(planned.status == 0, "\(planned.output)")
    #expect(try scratch.names() == ["a.mov"])
  }
}
