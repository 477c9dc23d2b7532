// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import Testing

@testable import OvercrankDeviceDiscovery

/// The syntax of modes, and the formats that they choose.
struct ModeRequestTests {
  @Test(
    "Parses frame size and rate and pixel format of a mode",
    arguments: [
      ("1280x720@240/mjpg", "1280x720", "240/1", "mjpg"),
      ("1280x720@60000/1001/mjpg", "1280x720", "60000/1001", "mjpg"),
      ("1280x720@60000/1001", "1280x720", "60000/1001", "-"),
      ("@240", "-", "240/1", "-"), ("@59.94", "-", "60000/1001", "-"),
      ("/yuyv", "-", "-", "yuyv"), ("640x480", "640x480", "-", "-"),
      ("640x480/Y16-BE", "640x480", "-", "Y16-BE"), ("@12.5/grey", "-", "25/2", "grey"),
      ("@480/2/411P", "-", "240/1", "411P"), ("@30/411P", "-", "30/1", "411P"),
      ("/0x00000007", "-", "-", "0x00000007"),
    ])
  func reading(text: String, size: String, rate: String, fourcc: String) throws {
    let request = try ModeRequest(parsing: text)
    #expect(request.size.map { "\($0.width)x\($0.height)" } ?? "-" == size)
    #expect(request.rate?.description ?? "-" == rate)
    #expect(request.fourcc ?? "-" == fourcc)
    #expect(try ModeRequest(parsing: request.description) == request)
  }

  @Test(
    "Refuses text that is not a video mode",
    arguments: [
      "", "@", "/", "x", "640", "640x", "x480", "640x480x2", "0x480", "640x0", "-640x480",
      "+640x480", "640x480@", "640x480@0", "640x480@-30", "640x480@fast", "640x480@60/",
      "640x480@60/1001/", "640x480@60/mjpg/yuyv", "640x480@60/0", "640x480/", "640x480/yuyvx",
      "640x480/yuyv@60", "640 x 480", "99999999999x1", "1x1@1/1/1/1", "６４０x480",
      "640x480@99999999999999999999999999999999999999999999",
    ])
  func refusing(text: String) throws {
    let error = try #require(throws: MediaError.self) { try ModeRequest(parsing: text) }
    #expect(error.code == .badMode)
    #expect(!error.message.contains("\n"))
  }

  @Test(
    "A format must match each value that a mode request gives",
    arguments: [
      ("640x480", true), ("640x360", false), ("@60", true), ("@59.94", false), ("/yuyv", true),
      ("/YUYV", true), ("/mjpg", false), ("640x480@60/yuyv", true), ("@120/2/yuyv", true),
    ])
  func matching(text: String, expected: Bool) throws {
    let format = try CaptureFormat.make("640x480@60/yuyv")
    #expect(try ModeRequest(parsing: text).matches(format) == expected)
    #expect(ModeRequest.any.matches(format))
  }

  @Test(
    "A mode request chooses the fastest matching format",
    arguments: [
      ("640x480", "640x480@60/mjpg"),
      ("@30", "1280x720@30/mjpg"), ("/grey", "640x480@50/grey"),
      ("@60", "640x480@60/mjpg"), ("/yuyv", "320x240@120101/1000/yuyv"),
      // The first rate is inside a range. The others are near an end of the range.
      ("@20/grey", "640x480@20/grey"), ("@50.01/grey", "640x480@50/grey"),
      ("@49.99/grey", "640x480@4999/100/grey"), ("@51/grey", "-"),
      // A camera delivers 120.101 fps if 120 fps are requested, and these rates match. 60 fps and
      // 59.94 fps do not match.
      ("@120", "320x240@120101/1000/yuyv"), ("@60/yuyv", "-"), ("@59.94/mjpg", "-"),
      ("@60.01", "640x480@60/mjpg"), ("/yv12", "-"), ("1x1", "-"),
    ])
  func choosing(text: String, expected: String) throws {
    let formats = try [
      "640x480@60/mjpg", "1280x720@30/mjpg", "640x480@59.94/yuyv", "640x480@10...50/grey",
      "640x480@90/yv12", "320x240@120101:1000/yuyv",
    ].enumerated().map { try CaptureFormat.make($1, order: $0) }
    let request = try ModeRequest(parsing: text)
    #expect(request.choose(from: formats)?.id ?? "-" == expected)
  }

  @Test func `A frame rate range is narrowed to the requested frame rate`() throws {
    let range = try CaptureFormat.make("640x480@10...50/grey")
    let chosen = try #require(try ModeRequest(parsing: "@20").choose(from: [range]))
    #expect(chosen.frameRateRange == FrameRateRange(FrameRate(20)))
    #expect(chosen.id == "640x480@20/grey")
    #expect(range.narrowed(to: FrameRate(51)) == nil)
    #expect(ModeRequest.any.choose(from: [range]) == range)
    let rate = FrameRate(30_000, over: 1_001)
    let request = ModeRequest(range, at: rate)
    #expect(request.description == "640x480@30000/1001/GREY" && request.matches(range))
  }

  @Test func `A pixel format can be requested in either letter case`()
    throws
  {
    let rate = FrameRateRange(FrameRate(60))
    func format(_ fourcc: String, _ order: Int) throws -> CaptureFormat {
      CaptureFormat(
        fourcc: try #require(FourCC(fourcc)), width: 640, height: 480, isCompressed: false,
        frameRateRange: rate, driverOrder: order
      ).withExactID()
    }
    // These codes are in the table of storable formats.
    let formats = [try format("AR24", 0), try format("XR24", 1)]
    #expect(try ModeRequest(parsing: "/XR24").choose(from: formats)?.id == "640x480@60/XR24")
    #expect(try ModeRequest(parsing: "/xr24").choose(from: formats)?.id == "640x480@60/XR24")
  }
}
