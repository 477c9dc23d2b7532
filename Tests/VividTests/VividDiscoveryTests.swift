// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Foundation
import OvercrankLinuxSystem
import TestSupport
import Testing

@testable import OvercrankV4L2

/// A mode as both programs print it: pixel format, frame size, and frame rate with three decimals.
private struct Triple: Hashable, CustomStringConvertible {
  let fourcc: String
  let size: String
  let rate: String
  var description: String { "\(fourcc) \(size) \(rate)" }
}

extension VividTests {
  @Suite struct Discovery {
    private let node = Vivid.node ?? ""

    /// The modes of the first input, as `slowmo` lists them.
    ///
    /// Listing thousands of modes takes the emulated processor seconds, so it is done once.
    private static let modes = Task {
      let node = Vivid.node ?? ""
      let input = try await run("v4l2-ctl", ["-d", node, "-i", "0"])
      try #require(input.status == 0, "\(input.output)\(input.errors)")
      return try await run(slowmoPath, ["modes", node, "--json"])
    }

    @Test func `Lists the same modes as v4l2-ctl`() async throws {
      let modes = try await Self.modes.value
      let listing = try await run("v4l2-ctl", ["-d", node, "--list-formats-ext"])
      #expect(listing.status == 0)
      let theirs = triples(in: try FormatListing(listing.output))
      #expect(modes.status == 0, "\(modes.errors)")
      let ours = try triples(inDocument: modes.document())
      print("vivid: \(ours.count) modes by slowmo, \(theirs.count) by v4l2-ctl")
      #expect(theirs.count > 100)
      #expect(Set(ours).count == ours.count)
      #expect(Set(ours).subtracting(theirs).sorted { "\($0)" < "\($1)" } == [])
      #expect(Set(theirs).subtracting(ours).sorted { "\($0)" < "\($1)" } == [])
    }

    @Test func `The media device lists the video nodes of the camera`() throws {
      let calls = KernelVideoCalls()
      let path = try #require(SystemFiles.resolved(node))
      let nodes = calls.parts(of: node, KernelVideoCalls.entityNodes(CVideo4Linux_ENTITY_VIDEO))
      #expect(nodes.contains(path), "\(nodes)")
      #expect(nodes.allSatisfy { SystemFiles.kind(of: $0) == .characterDevice })
      // vivid has no LED.
      #expect(calls.leds(of: node) == [])
    }

    @Test func `The fastest mode of vivid is 320x180 at 60 fps`() async throws {
      let modes = try await Self.modes.value.document()
      let fastest = try #require(modes["fastest"] as? String)
      print("vivid: fastest \(fastest)")
      #expect(fastest.hasPrefix("320x180@60/"))
    }

    @Test func `The device list shows the driver name vivid`() async throws {
      let devices = try await run(slowmoPath, ["devices", "--json"]).document()
      let list = try #require(devices["devices"] as? [[String: Any]])
      let device = try #require(list.first { $0["path"] as? String == node })
      #expect(device["driver"] as? String == "vivid")
      #expect(device["kind"] as? String == "v4l2")
    }

    private func triples(in listing: FormatListing) -> [Triple] {
      listing.shapes.flatMap { shape in
        shape.rates.map {
          Triple(
            fourcc: shape.fourcc, size: shape.size.replacing("Discrete ", with: ""), rate: $0)
        }
      }
    }

    private func triples(inDocument document: [String: Any]) throws -> [Triple] {
      let modes = try #require(document["modes"] as? [[String: Any]])
      return try modes.map { mode in
        let rate = try #require(mode["max_fps_value"] as? Double)
        return Triple(
          fourcc: try #require(mode["fourcc"] as? String),
          size: "\(try #require(mode["width"] as? Int))x\(try #require(mode["height"] as? Int))",
          rate: String(format: "%.3f", rate))
      }
    }
  }
}
