// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// Frame sizes that a driver lists as a range.
struct SizeRangeTests {
  private let smallest = VideoSize(width: 16, height: 16)
  private let largest = VideoSize(width: 1920, height: 1200)

  private func source(_ sizes: DriverSizes, _ fps: UInt32 = 60) -> TableSource {
    TableSource(rows: [
      .init(fourcc: "NV12", sizes: sizes, intervals: .discrete([DriverFraction(1, fps)]))
    ])
  }

  private func stepwise(_ width: UInt32, _ height: UInt32) -> DriverSizes {
    .stepwise(
      smallest: smallest, largest: largest, step: VideoSize(width, height))
  }

  @Test func `Lists the ends of a frame size range and common sizes in it`() throws {
    let list = try FormatList(asking: source(stepwise(16, 8)))
    let sizes = list.formats.map { VideoSize(width: $0.width, height: $0.height) }
    #expect(sizes.first == .init(width: 16, height: 16))
    #expect(sizes.last == .init(width: 1920, height: 1200))
    let all = FrameSizeRange.wellKnown.filter {
      $0.width <= 1920 && $0.height <= 1200 && $0.width % 16 == 0 && $0.height % 8 == 0
    }
    #expect(Set(sizes).isSuperset(of: all))
    #expect(Set(sizes).count == sizes.count)
    // 180 lines are not on the grid of 16 + 8n, and 424 pixels are not on the grid of 16n.
    #expect(!sizes.contains(.init(width: 320, height: 180)))
    #expect(!sizes.contains(.init(width: 424, height: 240)))
    #expect(list.sizeRanges.map(\.description) == ["NV12 16x16 to 1920x1200 in steps of 16x8"])
    for name in ["160x120", "320x240", "640x480", "800x600", "1280x720", "640x400", "1280x800"] {
      #expect(sizes.contains { $0.description == name }, "\(name)")
    }
  }

  @Test func `A size range lists the current and requested and signal size`()
    throws
  {
    var source = source(stepwise(2, 2))
    source.inForce = VideoSize(width: 722, height: 482)
    let list = try FormatList(
      asking: source, for: VideoSize(width: 1000, height: 500),
      incoming: IncomingSignal(size: VideoSize(width: 1366, height: 768)))
    let ids = list.formats.map(\.id)
    #expect(ids.contains("722x482@60/nv12"))
    #expect(ids.contains("1000x500@60/nv12"))
    #expect(ids.contains("1366x768@60/nv12"))
    let off = try FormatList(asking: source, for: VideoSize(width: 1001, height: 500))
    #expect(!off.formats.contains { $0.width == 1001 })
  }

  @Test func `Lists frame rates separately for each frame size in a range`() throws {
    var source = source(.continuous(smallest: smallest, largest: largest))
    // A sensor that reads 240 million pixels per second, at no more than 480 fps.
    source.rates = { size in
      .discrete([DriverFraction(UInt32(max(1, size.width * size.height / 500_000)), 480)])
    }
    let list = try FormatList(
      asking: source, for: VideoSize(width: 1001, height: 1001), incoming: nil)
    func rate(_ width: Int) -> String? {
      list.formats.first { $0.width == width && $0.height != 360 }?.maxFrameRate.description
    }
    #expect(rate(16) == "480/1")
    #expect(rate(1001) == "240/1")
    #expect(rate(1920) == "120/1")
  }

  @Test func `Sizes above the input signal size are chosen only on request`() throws {
    let huge = DriverSizes.stepwise(
      smallest: smallest, largest: VideoSize(width: 16384, height: 8640),
      step: VideoSize(width: 2, height: 2))
    // Without a known signal, the largest size is 8K at 60 fps, the limit of video cables.
    let unknown = try FormatList(asking: source(huge))
    #expect(FormatSelection.fastest(among: unknown.formats)?.id == "7680x4320@60/nv12")
    #expect(unknown.formats.last?.exceedsSource == true)
    let pal = IncomingSignal(size: VideoSize(width: 720, height: 576))
    let television = try FormatList(asking: source(huge, 25), incoming: pal)
    #expect(FormatSelection.fastest(among: television.formats)?.id == "720x576@25/nv12")
    func choice(_ mode: String) throws -> String? {
      try ModeRequest(parsing: mode).choose(from: television.formats)?.id
    }
    #expect(try choice("@25") == "720x576@25/nv12")
    #expect(try choice("1920x1080") == "1920x1080@25/nv12")
    // A discrete frame size that a driver lists is not limited to the size of the incoming signal.
    let discrete = try FormatList(
      asking: source(.discrete([VideoSize(width: 16384, height: 8640)])), incoming: pal)
    #expect(FormatSelection.fastest(among: discrete.formats)?.id == "16384x8640@60/nv12")
  }

