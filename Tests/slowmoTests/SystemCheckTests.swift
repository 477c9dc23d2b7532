// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankLinuxSystem
@testable import OvercrankMediaCore
@testable import OvercrankRecording
@testable import SlowmoCommands

/// The checks of `slowmo doctor` on simulated states of a machine.
struct SystemCheckTests {
  private static func camera(_ address: String = "/dev/video0") throws -> SystemState.Device {
    var camera = SystemState.Device(
      address: address, name: "Fast Camera", isCamera: true, isHardware: true)
    camera.diagnosis.permittedGroup = "video"
    camera.diagnosis.usb = USBLink(megabitsPerSecond: 5_000, supportsSuperSpeed: true, bus: 2)
    camera.fastest = SystemState.Mode(
      id: "1280x720@240/mjpg", demand: try demand("MJPG", 1_280, 720, 240))
    return camera
  }

  private static func demand(
    _ fourcc: String, _ width: Int, _ height: Int, _ rate: Int
  ) throws -> RecordingDemand {
    RecordingDemand(
      CaptureFormat(
        fourcc: try #require(FourCC(fourcc)), width: width, height: height,
        isCompressed: fourcc == "MJPG", frameRateRange: FrameRateRange(FrameRate(rate)),
        driverOrder: 0))
  }

  private static func healthy() throws -> SystemState {
    SystemState(
      versions: ["slowmo 1.0.0"],
      user: UserAccount(
        name: "anna", isRoot: false, groups: ["anna", "video"], memberships: ["anna", "video"]),
      devices: [
        SystemState.Device(
          address: "synthetic", name: "Synthetic camera", isCamera: true, isHardware: false),
        try camera(),
      ], warnings: [],
      disk: SystemState.Disk(
        directory: "/home/anna", isWritable: true, bytesPerSecond: 300_000_000,
        freeBytes: 50_000_000_000),
      availableMemory: 4_000_000_000,
      clock: SystemState.ClockSource(current: "tsc", available: ["tsc", "hpet"]),
      allowsRealTime: true, requiredEncoders: ["libx264"], missingEncoders: [],
      missingPrograms: [])
  }

  @Test func `System checks of a healthy machine find no problem`() throws {
    var states = [try Self.healthy()]
    // Without a camera, a slow disk is not a problem.
    var plain = try Self.healthy()
    plain.devices.removeLast()
    plain.disk.bytesPerSecond = 20_000_000
    states.append(plain)
    // A directory in memory has no disk speed. Another program may have a camera open without
    // streaming.
    var other = try Self.healthy()
    other.disk.bytesPerSecond = nil
    other.devices[1].diagnosis.holders = ["pipewire (process 7)"]
    other.clock.current = "kvm-clock"
    states.append(other)
    for state in states {
      #expect(state.checks.allSatisfy { $0.ok && $0.advice == nil && !$0.found.isEmpty })
      #expect(Set(state.checks.map(\.name)).count == state.checks.count)
    }
  }

  private typealias Plant = @Sendable (inout SystemState) throws -> Void

  /// Faults, each with the name of the check that finds it and a part of its advice.
  private static let faults: [(name: String, advice: String, plant: Plant)] = [
    (
      "permissions", "sudo usermod -aG video anna",
      { state in
        state.user.groups = ["anna"]
        state.user.memberships = ["anna"]
        state.devices[1].diagnosis.isForbidden = true
        state.devices[1].problem = "could not open /dev/video0: Permission denied"
      }
    ),
    (
      "permissions", "log out and log in again",
      { state in
        state.user.groups = ["anna"]
        state.devices[1].diagnosis.isForbidden = true
      }
    ),
    (
      "permissions", "udev rule",
      { state in
        state.devices[1].diagnosis.isForbidden = true
        state.devices[1].diagnosis.permittedGroup = nil
      }
    ),
    (
      "holders", "close firefox (process 9)",
      { state in
        state.devices[1].diagnosis.isStreamingElsewhere = true
        state.devices[1].diagnosis.holders = ["firefox (process 9)"]
      }
    ),
    (
      "holders", "sudo fuser -v /dev/video0",
      { state in
        state.devices[1].diagnosis.isStreamingElsewhere = true
      }
    ),
    (
      "usb", "faster port",
      { state in
        state.devices[1].diagnosis.usb = USBLink(
          megabitsPerSecond: 480, supportsSuperSpeed: true, bus: 1)
      }
    ),
    (
      "usb", "faster port",
      { state in
        state.devices[1].diagnosis.usb = USBLink(
          megabitsPerSecond: 12, supportsSuperSpeed: false, bus: 1)
      }
    ),
    (
      "usb", "slowmo modes /dev/video0",
      { state in
        state.devices[1].diagnosis.usb = USBLink(
          megabitsPerSecond: 480, supportsSuperSpeed: false, bus: 1)
        state.devices[1].fastest = SystemState.Mode(
          id: "640x480@200/yuyv", demand: try demand("YUYV", 640, 480, 200))
      }
    ),
    (
      "usb", "slowmo modes /dev/video0",
      { state in
        state.devices[1].diagnosis.usb = USBLink(
          megabitsPerSecond: 480, supportsSuperSpeed: false, bus: 1,
          isochronousBytesPerSecond: 24_576_000)
        state.devices[1].fastest = SystemState.Mode(
          id: "640x480@60/yuyv", demand: try demand("YUYV", 640, 480, 60))
      }
    ),
    ("disk", "faster disk", { $0.disk.bytesPerSecond = 20_000_000 }),
    ("disk", "free some space", { $0.disk.freeBytes = 1_000_000_000 }),
    (
      "disk", "--directory",
      { state in
        state.disk.isWritable = false
        state.disk.bytesPerSecond = nil
      }
    ),
    ("memory", "raise the memory limit", { $0.availableMemory = 100_000_000 }),
    ("clock", "echo tsc", { $0.clock.current = "jiffies" }),
    ("codecs", "libavcodec", { $0.missingEncoders = ["libx264"] }),
    ("devices", "plug it in again", { $0.devices[1].problem = "could not open /dev/video0" }),
    ("devices", "plug it in again", { $0.warnings = ["could not read /dev/video1"] }),
  ]

