// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// Digital video timings.
struct VideoTimingsTests {
  /// Timings that `v4l2-ctl --set-dv-bt-timings cvt,…` of v4l-utils 1.22.1 sends to the driver.
  ///
  /// Columns: size, rate, blanking; pixel clock; horizontal and vertical front porch, sync and back
  /// porch; polarities (1: vertical, 2: horizontal); flags.
  static let computedByOthers = """
    640x480 60 0  23750000 16 64 80 3 4 13 1 0
    640x480 60 1  23500000 48 32 80 3 4 7 2 1
    640x480 60 2  21384000 8 32 40 1 8 6 2 1
    640x480 120 0  52500000 40 64 104 3 4 31 1 0
    640x480 120 1  48750000 48 32 80 3 4 22 2 1
    640x480 120 2  43977000 8 32 40 15 8 6 2 1
    640x480 240 0  117500000 56 64 120 3 4 70 1 0
    640x480 240 1  103500000 48 32 80 3 4 53 2 1
    640x480 240 2  93312000 8 32 40 46 8 6 2 1
    1280x720 50 0  60500000 48 128 176 3 5 16 1 0
    1280x720 50 1  53000000 48 32 80 3 5 9 2 1
    1280x720 50 2  50116000 8 32 40 3 8 6 2 1
    1280x720 60 0  74500000 64 128 192 3 5 20 1 0
    1280x720 60 1  64000000 48 32 80 3 5 13 2 1
    1280x720 60 2  60465000 8 32 40 7 8 6 2 1
    1280x720 120 0  162000000 96 136 232 3 5 47 1 0
    1280x720 120 1  131750000 48 32 80 3 5 35 2 1
    1280x720 120 2  124521000 8 32 40 29 8 6 2 1
    1280x720 240 0  355000000 112 136 248 3 5 105 1 0
    1280x720 240 1  279750000 48 32 80 3 5 82 2 1
    1280x720 240 2  264384000 8 32 40 76 8 6 2 1
    1366x768 60 0  84750000 72 136 208 3 10 17 1 0
    1366x768 60 1  72000000 48 32 80 3 10 9 2 1
    1366x768 75 0  109000000 80 144 224 3 10 24 1 0
    1366x768 75 1  90500000 48 32 80 3 10 15 2 1
    1400x1050 75 0  156000000 104 144 248 3 4 42 1 0
    1400x1050 75 1  127250000 48 32 80 3 4 31 2 1
    1400x1050 75 2  120768000 8 32 40 24 8 6 2 1
    1920x1080 24 0  63000000 48 192 240 3 5 10 1 0
    1920x1080 24 1  54500000 48 32 80 3 5 7 2 1
    1920x1080 24 2  52560000 8 32 40 1 8 6 2 1
    1920x1080 60 0  173000000 128 200 328 3 5 32 1 0
    1920x1080 60 1  138500000 48 32 80 3 5 23 2 1
    1920x1080 60 2  133320000 8 32 40 17 8 6 2 1
    1920x1080 120 0  369500000 160 208 368 3 5 72 1 0
    1920x1080 120 1  285500000 48 32 80 3 5 56 2 1
    1920x1080 120 2  274560000 8 32 40 50 8 6 2 1
    1920x1080 240 0  809750000 176 216 392 3 5 160 1 0
    1920x1080 240 1  606500000 48 32 80 3 5 127 2 1
    1920x1080 240 2  583200000 8 32 40 121 8 6 2 1
    640x400 300 0  127250000 56 64 120 3 6 74 1 0
    640x400 300 1  111500000 48 32 80 3 6 56 2 1
    640x400 300 2  100440000 8 32 40 51 8 6 2 1
    641x481 60 0  24000000 16 64 80 3 10 7 1 0
    641x481 60 1  24000000 48 32 80 3 10 7 2 1
    160x120 30 0  500000 8 8 16 3 4 3 1 0
    160x120 30 1  1250000 48 32 80 3 4 7 2 1
    160x120 30 2  972000 8 32 40 1 8 6 2 1
    160x120 480 0  16500000 8 16 24 3 4 41 1 0
    160x120 480 1  23750000 48 32 80 3 4 28 2 1
    160x120 480 2  17856000 8 32 40 21 8 6 2 1
    4096x2160 60 0  760000000 336 448 784 3 10 64 1 0
    4096x2160 60 1  567250000 48 32 80 3 10 49 2 1
    4096x2160 60 2  556744000 8 32 40 48 8 6 2 1
    4096x2160 120 0  1600750000 376 456 832 3 10 143 1 0
    1000x333 85 0  37000000 24 96 120 3 10 7 1 0
    1000x333 85 1  34750000 48 32 80 3 10 7 2 1
    1000x333 85 2  31946000 8 32 40 1 8 6 2 1
    """

