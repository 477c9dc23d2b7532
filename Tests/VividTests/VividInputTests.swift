// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankDeviceDiscovery
import OvercrankRaster
import TestSupport
import Testing

extension VividTests {
  /// The other inputs of vivid, which have stepwise sizes, and its multi-planar nodes.
  @Suite struct Inputs {
    private let node = Vivid.node ?? ""

    @Test(arguments: [0, 1, 2, 3])
    func `Every input lists the same formats and sizes as v4l2-ctl`(input: Int) async throws {
      try await restoring {
        let list = try CaptureDevice.named("\(node)?input=\(input)").formatList()
        let inputs = try #require(list.inputs)
        #expect(inputs.all.map(\.name) == ["Webcam 0", "TV 0", "S-Video 0", "HDMI 0"])
        #expect(inputs.current?.index == input)
        let theirs = try await listing(node)
        let ours = shapes(list)
        print("vivid: input \(input): \(ours.count) shapes by slowmo, \(theirs.count) by v4l2-ctl")
        #expect(theirs.count > 80)
        #expect(ours == theirs)
      }
    }

    @Test func `Every frame size has the same frame rate as in v4l2-ctl`() async throws {
      try await restoring {
        let modes = try await modes("\(node)?input=3", format: "yuyv")
        let list = try #require(modes["modes"] as? [[String: Any]])
        #expect(list.count > 30)
        #expect(list.allSatisfy { $0["fourcc"] as? String == "YUYV" })
        for mode in list {
          let width = try #require(mode["width"] as? Int)
          let height = try #require(mode["height"] as? Int)
          let requested = "width=\(width),height=\(height),pixelformat=YUYV"
          let theirs = try await run(
            "v4l2-ctl", ["-d", node, "--list-frameintervals", requested])
          let rate = String(format: "%.3f", try #require(mode["max_fps_value"] as? Double))
          #expect(theirs.output.contains("(\(rate) fps)"), "\(width)x\(height): \(theirs.output)")
        }
        // The fastest mode has the size of the incoming video, and not the largest size of the
        // scaler.
        #expect((modes["fastest"] as? String)?.hasPrefix("1280x720@60/") == true)
        let other = try await run(
          slowmoPath, ["modes", node, "--size", "1000x500", "--fourcc", "yuyv"])
        #expect(other.output.hasPrefix("1000x500@60/yuyv  60.0 fps"), "\(other.output)")
      }
    }

    @Test func `A recording can use computed CVT timings`() async throws {
      try await restoring {
        let device = "\(node)?input=hdmi&timings=cvt,width=640,height=480,fps=120"
        let modes = try await modes(device, format: "grey")
        let input = try #require(modes["input"] as? [String: Any])
        let ours = try #require(input["timings"] as? [String: Any])
        let read = try await run("v4l2-ctl", ["-d", node, "--get-dv-timings"]).output
        #expect(read.contains("Pixelclock: \(ours["pixel_clock"] as? Int ?? 0) Hz"), "\(read)")
        #expect(read.contains("Total width: 848") && read.contains("Total height: 518"), "\(read)")
        #expect(ours["total_width"] as? Int == 848 && ours["total_height"] as? Int == 518)
        // v4l2-ctl with the same numbers must set the same timings in the driver.
        let cvt = "cvt,width=640,height=480,fps=120"
        try await v4l2ctl("--set-dv-bt-timings", cvt)
        #expect(try await run("v4l2-ctl", ["-d", node, "--get-dv-timings"]).output == read)
        let fastest = try #require(modes["fastest"] as? String)
        #expect(fastest.hasPrefix("640x480@"))
        let max = try #require(
          (modes["modes"] as? [[String: Any]])?.first?["max_fps_value"] as? Double)
        #expect(abs(max - 119) < 0.5)
        let file = "\(Vivid.directory)/timings.mov"
        let take = try await run(
          slowmoPath,
          ["record", device, "-o", file, "-y", "--mode", "640x480/grey", "-t", "1", "--json"])
        #expect(take.status == 0, "\(take.errors)")
        #expect(try take.document()["playable"] as? Bool == true)
      }
    }

    @Test func `Uses detected timings and reports each signal problem`() async throws {
      try await restoring {
        try await v4l2ctl("-i", "3")
        try await v4l2ctl("--set-dv-bt-timings", "cvt,width=800,height=600,fps=60")
        // From here, the incoming signal has other timings.
        try await v4l2ctl("-c", "dv_timings_signal_mode=4,dv_timings=10")
        let found = try await modes("\(node)?timings=query", format: "yuyv")
        let input = try #require(found["input"] as? [String: Any])
        let set = try #require(input["timings"] as? [String: Any])
        let detected = try #require(input["detected_timings"] as? [String: Any])
        #expect(set["width"] as? Int == detected["width"] as? Int)
        #expect(set["width"] as? Int != 800)
        for (mode, message) in [(1, "no signal"), (2, "not stable"), (3, "outside the range")] {
          try await v4l2ctl("-c", "dv_timings_signal_mode=\(mode)")
          let refused = try await run(slowmoPath, ["modes", "\(node)?timings=query", "--json"])
          #expect(refused.status == 69, "\(refused.errors)")
          let error = try #require(try refused.document()["error"] as? [String: Any])
          #expect(error["code"] as? String == "no_signal")
          #expect((error["message"] as? String)?.contains(message) == true, "\(refused.output)")
          // Without the option, no timings are set, but the modes are still listed.
          let plain = try await modes(node, format: "yuyv")
          let problem = (plain["input"] as? [String: Any])?["detection_problem"] as? String
          #expect(problem?.contains(message) == true)
        }
        try await v4l2ctl("-c", "dv_timings_signal_mode=0")
      }
    }

