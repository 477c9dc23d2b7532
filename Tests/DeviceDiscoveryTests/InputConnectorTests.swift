// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Foundation
import OvercrankMediaCore
import OvercrankRaster
import Synchronization
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// The inputs of a card with camera, television and HDMI connectors.
struct InputConnectorTests {
  private static let hd = VideoTimings.cvt(width: 1280, height: 720, framesPerSecond: 60)
  private static let vga = VideoTimings.cvt(width: 640, height: 480, framesPerSecond: 120)

  private let directory = "/tmp/inputs-\(UUID().uuidString)"
  private let driver: StubDriver
  private let path: String

  init() throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    path = "\(directory)/video0"
    driver = StubDriver(
      directory,
      [
        "card": StubDriver.Node(
          capabilities: UInt32(V4L2_CAP_VIDEO_CAPTURE) | UInt32(V4L2_CAP_STREAMING),
          rows: [
            .init(
              fourcc: "YUYV",
              sizes: .stepwise(
                smallest: VideoSize(width: 16, height: 16),
                largest: VideoSize(width: 16384, height: 8640),
                step: VideoSize(width: 2, height: 2)),
              intervals: .discrete([DriverFraction(1, 60)]))
          ],
          inputs: [
            .init(name: "Camera 0"), .init(name: "S-Video 0", standard: 0xff),
            .init(name: "HDMI 0", timings: Self.hd?.driver, detected: Self.vga?.driver),
            .init(name: "HDMI 1", timings: Self.hd?.driver, detectionError: ENOLINK),
            .init(name: "HDMI 2", timings: Self.hd?.driver, detectionError: ENOLCK),
            .init(name: "HDMI 3", timings: Self.hd?.driver, detectionError: ERANGE),
          ])
      ])
    try driver.plug(0, "card")
  }

  private func list(_ options: String = "") throws -> FormatList {
    defer { try? FileManager.default.removeItem(atPath: directory) }
    return try DeviceSystem.$calls.withValue(driver) {
      try CaptureDevice.named(path + options).formatList()
    }
  }

  private func count(_ request: UInt) -> Int {
    driver.state.withLock { $0.requests[request, default: 0] }
  }

  @Test func `Reports the current video input without setting anything`() throws {
    let inputs = try #require(try list().inputs)
    #expect(inputs.all.map(\.name).first == "Camera 0")
    #expect(inputs.all.count == 6)
    #expect(inputs.current?.index == 0)
    #expect(inputs.timings == nil && inputs.detectionProblem == nil)
    #expect(count(CVideo4Linux_VIDIOC_S_INPUT) == 0)
    #expect(count(CVideo4Linux_VIDIOC_S_DV_TIMINGS) == 0)
    #expect(count(CVideo4Linux_VIDIOC_QUERY_DV_TIMINGS) == 0)
    #expect(count(CVideo4Linux_VIDIOC_S_FMT) == 0)
  }

  @Test(
    "Chooses a video input by number or name or part of a name",
    arguments: [("1", 1), ("hdmi 0", 2), ("S-Video", 1), ("camera", 0), ("2", 2)])
  func choosing(text: String, index: Int) throws {
    #expect(try list("?input=\(text)").inputs?.current?.index == index)
  }

  @Test(
    "Refuses unknown video inputs and unavailable video timings",
    arguments: [
      ("?input=9", "bad_name"), ("?input=hdmi", "bad_name"), ("?input=aerial", "bad_name"),
      ("?input=0&timings=query", "device_failed"), ("?input=3&timings=query", "no_signal"),
      ("?input=4&timings=query", "no_signal"), ("?input=5&timings=query", "no_signal"),
      ("?input=2&timings=index=7", "bad_name"),
      ("?timings=cvt,width=640,height=480,fps=60", "device_failed"),
    ])
  func refused(options: String, code: String) throws {
    let error = try #require(throws: MediaError.self) { try list(options) }
    #expect(error.code.rawValue == code, "\(error)")
  }

  @Test(
    "Describes each reason why video timings cannot be detected",
    arguments: [
      (3, "the input has no signal"), (4, "the signal is not stable"),
      (5, "the signal is outside the range of the device"),
    ])
  func detectionProblems(input: Int, why: String) throws {
    let inputs = try #require(try list("?input=\(input)").inputs)
    #expect(inputs.detectionProblem == "could not detect the timings at \(path): \(why)")
    #expect(inputs.detectedTimings == nil)
    #expect(inputs.timings == Self.hd)
  }

  @Test func `The video timings of the input limit the fastest mode`() throws {
    func fastest(_ options: String) throws -> String? {
      try driver.plug(0, "card")
      let list = try DeviceSystem.$calls.withValue(driver) {
        try CaptureDevice.named(path + options).formatList()
      }
      return FormatSelection.fastest(among: list.formats)?.id
    }
    #expect(try fastest("?input=2") == "1280x720@60/yuyv")
    #expect(try fastest("?input=1") == "720x576@60/yuyv")
    #expect(try fastest("?input=2&timings=query") == "640x480@60/yuyv")
    let wide = "?timings=cvt,width=1366,height=768,fps=60"
    #expect(try fastest(wide) == "1366x768@60/yuyv")
    // The current timings are not set again.
    let before = count(CVideo4Linux_VIDIOC_S_DV_TIMINGS)
    #expect(try fastest("?input=2" + wide.replacing("?", with: "&")) == "1366x768@60/yuyv")
    #expect(count(CVideo4Linux_VIDIOC_S_DV_TIMINGS) == before)
    // Without known timings, the limit is the bandwidth of video cables.
    #expect(try fastest("?input=0") == "7680x4320@60/yuyv")
    try FileManager.default.removeItem(atPath: directory)
  }
}