  @Test(
    "Finds the nearest frame size on the grid of a size range",
    arguments: [
      ("641x481", "640x480"), ("1x1", "16x16"), ("9999x9999", "1920x1200"),
      ("31x19", "32x16"), ("31x20", "32x24"), ("1920x1199", "1920x1200"), ("640x480", "640x480"),
    ])
  func nearest(size: String, expected: String) throws {
    let range = try #require(
      FrameSizeRange(.yuyv, smallest, largest, step: VideoSize(width: 16, height: 8)))
    let size = try #require(try ModeRequest(parsing: size).size)
    #expect(range.nearest(to: size).description == expected)
    #expect(range.contains(range.nearest(to: size)))
  }

  @Test func `Lists a one-size range and warns about an empty size range`()
    throws
  {
    let one = try FormatList(asking: source(.continuous(smallest: smallest, largest: smallest)))
    #expect(one.formats.map(\.id) == ["16x16@60/nv12"])
    let none = try FormatList(asking: source(.continuous(smallest: largest, largest: smallest)))
    #expect(none.formats == [])
    #expect(none.warnings == ["NV12: the driver's range of frame sizes is invalid; left out"])
    // Drivers that support only one size report steps of zero.
    let still = try FormatList(asking: source(stepwise(0, 0)))
    #expect(still.sizeRanges.map(\.step.description) == ["1x1"])
  }
}

/// Frame rates that a driver lists as a range.
struct FrameRateRangeTests {
  private func range(_ text: String, step: (Int64, Int32)?) throws -> FrameRateRange {
    let ends = text.split(separator: "-")
    return FrameRateRange(
      try FrameRate(parsing: String(ends[0])), try FrameRate(parsing: String(ends[1])),
      frameDurationStep: step.map { MediaTime($0.0, over: $0.1) })
  }

  @Test(
    "A stepwise frame rate range allows only whole-step durations",
    arguments: [
      ("120", true), ("60", true), ("40", true), ("100", false), ("59.94", false), ("1", true),
      ("0.5", false), ("240", false),
    ])
  func steps(rate: String, expected: Bool) throws {
    // The frame durations of the rate range are 1/120 s to 1 s in steps of 1/120 s.
    let range = try range("1-120", step: (1, 120))
    #expect(range.contains(try FrameRate(parsing: rate)) == expected)
  }

  @Test(
    "The nearest frame rate is found by frame duration",
    arguments: [
      ("120", "120/1"), ("100", "120/1"), ("70", "60/1"), ("59.94", "60/1"), ("500", "120/1"),
      ("0.1", "1/1"), ("1.001", "1/1"),
    ])
  func nearest(rate: String, expected: String) throws {
    let range = try range("1-120", step: (1, 120))
    #expect(range.nearest(to: try FrameRate(parsing: rate)).description == expected)
  }

  @Test func `A frame rate range may end between two duration steps`() throws {
    let range = try range("7-120", step: (1, 100))
    #expect(range.contains(FrameRate(7)))
    #expect(range.nearest(to: FrameRate(6)).description == "7/1")
  }

  @Test func `A fine-step range of frame rates contains a coarser range`() throws {
    let fine = try range("1-120", step: (1, 240))
    let coarse = try range("1-120", step: (1, 120))
    let free = try range("1-120", step: nil)
    #expect(fine.contains(coarse) && !coarse.contains(fine))
    #expect(free.contains(fine) && !fine.contains(free))
    #expect(coarse.contains(FrameRateRange(FrameRate(60))))
    #expect(!coarse.contains(FrameRateRange(FrameRate(100))))
  }

  @Test func `Accepts only frame rates close to a step of a rate range`() throws {
    let rate = try range("1-120", step: (1, 120))
    let format = CaptureFormat(
      fourcc: .gray, width: 640, height: 480, isCompressed: false, frameRateRange: rate,
      driverOrder: 0)
    func choice(_ mode: String) throws -> String? {
      try ModeRequest(parsing: mode).choose(from: [format])?.id
    }
    #expect(try choice("@60") == "640x480@60/grey")
    #expect(try choice("@100") == nil)
    #expect(try choice("@60.01") == "640x480@60/grey")
    #expect(try choice("@59.94") == nil)
  }
}
