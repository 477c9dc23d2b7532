// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankV4L2

/// Controls of drivers that may report invalid values.
struct ControlTests {
  private static let exposure = DeviceControl(
    id: .exposureTime, name: "Exposure Time, Absolute", kind: .integer, minimum: 1, maximum: 5000,
    defaultValue: 157)
  private static let automatic = DeviceControl(
    id: .automaticExposure, name: "Auto Exposure", kind: .menu, minimum: 0, maximum: 3,
    defaultValue: 3,
    menu: [
      DeviceControl.MenuItem(index: 1, name: "Manual Mode"),
      DeviceControl.MenuItem(index: 3, name: "Aperture Priority Mode"),
    ])
  private static let gain = DeviceControl(
    id: .gain, name: "Gain", kind: .integer, minimum: 0, maximum: 255, defaultValue: 64)

  private func withDevice<Result>(
    _ driver: ScriptedControls, _ body: (borrowing VideoDevice) throws -> Result
  ) throws -> Result {
    try DeviceSystem.$calls.withValue(driver) { try body(VideoDevice(opening: "/dev/video0")) }
  }

  @Test func `Controls keep driver order and menus can skip indexes`() throws {
    let driver = ScriptedControls([Self.exposure, Self.automatic, Self.gain])
    let controls = try withDevice(driver) { try $0.controls() }
    #expect(controls.map(\.spelledName) == ["gain", "auto_exposure", "exposure_time_absolute"])
    #expect(controls[1].menu.map(\.index) == [1, 3])
    #expect(controls[1].menu.map(\.name) == ["Manual Mode", "Aperture Priority Mode"])
    #expect(controls[2] == Self.exposure)
  }

  @Test func `An integer menu keeps its 64-bit numbers`() throws {
    let rates = DeviceControl(
      id: ControlID(rawValue: 0x0098_f900), name: "Rates", kind: .integerMenu, maximum: 2,
      menu: [
        DeviceControl.MenuItem(index: 0, name: "400", number: 400),
        DeviceControl.MenuItem(index: 2, name: "5000000000", number: 5_000_000_000),
      ])
    #expect(try withDevice(ScriptedControls([rates])) { try $0.controls() } == [rates])
  }

  @Test(arguments: [true, false])
  func `Supports drivers without the extended control ioctls`(knowsNext: Bool) throws {
    let driver = ScriptedControls([Self.exposure, Self.automatic, Self.gain])
    driver.change {
      $0.isModern = false
      $0.knowsNext = knowsNext
    }
    try withDevice(driver) { device in
      #expect(try device.controls() == [Self.gain, Self.automatic, Self.exposure])
      #expect(try device.set(.gain, to: 17) == 17)
      #expect(try device.number(of: .gain) == 17)
      let settings = [Self.gain, Self.exposure].map { ControlSetting($0, to: .number(20)) }
      try device.set(settings)
      #expect(try device.number(of: .exposureTime) == 20)
    }
  }