    @Test(
      .enabled(if: Vivid.multiPlanarNode != nil, "LAB_VIVID makes no multi-planar vivid"))
    func `A multi-planar node lists the same modes as v4l2-ctl`() async throws {
      let node = try #require(Vivid.multiPlanarNode)
      let ours = shapes(try CaptureDevice.named("\(node)?input=0").formatList())
      #expect(ours == (try await listing(node)))
      #expect(ours.contains { $0.hasPrefix("NM12 ") } && ours.contains { $0.hasPrefix("YUYV ") })
    }

    @Test(
      .enabled(if: Vivid.multiPlanarNode != nil, "LAB_VIVID makes no multi-planar vivid"),
      arguments: ["yuyv", "nv12", "nm12", "ym12", "ym24"])
    func `Single-plane and multi-plane frames are recorded intact`(format: String) async throws {
      let node = try #require(Vivid.multiPlanarNode)
      let file = "\(Vivid.directory)/\(format).mov"
      let take = try await run(
        slowmoPath,
        [
          "record", "\(node)?input=0", "-o", file, "-y", "--mode", "320x180@30/\(format)",
          "-t", "0.5", "--codec", "ffv1", "--json",
        ])
      #expect(take.status == 0, "\(take.errors)")
      let ledger = try #require(try take.document()["ledger"] as? [String: Int])
      #expect(ledger["corrupt"] == 0)
      #expect(try #require(ledger["stored"]) > 5)
      // vivid shows color bars. The middle of a bar has the same color in every pixel format.
      let colors = try await run(
        "ffmpeg",
        [
          "-v", "error", "-i", file, "-frames:v", "1", "-vf",
          "format=rgb24,crop=240:2:40:170,scale=6:1:flags=area", "-f", "rawvideo", "-c:v",
          "rawvideo", "\(Vivid.directory)/\(format).rgb", "-y",
        ])
      #expect(colors.status == 0, "\(colors.errors)")
      let rgb = try Data(contentsOf: URL(fileURLWithPath: "\(Vivid.directory)/\(format).rgb"))
      let bars = stride(from: 0, to: rgb.count - 2, by: 3).map { position in
        rgb[position..<position + 3].map { $0 > 96 }
      }
      // The expected colors are yellow, cyan, green, magenta, red and blue.
      #expect(
        bars == [
          [true, true, false], [false, true, true], [false, true, false], [true, false, true],
          [true, false, false], [false, false, true],
        ], "\(Array(rgb))")
    }

    @Test(
      .enabled(if: Vivid.multiPlanarNode != nil, "LAB_VIVID makes no multi-planar vivid"))
    func `Recording rejects a pixel format with an unsupported layout`() async throws {
      let node = try #require(Vivid.multiPlanarNode)
      let take = try await run(
        slowmoPath,
        ["record", "\(node)?input=0", "-o", "\(Vivid.directory)/x.mov", "--mode", "/nm61"])
      #expect(take.status == 64)
      #expect(take.errors.contains("NM61"), "\(take.errors)")
    }

    /// The document of `slowmo modes`, of one pixel format if one is given: thousands of modes keep the
    /// emulated processor busy.
    private func modes(_ device: String, format: String? = nil) async throws -> [String: Any] {
      let only = format.map { ["--fourcc", $0] } ?? []
      let finished = try await run(slowmoPath, ["modes", device, "--json"] + only)
      try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
      return try finished.document()
    }

    private func v4l2ctl(_ arguments: String...) async throws {
      let finished = try await run("v4l2-ctl", ["-d", node] + arguments)
      try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
    }

    /// Runs a closure and then selects the webcam input again, even after an error.
    private func restoring(_ body: () async throws -> Void) async throws {
      let failure: (any Error)?
      do {
        try await body()
        failure = nil
      } catch {
        failure = error
      }
      try await v4l2ctl("-i", "3")
      try await v4l2ctl("-c", "dv_timings_signal_mode=0")
      // These are the initial timings of vivid: 1280x720 at 60 fps.
      try await v4l2ctl("--set-dv-bt-timings", "index=7")
      try await v4l2ctl("-i", "0")
      if let failure { throw failure }
    }

    /// Pixel formats with sizes or ranges of sizes, as v4l2-ctl prints them: `YUYV Stepwise 16x16 -
    /// …`.
    private func listing(_ node: String) async throws -> Set<String> {
      let text = try await run("v4l2-ctl", ["-d", node, "--list-formats-ext"]).output
      return Set(try FormatListing(text).shapes.map { "\($0.fourcc) \($0.size)" })
    }

    /// The same from the library.
    ///
    /// The documents of `slowmo modes` keep the emulated processor busy for many seconds.
    private func shapes(_ list: FormatList) -> Set<String> {
      let ranged = Set(list.sizeRanges.map(\.fourcc))
      let ranges = list.sizeRanges.map { range in
        "\(range.fourcc) Stepwise \(range.smallest) - \(range.largest) with step "
          + "\(range.step.width)/\(range.step.height)"
      }
      let formats = list.formats.filter { !ranged.contains($0.fourcc) }
      return Set(ranges + formats.map { "\($0.fourcc) Discrete \($0.width)x\($0.height)" })
    }
  }
}