  @Test(arguments: faults.indices) func `System checks find exactly the simulated problem`(
    index: Int
  ) throws {
    let fault = Self.faults[index]
    var state = try Self.healthy()
    try fault.plant(&state)
    let problems = state.checks.filter { !$0.ok }
    #expect(problems.map(\.name) == [fault.name])
    let advice = problems.first?.advice ?? ""
    #expect(advice.contains(fault.advice), "\(advice)")
    let document = DoctorDocument(device: nil, checks: state.checks)
    #expect(!document.ok && document.lines.last == "1 problem")
  }

  @Test func `System checks report an optional improvement as advice`() throws {
    var state = try Self.healthy()
    state.allowsRealTime = false
    state.missingPrograms = ["slowmo-full"]
    state.clock = SystemState.ClockSource(current: "hpet", available: ["hpet"])
    #expect(state.checks.allSatisfy { $0.ok })
    #expect(
      state.checks.filter { $0.advice != nil }.map(\.name) == ["clock", "scheduling", "components"])
  }

  @Test func `System checks name the cameras that share a USB bus`() throws {
    var state = try Self.healthy()
    state.devices.append(try Self.camera("/dev/video2"))
    let usb = try #require(state.checks.first { $0.name == "usb" })
    #expect(usb.ok && usb.found.contains("/dev/video0") && usb.found.contains("shared with"))
  }

  /// The check of a name in a state, which no problem accompanies.
  private func tip(_ name: String, in state: SystemState) throws -> SystemCheck {
    #expect(state.checks.allSatisfy { $0.ok })
    return try #require(state.checks.first { $0.name == name })
  }

  @Test func `System checks report settings that may cost frames`() throws {
    var state = try Self.healthy()
    state.deliversDamagedFrames = false
    state.devices[1].driver = "uvcvideo"
    #expect(try tip("driver", in: state).found.contains("drops damaged frames"))
    state.devices[1].diagnosis.usb = USBLink(
      megabitsPerSecond: 480, supportsSuperSpeed: false, bus: 1,
      isochronousBytesPerSecond: 24_576_000, suspensionSwitch: "/sys/power/control")
    state.deliversDamagedFrames = true
    let driver = try tip("driver", in: state).found
    #expect(driver.contains("delivers damaged frames") && driver.contains("4 ms"))
    #expect(try tip("usb", in: state).found.contains("25 MB per second"))
    #expect(try tip("power", in: state).advice?.contains("/sys/power/control") == true)
    // Together, two such cameras exceed the share of a bus that isochronous transfers have.
    var second = state.devices[1]
    second.address = "/dev/video2"
    state.devices.append(second)
    #expect(try tip("usb", in: state).advice?.contains("different USB controllers") == true)
    // If the user names one camera, the other one still shares its bus.
    var named = state
    named.isForNamedDevice = true
    named.neighbors = [named.devices.removeLast()]
    let shared = try tip("usb", in: named)
    #expect(shared.advice?.contains("/dev/video0 and /dev/video2") == true)
    #expect(shared.found.contains("shared with /dev/video2") && !shared.found.contains(";"))
    // Two nodes of one camera share one connection.
    for number in [1, 2] {
      state.devices[number].diagnosis.usb = USBLink(
        megabitsPerSecond: 480, supportsSuperSpeed: false, directory: "/sys/1-1", bus: 1,
        isochronousBytesPerSecond: 24_576_000)
    }
    let one = try tip("usb", in: state)
    #expect(one.advice == nil && !one.found.contains("shared"))
  }

  @Test func `System checks report an exposure longer than a frame`() throws {
    var state = try Self.healthy()
    state.devices[1].fastest?.frameDuration = MediaTime(1, over: 240)
    state.devices[1].exposure = MediaTime(1, over: 1_000)
    let short = try tip("exposure", in: state)
    #expect(short.advice == nil && short.found.contains("1.000 ms"))
    state.devices[1].exposure = MediaTime(1, over: 50)
    let long = try tip("exposure", in: state)
    #expect(long.found.contains("20.000 ms") && long.found.contains("4.167 ms"))
    #expect(long.advice != nil)
  }

  @Test func `System checks read the clock source from sysfs`() throws {
    let root = try Scratch()
    #expect(SystemState.ClockSource(root: root.path).current == nil)
    let directory = "sys/devices/system/clocksource/clocksource0"
    try root.writeSystemFile("hpet\n", "\(directory)/current_clocksource")
    try root.writeSystemFile("tsc hpet acpi_pm \n", "\(directory)/available_clocksource")
    let clock = SystemState.ClockSource(root: root.path)
    #expect(clock.current == "hpet" && clock.available == ["tsc", "hpet", "acpi_pm"])
    try root.writeSystemFile("", "bin/slowmo")
    #expect(SystemState.missingPrograms(besides: root.file("bin/slowmo")) == ["slowmo-full"])
    try root.writeSystemFile("", "libexec/overcrank/slowmo-full")
    #expect(SystemState.missingPrograms(besides: root.file("bin/slowmo")).isEmpty)
  }
}