  @Test(arguments: computedByOthers.split(separator: "\n"))
  func `Computed CVT timings equal those of v4l2-ctl`(line: Substring) throws {
    let words = line.split(separator: " ")
    let size = try #require(try ModeRequest(parsing: String(words[0])).size)
    let numbers = words.dropFirst().compactMap { Int($0) }
    let blanking = try #require(VideoTimings.Blanking(rawValue: numbers[1]))
    let timings = try #require(
      VideoTimings.cvt(
        width: size.width, height: size.height, framesPerSecond: numbers[0], blanking: blanking))
    let ours = timings.driver
    let polarities =
      (ours.vertical.isSyncPositive ? 1 : 0) + (ours.horizontal.isSyncPositive ? 2 : 0)
    #expect(
      [
        Int(ours.pixelClock), Int(ours.horizontal.frontPorch), Int(ours.horizontal.sync),
        Int(ours.horizontal.backPorch), Int(ours.vertical.frontPorch), Int(ours.vertical.sync),
        Int(ours.vertical.backPorch), polarities, Int(ours.flags),
      ] == Array(numbers.dropFirst(2)))
    #expect(timings.width == size.width && timings.height == size.height)
  }

  @Test func `Computed CVT timings follow the standard where v4l2-ctl errs`() throws {
    // `v4l2-ctl` counts pixel clocks in 32 bits. Twice the pixels of 4096x2160 at 120 fps exceed
    // that.
    let large = try #require(
      VideoTimings.cvt(
        width: 4096, height: 2160, framesPerSecond: 120, blanking: .reduced))
    #expect(large.pixelClock == 1_168_000_000)
    // `v4l2-ctl` rounds the width in version 2 of reduced blanking to 8 pixels for the clock, but
    // not for the frame.
    let odd = try #require(
      VideoTimings.cvt(
        width: 1366, height: 768, framesPerSecond: 60, blanking: .reducedTwice))
    #expect(odd.totalWidth == 1446)
    let rate = try #require(odd.frameRate)
    #expect(abs(rate.doubleValue - 60) < 0.001)
  }

  @Test func `The frame rate of video timings is an exact fraction`() throws {
    let timings = try #require(
      VideoTimings.cvt(width: 640, height: 480, framesPerSecond: 120))
    #expect(timings.totalWidth == 848 && timings.totalHeight == 518)
    // The rate is 52.5 MHz divided by 848 times 518 pixels.
    #expect(timings.frameRate?.description == "234375/1961")
    #expect(timings.description == "640x480p 119.518 Hz")
    var slower = timings.driver
    slower.flags = DriverTimings.reducedRate
    #expect(VideoTimings(slower).frameRate?.description == "234375000/1962961")
    slower.pixelClock = 0
    #expect(VideoTimings(slower).frameRate == nil)
  }

  @Test(
    "Refuses video timings for an invalid size or frame rate",
    arguments: [
      (0, 480, 60), (640, 0, 60), (640, 480, 0), (-1, 480, 60), (32768, 480, 60), (7, 1, 1),
      (640, 480, 1001), (Int.max, Int.max, Int.max), (32_767, 32_767, 1000),
    ])
  func refused(width: Int, height: Int, rate: Int) {
    let plain = VideoTimings.cvt(width: width, height: height, framesPerSecond: rate)
    #expect(plain == nil || width == 32_767)
    for blanking in [VideoTimings.Blanking.reduced, .reducedTwice] {
      _ = VideoTimings.cvt(
        width: width, height: height, framesPerSecond: rate, blanking: blanking)
    }
  }

  @Test func `Random video timings of a driver never crash`() {
    var random = SeededGenerator(seed: 5)
    let numbers: [UInt32] = [0, 1, 40, 1080, 1920, .max, .max - 1]
    for _ in 0..<500 {
      func blanking() -> DriverTimings.Blanking {
        DriverTimings.Blanking(
          frontPorch: random.pick(numbers), sync: random.pick(numbers),
          backPorch: random.pick(numbers), isSyncPositive: false)
      }
      var timings = DriverTimings(
        width: random.pick(numbers), height: random.pick(numbers),
        pixelClock: random.pick([0, 1, 148_500_000, .max]), horizontal: blanking(),
        vertical: blanking(), standards: [])
      timings.secondField = blanking()
      timings.flags = random.pick([0, 4, .max])
      _ = VideoTimings(timings).description
    }
  }
}

/// The input options in a device name.
struct InputChoiceTests {
  @Test func `Splits the video input options from a device name`() throws {
    #expect(try InputChoice.split("/dev/video0").choice == nil)
    let both = try InputChoice.split("/dev/video0?input=hdmi 0&timings=query")
    #expect(both.name == "/dev/video0")
    #expect(both.choice?.input == "hdmi 0")
    #expect(both.choice?.timings == .detected)
    let listed = try InputChoice.split("cam0?timings=index=3")
    #expect(listed.name == "cam0")
    #expect(listed.choice?.timings == .listed(3))
    let computed = try InputChoice.split("usb-1?timings=cvt,width=640,height=480,fps=120")
    let timings = try #require(
      VideoTimings.cvt(width: 640, height: 480, framesPerSecond: 120))
    #expect(computed.choice?.timings == .computed(timings))
    let reduced = try InputChoice.split(
      "cam1?timings=cvt,width=1920,height=1080,fps=60,reduced-blanking=1")
    let flat = VideoTimings.cvt(
      width: 1920, height: 1080, framesPerSecond: 60, blanking: .reduced)
    #expect(reduced.choice?.timings == flat.map { .computed($0) })
  }

  @Test(
    "Refuses unknown and malformed video input options",
    arguments: [
      "input", "input=", "colour=red", "input=1&input=2", "timings=", "timings=best",
      "timings=index", "timings=index=-1", "timings=index=3,4", "timings=cvt",
      "timings=cvt,width=640", "timings=cvt,width=640,height=480,fps=0",
      "timings=cvt,width=640,height=480,fps=60,reduced-blanking=3",
      "timings=cvt,width=640,height=480,fps=60,fps=70",
      "timings=cvt,width=99999,height=480,fps=60",
      "timings=cvt,width=640,height=480,fps=60,colour=1",
    ])
  func refused(options: String) throws {
    let error = try #require(throws: MediaError.self) {
      try InputChoice.split("/dev/video0?\(options)")
    }
    #expect(error.code == .badName)
  }

  @Test func `Refuses input options for a device without video inputs`() throws {
    let error = try #require(throws: MediaError.self) {
      try CaptureDevice.named("cam\(CaptureDevice.discover().count - 1)?input=1")
    }
    #expect(error.code == .badName)
  }
}
