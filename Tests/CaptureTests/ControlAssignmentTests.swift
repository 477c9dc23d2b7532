// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankRaster
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// Claims about controls that are set with NAME=VALUE.
struct ControlAssignmentTests {
  private static let exposure = ControlID.exposureTime
  private static let text = ControlID(rawValue: 0x0098_f903)
  private static let array = ControlID(rawValue: 0x0098_f904)

  private let driver = ScriptedControls([
    DeviceControl(
      id: .automaticExposure, name: "Auto Exposure", kind: .menu, maximum: 3, defaultValue: 3,
      menu: [
        DeviceControl.MenuItem(index: 1, name: "Manual Mode"),
        DeviceControl.MenuItem(index: 3, name: "Aperture Priority Mode"),
      ]),
    DeviceControl(
      id: exposure, name: "Exposure Time, Absolute", kind: .integer, minimum: 3, maximum: 2047,
      defaultValue: 157, flags: .inactive),
    DeviceControl(id: .gain, name: "Gain", kind: .integer, maximum: 255, step: 5),
    DeviceControl(id: .isMirrored, name: "Horizontal Flip", kind: .boolean, maximum: 1),
    DeviceControl(id: .lock3A, name: "3A Lock", kind: .bitmask, maximum: 7),
    DeviceControl(id: .privacy, name: "Privacy", kind: .boolean, maximum: 1, flags: .readOnly),
    DeviceControl(
      id: .rotation, name: "Rotate", kind: .integer, maximum: 270, step: 90, flags: .grabbed),
    DeviceControl(id: .whiteBalanceOnce, name: "Do White Balance", kind: .button),
    DeviceControl(
      id: text, name: "Text", kind: .text, minimum: 1, maximum: 4, flags: .hasPayload,
      elementSize: 5),
    DeviceControl(
      id: array, name: "Array", kind: .unsigned8, minimum: 1, maximum: 9, flags: .hasPayload,
      elementSize: 1, elementCount: 2, dimensions: [2]),
    DeviceControl(
      id: .regionOfInterest, name: "Region", kind: .rectangle, flags: .hasPayload, elementSize: 16),
  ])

  private func set(_ texts: String...) throws -> [CameraControl] {
    let assignments = try texts.map(ControlAssignment.init(parsing:))
    return try driver.camera().set(assignments)
  }

  @Test(
    "Control values are parsed as numbers or menu items",
    arguments: [
      ("gain=15", "gain=15"), ("gain=0x0f", "gain=15"), ("gain=default", "gain=0"),
      ("0x00980913=5", "gain=5"), ("horizontal_flip=on", "horizontal_flip=1"),
      ("horizontal_flip=FALSE", "horizontal_flip=0"), ("horizontal_flip=1", "horizontal_flip=1"),
      ("auto_exposure=manual mode", "auto_exposure=1"), ("auto_exposure=3", "auto_exposure=3"),
      ("auto_exposure=default", "auto_exposure=3"), ("3a_lock=0x5", "3a_lock=5"),
      ("do_white_balance=1", "do_white_balance=0"),
    ])
  func values(text: String, expected: String) throws {
    #expect(try set(text).count == 1)
    #expect(driver.numbersWritten == [expected])
  }