  @Test func `A control that cannot be queried is not listed`() throws {
    let driver = ScriptedControls([Self.exposure, Self.automatic, Self.gain])
    driver.change { $0.queryErrors[.automaticExposure] = EIO }
    let controls = try withDevice(driver) { try $0.controls() }
    #expect(controls == [Self.gain, Self.exposure])
    let error = try #require(throws: CallFailure.self) {
      try withDevice(driver) { _ = try $0.control(.automaticExposure) }
    }
    #expect(error.description == "could not read auto_exposure of /dev/video0: Input/output error")
  }

  @Test func `A device without controls gives an empty control list`() throws {
    #expect(try withDevice(ScriptedControls([])) { try $0.controls() } == [])
  }

  @Test func `Invalid control ranges of a driver cause no crash`() throws {
    var numbers: [DeviceControl] = []
    for (minimum, maximum, step) in [(Int64.max, Int64.min, -1), (Int64.min, Int64.max, 0)]
      as [(Int64, Int64, Int64)]
    {
      numbers.append(
        DeviceControl(
          id: ControlID(rawValue: 0x0098_f900 + UInt32(numbers.count)), name: "", kind: .integer64,
          minimum: minimum, maximum: maximum, step: step))
    }
    let menu = DeviceControl(
      id: ControlID(rawValue: 0x0098_f910), name: "\u{ff}", kind: .menu, minimum: .min,
      maximum: .max)
    try withDevice(ScriptedControls(numbers + [menu])) { device in
      let controls = try device.controls()
      #expect(controls.count == 3)
      #expect(controls[2].menu == [])
      for control in controls {
        for wish in [Int64.min, 0, .max] { _ = control.nearestValue(to: wish) }
        #expect(control.spelledName == "")
      }
    }
  }

  @Test(
    "Control names are spelled as v4l2-ctl spells them",
    arguments: [
      ("Exposure Time, Absolute", "exposure_time_absolute"), ("3A Lock", "3a_lock"),
      ("S-Video: (NTSC) ", "s_video_ntsc"), ("  Gain", "gain"), ("Über", "ber"), ("", ""),
    ])
  func spelling(name: String, expected: String) {
    #expect(DeviceControl(id: .gain, name: name, kind: .integer).spelledName == expected)
  }

  @Test(
    "The nearest control value respects range and step",
    arguments: [
      (0, 1, 1, 10), (99, 10, 1, 10), (4, 4, 1, 10), (4, 5, 5, 10), (2, 0, 5, 10), (9, 10, 5, 12),
      (12, 10, 5, 12), (-3, 0, 5, 12),
    ] as [(Int64, Int64, Int64, Int64)])
  func nearest(wish: Int64, expected: Int64, step: Int64, maximum: Int64) {
    let control = DeviceControl(
      id: .gain, name: "", kind: .integer, minimum: step == 1 ? 1 : 0, maximum: maximum, step: step)
    #expect(control.nearestValue(to: wish) == expected)
  }

  @Test func `Reads and writes control values of every kind`() throws {
    let text = DeviceControl(
      id: ControlID(rawValue: 0x0098_f903), name: "Text", kind: .text, minimum: 2, maximum: 8,
      flags: .hasPayload, elementSize: 9)
    let array = DeviceControl(
      id: ControlID(rawValue: 0x0098_f904), name: "Array", kind: .unsigned8, maximum: 255,
      flags: .hasPayload, elementSize: 1, elementCount: 3, dimensions: [3])
    let region = DeviceControl(
      id: .regionOfInterest, name: "Region", kind: .rectangle, flags: .hasPayload, elementSize: 16)
    let bits = DeviceControl(
      id: .lock3A, name: "3A Lock", kind: .bitmask, maximum: 0xffff_ffff)
    let long = DeviceControl(id: .pixelRate, name: "", kind: .integer64, maximum: .max)
    let driver = ScriptedControls([text, array, region, bits, long])
    try withDevice(driver) { device in
      for (control, value) in [
        (text, .text("äb")), (array, .numbers([1, 0, 255])), (bits, .number(0xffff_fffe)),
        (region, .rectangle(PixelRect(x: -1, y: 2, width: 3, height: 4))),
        (long, .number(1 << 40)),
      ] as [(DeviceControl, ControlValue)] {
        #expect(try device.set(control, to: value) == value)
        #expect(try device.value(of: control) == value)
      }
      let greatest = PixelRect(x: 0, y: 0, width: 1280, height: 720)
      #expect(try device.value(of: region, .maximum) == .rectangle(greatest))
      for (control, value) in [
        (text, .text("123456789")), (text, .text("a\0b")), (array, .numbers([256])),
        (bits, .number(1 << 33)), (region, .text("")),
      ] as [(DeviceControl, ControlValue)] {
        let error = try #require(throws: CallFailure.self) {
          try device.set(control, to: value)
        }
        #expect(error.kind == .outOfRange)
      }
    }
  }

  @Test(
    "The error for a failed control write has a cause and advice",
    arguments: [
      (EACCES, "it is read-only, or an automatic mode controls it", "automatic"),
      (ERANGE, "it does not accept this value", "choose a value within its range"),
      (EINVAL, "it does not accept this value", "choose a value within its range"),
      (
        EBUSY, "it cannot be changed while the camera streams, or another program has priority",
        "close"
      ),
      (EIO, "Input/output error", "the camera rejected the value"),
    ])
  func refusal(code: Int32, why: String, recovery: String) throws {
    let driver = ScriptedControls([Self.gain, Self.exposure])
    driver.change { $0.writeErrors[.exposureTime] = code }
    for isSet in [false, true] {
      let error = try #require(throws: CallFailure.self) {
        try withDevice(driver) { device in
          if isSet {
            try device.set(
              [Self.gain, Self.exposure].map { ControlSetting($0, to: .number(40)) })
          } else {
            _ = try device.set(.exposureTime, to: 40)
          }
        }
      }
      #expect(
        error.description == "could not set exposure_time_absolute of /dev/video0: \(why)")
      #expect(error.recovery?.description.contains(recovery) == true)
    }
  }

  @Test func `The error for setting a missing control names the control`() throws {
    let error = try #require(throws: CallFailure.self) {
      try withDevice(ScriptedControls([])) { _ = try $0.set(.focus, to: 1) }
    }
    #expect(error.kind == .notSupported)
    #expect(error.description.hasPrefix("could not set focus_absolute of /dev/video0: "))
  }

  @Test func `Changed controls are restored in reverse order`() throws {
    let driver = ScriptedControls([Self.exposure, Self.automatic, Self.gain])
    try withDevice(driver) { device in
      var changes = ControlChanges()
      try changes.set(.automaticExposure, to: 1, on: device)
      try changes.set(.exposureTime, to: 40, on: device)
      try changes.set(.gain, to: 1, on: device)
      try changes.set(.exposureTime, to: 41, on: device)
      #expect(changes.changedControls == [.automaticExposure, .exposureTime, .gain])
      driver.change {
        $0.writes = []
        $0.writeErrors[.gain] = EIO
      }
      let failures = changes.restore(on: device)
      #expect(failures.count == 1)
      #expect(failures.allSatisfy { $0.description.hasPrefix("could not set gain of ") })
      #expect(driver.numbersWritten == ["exposure_time_absolute=157", "auto_exposure=3"])
      #expect(changes.restore(on: device) == [])
      #expect(driver.writes.count == 2)
    }
  }

  @Test func `A control whose change failed is not restored`() throws {
    let driver = ScriptedControls([Self.gain])
    driver.change { $0.writeErrors[.gain] = EIO }
    try withDevice(driver) { device in
      var changes = ControlChanges()
      #expect(throws: CallFailure.self) { try changes.set(.gain, to: 1, on: device) }
      #expect(changes.changedControls == [])
    }
  }

  @Test func `Control events arrive until the device is unplugged`() throws {
    let driver = ScriptedControls([Self.gain])
    try withDevice(driver) { device in
      try device.subscribe(to: .control(.gain))
      #expect(try device.nextEvent(timeoutMilliseconds: 0) == nil)
      driver.send(change: .gain, to: 12)
      let event = try #require(try device.nextEvent(timeoutMilliseconds: 0))
      guard case .control(let change) = event.kind else {
        Issue.record("\(event)")
        return
      }
      #expect(change.id == .gain && change.value == 12 && change.changesValue)
      driver.change { $0.isUnplugged = true }
      let error = try #require(throws: CallFailure.self) {
        _ = try device.nextEvent(timeoutMilliseconds: 0)
      }
      #expect(error.kind == .unplugged)
    }
  }

  @Test func `A refused V4L2 priority change gives a device busy error`() throws {
    let driver = ScriptedControls([])
    try withDevice(driver) { device in
      #expect(try device.priority() == .interactive)
      try device.setPriority(.record)
      #expect(try device.priority() == .record)
      driver.change { $0.priorityError = EBUSY }
      let error = try #require(throws: CallFailure.self) { try device.setPriority(.record) }
      #expect(error.kind == .busy)
    }
  }
}
