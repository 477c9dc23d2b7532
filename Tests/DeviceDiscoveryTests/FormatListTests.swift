// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// The formats that are listed from a driver's answers.
struct FormatListTests {
  private func list(_ rows: TableSource.Row...) throws -> FormatList {
    try FormatList(asking: TableSource(rows: rows))
  }

  private let vga = DriverSizes.discrete([VideoSize(width: 640, height: 480)])

  @Test func `Lists each discrete frame rate as a format in driver order`() throws {
    let list = try list(
      .init(
        fourcc: "YUYV",
        sizes: .discrete([
          VideoSize(width: 640, height: 480), VideoSize(width: 320, height: 180),
        ]),
        intervals: .discrete([
          DriverFraction(1, 30), DriverFraction(1001, 60_000), DriverFraction(2, 25),
        ])),
      .init(fourcc: "MJPG", sizes: vga, intervals: .discrete([DriverFraction(1, 120)])))
    #expect(
      list.formats.map(\.id) == [
        "640x480@30/yuyv", "640x480@60000/1001/yuyv", "640x480@25/2/yuyv",
        "320x180@30/yuyv", "320x180@60000/1001/yuyv", "320x180@25/2/yuyv", "640x480@120/mjpg",
      ])
    #expect(list.formats.map(\.driverOrder) == Array(0..<7))
    #expect(list.formats.map(\.isHighFrameRate) == [false, true, false, false, true, false, true])
    #expect(list.formats.map(\.isCompressed) == Array(repeating: false, count: 6) + [true])
    #expect(list.formats[1].minFrameDuration == MediaTime(1001, over: 60_000))
    #expect(list.warnings == [])
  }

  @Test func `Lists a frame rate range as one format with its highest rate`() throws {
    for intervals in [
      DriverIntervals.stepwise(
        shortest: DriverFraction(1, 240), longest: DriverFraction(1, 1),
        step: DriverFraction(1, 240)),
      .continuous(shortest: DriverFraction(1, 240), longest: DriverFraction(1, 1)),
    ] {
      let list = try list(.init(fourcc: "GREY", sizes: vga, intervals: intervals))
      let format = try #require(list.formats.first)
      #expect(list.formats.count == 1)
      #expect(format.id == "640x480@240/grey")
      #expect(format.minFrameRate.description == "1/1")
      #expect(format.maxFrameDuration == MediaTime(seconds: 1))
      #expect(format.videoSupportedFrameRateRanges.map(\.description) == ["1/1...240/1"])
      #expect(format.frameRateRange.frameDurationStep != nil || intervals.isContinuous)
    }
  }

  @Test func `Lists a frame size or rate only once if a driver repeats it`() throws {
    let twice = try list(
      .init(
        fourcc: "YUYV",
        sizes: .discrete([
          VideoSize(width: 640, height: 480), VideoSize(width: 640, height: 480),
        ]),
        intervals: .discrete([
          DriverFraction(1, 30), DriverFraction(2, 60), DriverFraction(1, 15),
        ])))
    #expect(twice.formats.map(\.id) == ["640x480@30/yuyv", "640x480@15/yuyv"])
  }

  @Test func `Leaves out and warns about invalid frame sizes and rates`() throws {
    let list = try list(
      .init(
        fourcc: "YUYV", sizes: vga,
        intervals: .discrete([
          DriverFraction(0, 0), DriverFraction(0, 30), DriverFraction(1, 0),
          DriverFraction(1, .max), DriverFraction(.max, 1), DriverFraction(1, 60),
        ])),
      .init(
        fourcc: "MJPG",
        sizes: .discrete([
          VideoSize(width: 0, height: 480), VideoSize(width: 640, height: Int(UInt32.max)),
        ]),
        intervals: .discrete([DriverFraction(1, 60)])),
      .init(fourcc: "NV12", sizes: .discrete([]), intervals: .discrete([])),
      .init(fourcc: "GREY", sizes: vga, intervals: .discrete([])),
      .init(
        fourcc: "UYVY", sizes: vga,
        intervals: .stepwise(
          shortest: DriverFraction(1, 1), longest: DriverFraction(1, 60),
          step: DriverFraction(0, 0))))
    #expect(list.formats.map(\.id) == ["640x480@60/yuyv"])
    #expect(
      list.warnings == [
        "YUYV 640x480: 0/0 s is not a valid frame duration; left out",
        "YUYV 640x480: 0/30 s is not a valid frame duration; left out",
        "YUYV 640x480: 1/0 s is not a valid frame duration; left out",
        "YUYV 640x480: 1/4294967295 s is not a valid frame duration; left out",
        "YUYV 640x480: 4294967295/1 s is not a valid frame duration; left out",
        "MJPG 0x480: not a valid frame size; left out",
        "MJPG 640x4294967295: not a valid frame size; left out",
        "NV12: the driver lists no frame sizes; left out",
        "GREY 640x480: the driver lists no frame rates; left out",
        "UYVY 640x480: 1/1 s to 1/60 s is not a valid range of frame durations; left out",
      ])
  }

  @Test func `Pixel formats that differ in case have distinct format ids`() throws {
    let rates = DriverIntervals.discrete([DriverFraction(1, 60)])
    let list = try list(
      .init(fourcc: "pGAA", sizes: vga, intervals: rates),
      .init(fourcc: "YUYV", sizes: vga, intervals: rates),
      .init(fourcc: "pgAA", sizes: vga, intervals: rates))
    #expect(
      list.formats.map(\.id) == ["640x480@60/pGAA", "640x480@60/yuyv", "640x480@60/pgAA"])
  }

  @Test func `A device lost during enumeration is an error`() {
    let gone = CallFailure(.listSizes, "/dev/video0", code: ENODEV)
    let source = TableSource(
      rows: [.init(fourcc: "YUYV", sizes: vga, intervals: .discrete([]))], failure: gone)
    #expect(throws: gone) { try FormatList(asking: source) }
    #expect(MediaError(gone, at: .discovering).code == .deviceLost)
  }

  @Test func `Random driver answers give unique format ids and no crash`() throws {
    var random = SeededGenerator(seed: 2)
    let numbers: [UInt32] = [0, 1, 2, 30, 60, 1001, 60_000, .max, .max - 1, 1 << 31]
    for _ in 0..<300 {
      func fraction() -> DriverFraction {
        DriverFraction(random.pick(numbers), random.pick(numbers))
      }
      func size() -> VideoSize {
        VideoSize(random.pick(numbers), random.pick(numbers))
      }
      let rows = ["YUYV", "yuyv", "MJPG", "Y16-BE", "0x00000007"].map { fourcc in
        TableSource.Row(
          fourcc: fourcc,
          sizes: random.pick([
            .continuous(smallest: size(), largest: size()),
            .stepwise(smallest: size(), largest: size(), step: size()),
            .discrete((0..<3).map { _ in size() }),
          ]),
          intervals: random.pick([
            .continuous(shortest: fraction(), longest: fraction()),
            .stepwise(shortest: fraction(), longest: fraction(), step: fraction()),
            .discrete((0..<5).map { _ in fraction() }),
          ]))
      }
      let list = try FormatList(asking: TableSource(rows: rows))
      #expect(Set(list.formats.map(\.id)).count == list.formats.count)
      for format in list.formats {
        let request = try ModeRequest(parsing: format.id)
        #expect(request.matches(format))
        guard format.isStorable else { continue }
        let chosen = try #require(request.choose(from: list.formats))
        #expect(chosen.id == format.id || chosen.id.lowercased() == format.id.lowercased())
        #expect(chosen.fourcc == format.fourcc)
        #expect(chosen.maxFrameRate == format.maxFrameRate)
      }
    }
  }
}

extension DriverIntervals {
  fileprivate var isContinuous: Bool {
    if case .continuous = self { true } else { false }
  }
}