  @Test(
    "An exposure time is rounded to whole units of the control",
    arguments: [("4ms", 40), ("4100us", 41), ("0.0041s", 41), ("1/100s", 100), ("41", 41)])
  func times(text: String, expected: Int64) throws {
    let held = try set("exposure_time_absolute=\(text)", "auto_exposure=1")
    #expect(held[0].value == .number(expected))
    #expect(held[0].time == MediaTime(microseconds: expected * 100))
    #expect(
      driver.numbersWritten == ["auto_exposure=1", "exposure_time_absolute=\(expected)"],
      "the automatic comes first")
  }

  @Test func `Sets controls that hold text or arrays or rectangles`() throws {
    driver.change {
      $0.values[Self.text] = .text("ab")
      $0.values[Self.array] = .numbers([1, 2])
      $0.values[.regionOfInterest] = .rectangle(
        PixelRect(x: 0, y: 0, width: 1280, height: 720))
    }
    let held = try set("text=a=b", "array=9,1", "region=640x480+10+-20")
    #expect(
      held.map(\.value) == [
        .text("a=b"), .numbers([9, 1]), .rectangle(left: 10, top: -20, width: 640, height: 480),
      ])
  }

  @Test(
    "Rejects an invalid control value and suggests a valid one",
    arguments: [
      ("gain=256", "control_out_of_range", "choose 0 to 255 in steps of 5"),
      ("gain=-1", "control_out_of_range", "choose 0 to 255 in steps of 5"),
      ("gain=much", "control_out_of_range", "choose 0 to 255 in steps of 5"),
      ("gain=1ms", "control_out_of_range", "choose 0 to 255 in steps of 5"),
      ("gain=", "control_out_of_range", "choose 0 to 255 in steps of 5"),
      ("gain=7", "control_out_of_range", "choose 5 or 10, the nearest values"),
      ("gain=99999999999999999999", "control_out_of_range", "choose 0 to 255 in steps of 5"),
      (
        "exposure_time_absolute=4166us", "control_out_of_range",
        "it counts 100 µs; the nearest is 0.0041s (41) or 0.0042s (42)"
      ),
      (
        "exposure_time_absolute=1s", "control_out_of_range",
        "choose 3 to 2047, 0.0003 s to 0.2047 s"
      ),
      (
        "auto_exposure=2", "control_out_of_range",
        "choose 1 (Manual Mode), 3 (Aperture Priority Mode)"
      ),
      ("horizontal_flip=2", "control_out_of_range", "write on or off"),
      ("3a_lock=8", "control_out_of_range", "choose a number with the bits 0x7"),
      ("text=abcde", "control_out_of_range", "write text of 1 to 4 bytes"),
      ("array=1", "control_out_of_range", "write 2 numbers from 1 to 9, such as 1,2,3"),
      ("array=1,10", "control_out_of_range", "write 2 numbers from 1 to 9, such as 1,2,3"),
      (
        "region=1x2", "control_out_of_range", "write WIDTHxHEIGHT+LEFT+TOP, such as 640x480+0+0"
      ),
      ("gian=1", "control_not_found", "did you mean gain?"),
      ("exposure=1", "control_not_found", "did you mean auto_exposure or exposure_time_absolute?"),
      ("warp_factor=1", "control_not_found", "choose a control that it has"),
      ("privacy=0", "control_read_only", "leave it out: the camera sets it"),
      (
        "exposure_time_absolute=40", "control_inactive",
        "switch the automatic mode off first: auto_exposure=1 (Manual Mode)"
      ),
      ("rotate=90", "device_busy", "stop the recording first"),
      ("gain", "bad_assignment", "write NAME=VALUE, such as gain=64"),
      ("=1", "bad_assignment", "write NAME=VALUE, such as gain=64"),
    ])
  func refusals(text: String, code: String, recovery: String) throws {
    // A valid assignment before the invalid one is not applied either.
    let error = try #require(throws: MediaError.self) { try set("do_white_balance=1", text) }
    #expect(error.code.rawValue == code, "\(error)")
    #expect(error.recoverySuggestion == recovery)
    #expect(driver.writes == [])
  }

  @Test func `Rejects a control that is inactive or is set twice`() throws {
    let twice = try #require(throws: MediaError.self) { try set("gain=5", "gain=10") }
    #expect(twice.code == .badAssignment)
    let automatic = try #require(throws: MediaError.self) {
      try set("auto_exposure=3", "exposure_time_absolute=40")
    }
    #expect(automatic.code == .controlInactive)
    #expect(driver.writes == [])
  }

  @Test func `A failed control write undoes the earlier control writes`() throws {
    driver.change { $0.writeErrors[.lock3A] = 5 }
    let error = try #require(throws: MediaError.self) {
      try set("gain=10", "horizontal_flip=1", "3a_lock=1")
    }
    #expect(error.code == .deviceFailed)
    #expect(error.message == "could not set 3a_lock of /dev/video0: Input/output error")
    #expect(
      driver.numbersWritten == ["gain=10", "horizontal_flip=1", "horizontal_flip=0", "gain=0"])
  }

  @Test func `The control list has units and menu items and flags`() throws {
    let list = try driver.camera().list()
    let exposure = try #require(list.first { $0.name == "exposure_time_absolute" })
    #expect(exposure.unit == "100 µs" && exposure.kind.v4l2Name == "int")
    #expect(exposure.flags == ["inactive"])
    #expect(exposure.time == MediaTime(microseconds: 15_700))
    #expect(exposure.minimum == 3 && exposure.maximum == 2047 && exposure.step == 1)
    let mode = try #require(list.first { $0.name == "auto_exposure" })
    #expect(mode.menu.map(\.name) == ["Manual Mode", "Aperture Priority Mode"])
    let button = try #require(list.first { $0.name == "do_white_balance" })
    #expect(button.value == nil && button.minimum == nil)
  }

  @Test func `An unreadable control is listed without a value`() throws {
    driver.change { $0.readErrors[.gain] = 5 }
    let list = try driver.camera().list()
    #expect(list.first { $0.name == "gain" }.map { $0.value } == .some(nil))
    #expect(list.count == 11)
  }
}
