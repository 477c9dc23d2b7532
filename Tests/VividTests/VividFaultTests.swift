// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

extension VividTests {
  /// Faults that vivid injects on request.
  ///
  /// On a slow machine vivid also loses other frames. So the tests check only the injected faults
  /// and the ledger.
  @Suite(.serialized) struct Faults {
    private let node = Vivid.node ?? ""
    private static let format = ["--mode", "320x180@60/yuyv"]
    private static let mode = format + ["-t", "2"]

    private func file(_ name: String) -> String { "\(Vivid.directory)/\(name).mov" }

    @Test(arguments: [1, 50])
    func `Buffers that vivid drops count as lost frames`(percent: Int) async throws {
      try await Vivid.set("percentage_of_dropped_buffers", to: percent)
      let take = try await Vivid.record(Self.mode, file: file("drops\(percent)"))
      try await Vivid.set("percentage_of_dropped_buffers", to: 0)
      try await Vivid.expectWhole(take, file: file("drops\(percent)"), stoppedBy: "duration")
      let ledger = try Vivid.ledger(take)
      print("vivid: \(percent) % dropped: \(ledger.sorted { $0.key < $1.key })")
      #expect((115...125).contains(ledger["expected"] ?? 0))
      if percent == 50 { #expect((40...90).contains(ledger["lost_device"] ?? 0)) }
    }

    /// vivid's frame numbers wrap at the 129th frame, and its clock wraps after about 16 s.
    ///
    /// A low frame rate is enough for the clock, and costs the emulated processor less.
    ///
    /// The second wrap of the clock is tested only in a full test run.
    private static let wraps =
      [("wrap_sequence_number", 1, 60, 4), ("wrap_timestamp", 1, 10, 18)]
      + (RunSize.isFull
        ? [("wrap_timestamp", 2, 10, 18)] : [])

    @Test(arguments: wraps)
    func `Wrapping frame numbers and timestamps of vivid cause no gap`(
      control: String, value: Int, rate: Int, seconds: Int
    ) async throws {
      try await Vivid.set(control, to: value)
      let name = "\(control)\(value)"
      let (take, streamed) = try await Vivid.traced {
        try await Vivid.record(
          ["--mode", "320x180@\(rate)/yuyv", "-t", "\(seconds)"], file: file(name))
      }
      try await Vivid.set(control, to: 0)
      try await Vivid.expectWhole(take, file: file(name), stoppedBy: "duration")
      let first = try #require(streamed.first)
      let last = try #require(streamed.last)
      // One clock wraps at 2^31 seconds, and the other at 2^63 nanoseconds.
      let limit: UInt64 = value == 1 ? 1 << 63 : (1 << 31) * 1_000_000_000
      let hasWrapped =
        control == "wrap_sequence_number"
        ? streamed.hasWrappedSequence : first.nanoseconds < limit && last.nanoseconds > limit
      #expect(hasWrapped, "\(first) … \(last)")
      let expected = try Vivid.ledger(take)["expected"] ?? 0
      let frames = Int64(rate * seconds)
      #expect((frames - 5...frames + 5).contains(expected))
      // The intervals come from the kernel's trace. Its nanoseconds are converted to microseconds
      // in frames.
      let longest = try #require((take["intervals"] as? [String: Any])?["max_ns"] as? Int64)
      let longestStep = try #require(streamed.dropLast().steps.max())
      #expect(abs(longest - longestStep) <= 1_000)
    }

    @Test func `A buffer with an error flag counts as corrupt`() async throws {
      let (status, take) = try await Vivid.record(
        Self.format, file: file("damaged"), meanwhile: "inject_v4l2_buf_flag_error=1")
      #expect(status == 0)
      try await Vivid.expectWhole(take, file: file("damaged"), stoppedBy: "signal")
      #expect(try Vivid.ledger(take)["corrupt"] == 1)
      let gaps = try #require(take["gaps"] as? [[String: Any]])
      #expect(gaps.count { $0["cause"] as? String == "corrupt" } == 1)
    }

    @Test func `A failed VIDIOC_QBUF request does not end the take`() async throws {
      let (status, take) = try await Vivid.record(
        Self.format, file: file("refused"), meanwhile: "inject_vidioc_qbuf_error=1")
      #expect(status == 0)
      try await Vivid.expectWhole(take, file: file("refused"), stoppedBy: "signal")
      try await Vivid.set("inject_vidioc_qbuf_error", to: 1)
      let next = try await Vivid.record(Self.mode, file: file("refused"))
      try await Vivid.expectWhole(next, file: file("refused"), stoppedBy: "duration")
    }

    @Test(arguments: ["inject_vidioc_reqbufs_error", "inject_vidioc_streamon_error"])
    func `A failed stream start names the device and leaves no file`(control: String) async throws {
      try await Vivid.set(control, to: 1)
      let finished = try await run(
        slowmoPath, ["record", node, "-o", file("none"), "--progress", "none"] + Self.mode)
      #expect(finished.status == 69)
      #expect(finished.errors.contains(node), "\(finished.errors)")
      #expect(finished.errors.split(separator: "\n").count == 1, "\(finished.errors)")
      #expect(!FileManager.default.fileExists(atPath: file("none")))
      // The device can be used again.
      let next = try await Vivid.record(Self.mode, file: file("next"))
      try await Vivid.expectWhole(next, file: file("next"), stoppedBy: "duration")
    }

    @Test func `Frames captured before a fatal streaming error are kept`() async throws {
      let (status, take) = try await Vivid.record(
        Self.format, file: file("fatal"), meanwhile: "inject_fatal_streaming_error=1")
      #expect(status == 69)
      try await Vivid.expectWhole(take, file: file("fatal"), stoppedBy: "error")
    }

    @Test func `A frame rate that vivid cannot deliver is reported`() async throws {
      let input = try await run(
        "sh",
        [
          "-c",
          "v4l2-ctl -d \(node) -i 3 && v4l2-ctl -d \(node) "
            + "--set-dv-bt-timings cvt,width=640,height=480,fps=120",
        ])
      try #require(input.status == 0, "\(input.errors)")
      // The take lasts half a second. At this frame rate, vivid leaves the emulated processor
      // little time.
      let take = try await Vivid.record(
        ["--mode", "640x480/yuyv", "-t", "0.5"], file: file("hdmi"))
      _ = try await run("v4l2-ctl", ["-d", node, "-i", "0"])
      try await Vivid.expectWhole(take, file: file("hdmi"), stoppedBy: "duration")
      let ledger = try Vivid.ledger(take)
      let requested = try #require(take["requested_fps_value"] as? Double)
      #expect(requested > 110)
      print(
        "vivid: HDMI at \(requested) fps, granted \(take["negotiated_fps_value"] ?? "") measured "
          + "\(take["measured_fps_value"] ?? ""), cause \(take["rate_cause"] ?? ""): "
          + "\(ledger.sorted { $0.key < $1.key })")
      #expect(take["rate_cause"] as? String != nil)
      #expect((ledger["lost_device"] ?? 0) * 10 > ledger["expected"] ?? 0)
    }

    @Test(.enabled(if: Vivid.isPluggable, Vivid.whyNotPluggable))
    func `Frames captured before a camera disconnects are kept`() async throws {
      let (status, take) = try await Vivid.record(
        Self.format, file: file("gone"), meanwhile: "disconnect=1")
      // A device that was disconnected by this control must be bound again explicitly.
      try await Vivid.plugAgain()
      #expect(status == 69)
      try await Vivid.expectWhole(take, file: file("gone"), stoppedBy: "device_lost")
    }
  }
}
