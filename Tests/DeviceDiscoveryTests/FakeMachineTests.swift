// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// Devices of each kind on the fake machine.
struct FakeMachineTests {
  /// A machine with one device of each kind.
  private let machine: FakeVideoSystemCalls

  init() throws { machine = try FakeVideoSystemCalls("") }

  private func with<Answer>(_ body: () throws -> Answer) rethrows -> Answer {
    try DeviceSystem.$calls.withValue(machine, operation: body)
  }

  @Test func `Lists every camera once and no other node`() throws {
    let list = with { CaptureDevice.discover() }
    #expect(list.warnings == [])
    let names = list.devices.map(\.name)
    #expect(
      names == [
        "HD Pro Webcam", "High Frame Rate Camera", "Mono Global Shutter",
        "Uncompressed 1080p120", "Tiny Camera", "Odd Fractions", "One Rate", "Stepwise Sensor",
        "Continuous Sensor", "Multi-planar Sensor", "Two Planes Sensor", "HDMI Capture", "TV Card",
        "A name of thirty-two characters.", "Synthetic camera",
      ])
    #expect(machine.nodes().count > names.count)
    #expect(Set(list.devices.map(\.id)).count == list.devices.count)
  }

  /// The kernel resets a camera that does not wake from suspension.
  @Test func `A camera that does not wake is opened after its reset`() throws {
    let machine = try FakeVideoSystemCalls("hfr-usb asleep=0.4")
    let before = machine.nanoseconds()
    let camera = try DeviceSystem.$calls.withValue(machine) {
      try CaptureDevice.named("/dev/fakevideo0")
    }
    #expect(camera.name == "High Frame Rate Camera")
    #expect((400_000_000..<500_000_000).contains(machine.nanoseconds() - before))
    let other = try FakeVideoSystemCalls("hfr-usb asleep=0.4")
    let list = DeviceSystem.$calls.withValue(other) { CaptureDevice.discover() }
    #expect(list.warnings.isEmpty && list.devices.count == 2)
  }

  @Test func `A camera that does not come back is not found`() throws {
    let machine = try FakeVideoSystemCalls("hfr-usb asleep=60")
    let before = machine.nanoseconds()
    let error = #expect(throws: MediaError.self) {
      try DeviceSystem.$calls.withValue(machine) { try CaptureDevice.named("/dev/fakevideo0") }
    }
    #expect(error?.code == .deviceNotFound)
    #expect(machine.nanoseconds() - before < 3_000_000_000)
  }

  @Test func `Enumerates all formats of all devices without setting any`() throws {
    var count = 0
    for device in with({ CaptureDevice.discover() }) {
      guard let path = device.path else { continue }
      let list = try with { try device.formatList() }
      let ranges = Set(list.sizeRanges.map(\.fourcc))
      let found = Set(
        list.formats.map {
          Triple($0.fourcc.rawValue, $0.width, $0.height, $0.frameRateRange)
        })
      let expected = try referenceTriples(path, sizesOfRanges: list.formats)
      #expect(found == expected, "\(device.name)")
      #expect(found.count == list.formats.count)
      // The sizes listed for a range are its ends and many sizes between.
      for fourcc in ranges {
        #expect(list.formats.count { $0.fourcc == fourcc } > 20)
      }
      count += found.count
    }
    print("fake machine: \(count) triples found")
    #expect(count > 100)
    #expect(machine.callCount(0xc0d0_5640) == 0, "VIDIOC_TRY_FMT was made")
    for request in [
      CVideo4Linux_VIDIOC_S_FMT, CVideo4Linux_VIDIOC_S_PARM, CVideo4Linux_VIDIOC_S_INPUT,
      CVideo4Linux_VIDIOC_S_DV_TIMINGS, CVideo4Linux_VIDIOC_REQBUFS,
    ] {
      #expect(machine.callCount(request) == 0)
    }
    #expect(machine.callCount(CVideo4Linux_VIDIOC_ENUM_FRAMEINTERVALS) > 100)
  }

  @Test(
    "Finds the fastest mode of each device",
    arguments: [
      ("HD Pro", "1280x720@60/mjpg"), ("High Frame", "1280x720@240/mjpg"),
      ("Mono", "640x400@480/grey"), ("Uncompressed", "1920x1080@120/yuyv"),
      ("Tiny", "16x8@1000/grey"), ("Odd", "640x480@10000000/83263/mjpg"),
      ("One Rate", "320x240@50/yuyv"), ("Stepwise", "352x288@1000/grey"),
      ("Continuous", "320x240@1000/yuyv"), ("Multi-planar", "640x480@200/nv12"),
      ("HDMI", "1920x1080@60/yuyv"),
    ])
  func fastest(name: String, mode: String) throws {
    let device = try #require(with { CaptureDevice.discover() }.first { $0.name.hasPrefix(name) })
    #expect(try with { try device.fastestFormat() }.id == mode)
  }

  @Test func `Accepts only frame sizes on the grid of a size range`()
    throws
  {
    let device = try #require(
      with { CaptureDevice.discover() }.first { $0.name == "Stepwise Sensor" })
    func choose(_ mode: String) throws -> CaptureFormat {
      try with { try device.format(matching: ModeRequest(parsing: mode)) }
    }
    // The device reads 124 416 000 pixels per second, which is 388 whole frames of 656x488.
    #expect(try choose("656x488/grey").id == "656x488@388/grey")
    let off = try #require(throws: MediaError.self) { try choose("650x488/grey") }
    #expect(off.code == .noMatchingFormat)
    #expect(
      off.recoverySuggestion.hasPrefix(
        "choose 656x488, the nearest size of GREY 64x64 to 1920x1088"))
    // Frame intervals have steps of 100 µs from 1/405 s. One step is close enough to 60 fps, and
    // none is to 100 fps.
    #expect(try choose("640x480@60/grey").id == "640x480@405000/6751/grey")
    let rate = try #require(throws: MediaError.self) { try choose("640x480@100/grey") }
    #expect(rate.recoverySuggestion.hasPrefix("choose 640x480@"), "\(rate)")
    let hint = try #require(
      rate.recoverySuggestion.split(separator: " ").first { $0.contains("@") })
    let nearest = String(hint.prefix { $0 != "," })
    #expect(try choose(nearest).id == nearest)
  }

  @Test func `Leaves out and warns about invalid formats from a driver`() throws {
    let device = try #require(
      with { CaptureDevice.discover() }.first { $0.name.hasPrefix("A name of") })
    let list = try with { try device.formatList() }
    #expect(list.formats.map(\.id) == ["640x480@30/mjpg", "640x480@30/0x20202020"])
    #expect(list.warnings.count > 4)
    #expect(Set(list.warnings).count == list.warnings.count)
  }

  /// A pixel format, a frame size, and the frame rates for this format and size.
  private struct Triple: Hashable {
    let fourcc: UInt32
    let width: Int
    let height: Int
    let rates: FrameRateRange

    init(_ fourcc: UInt32, _ width: Int, _ height: Int, _ rates: FrameRateRange) {
      (self.fourcc, self.width, self.height, self.rates) = (fourcc, width, height, rates)
    }
  }

  /// Reads all format lists of the driver again with a simple reference, which skips invalid
  /// entries.
  private func referenceTriples(
    _ path: String, sizesOfRanges listed: [CaptureFormat]
  ) throws -> Set<Triple> {
    let node = machine.open(path)
    defer { _ = machine.close(node) }
    func entries<Entry>(_ request: UInt, _ question: Entry, _ index: WritableKeyPath<Entry, UInt32>)
      -> [Entry]
    {
      var found: [Entry] = []
      while true {
        var entry = question
        entry[keyPath: index] = UInt32(found.count)
        guard withUnsafeMutablePointer(to: &entry, { machine.control(node, request, $0) }) >= 0
        else { return found }
        found.append(entry)
      }
    }
    var triples: Set<Triple> = []
    var question = v4l2_fmtdesc()
    question.type = try kind(node).type
    for format in entries(CVideo4Linux_VIDIOC_ENUM_FMT, question, \.index) {
      var question = v4l2_frmsizeenum()
      question.pixel_format = format.pixelformat
      var sizes: [(UInt32, UInt32)] = []
      for size in entries(CVideo4Linux_VIDIOC_ENUM_FRAMESIZES, question, \.index) {
        if size.type == V4L2_FRMSIZE_TYPE_DISCRETE.rawValue {
          sizes.append((size.discrete.width, size.discrete.height))
        } else {
          let ofFormat = listed.filter { $0.fourcc.rawValue == format.pixelformat }
          sizes += ofFormat.map { (UInt32($0.width), UInt32($0.height)) }
          sizes.append((size.stepwise.min_width, size.stepwise.min_height))
          sizes.append((size.stepwise.max_width, size.stepwise.max_height))
        }
      }
      for (width, height) in sizes where (1...65_535).contains(width) && height > 0 {
        var question = v4l2_frmivalenum()
        (question.width, question.height) = (width, height)
        question.pixel_format = format.pixelformat
        for interval in entries(CVideo4Linux_VIDIOC_ENUM_FRAMEINTERVALS, question, \.index) {
          guard let rates = try rates(interval) else { continue }
          triples.insert(Triple(format.pixelformat, Int(width), Int(height), rates))
        }
      }
    }
    return triples
  }

  private func kind(_ node: CInt) throws -> BufferKind {
    var answer = v4l2_capability()
    let result = withUnsafeMutablePointer(to: &answer) {
      machine.control(node, CVideo4Linux_VIDIOC_QUERYCAP, $0)
    }
    try #require(result >= 0)
    return answer.device_caps & UInt32(V4L2_CAP_VIDEO_CAPTURE_MPLANE) != 0
      ? .multiPlanar : .singlePlanar
  }

  private func rates(_ interval: v4l2_frmivalenum) throws -> FrameRateRange? {
    func rate(_ duration: v4l2_fract) throws -> FrameRate {
      FrameRate(Int(duration.denominator), over: Int(duration.numerator))
    }
    if interval.type == V4L2_FRMIVAL_TYPE_DISCRETE.rawValue {
      guard interval.discrete.numerator > 0, interval.discrete.denominator > 0 else { return nil }
      return FrameRateRange(try rate(interval.discrete))
    }
    let step = interval.stepwise.step
    let isStepwise = interval.type == V4L2_FRMIVAL_TYPE_STEPWISE.rawValue
    return FrameRateRange(
      try rate(interval.stepwise.max), try rate(interval.stepwise.min),
      frameDurationStep: isStepwise
        ? try MediaTime(Rational(Int128(step.numerator), over: Int128(step.denominator))) : nil)
  }
}
