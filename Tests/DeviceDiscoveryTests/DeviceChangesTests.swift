// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Foundation
import OvercrankALSA
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// A directory that replaces `/dev`, with nodes that appear and disappear.
private final class ScratchDevices {
  static let capture = UInt32(V4L2_CAP_VIDEO_CAPTURE) | UInt32(V4L2_CAP_STREAMING)

  let directory = "/tmp/devices-\(UUID().uuidString)"
  let driver: StubDriver
  /// An audio card whose nodes are the files of the directory `snd`.
  let card: FakeAudioCard

  init() throws {
    var card = FakeAudioCard.Description()
    card.hasNodesInDirectory = true
    self.card = FakeAudioCard(card, nodeDirectory: "\(directory)/snd")
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    driver = StubDriver(
      directory,
      [
        "camera": StubDriver.Node(card: "Camera", capabilities: Self.capture),
        "other": StubDriver.Node(card: "Other", capabilities: Self.capture),
        "planes": StubDriver.Node(
          card: "Planes",
          capabilities: UInt32(V4L2_CAP_VIDEO_CAPTURE_MPLANE) | UInt32(V4L2_CAP_STREAMING)),
        "metadata": StubDriver.Node(
          capabilities: UInt32(V4L2_CAP_META_CAPTURE) | UInt32(V4L2_CAP_STREAMING)),
        "output": StubDriver.Node(
          capabilities: UInt32(V4L2_CAP_VIDEO_OUTPUT) | UInt32(V4L2_CAP_STREAMING)),
        "codec": StubDriver.Node(
          capabilities: UInt32(V4L2_CAP_VIDEO_M2M_MPLANE) | UInt32(V4L2_CAP_STREAMING)),
        "touch": StubDriver.Node(capabilities: Self.capture | UInt32(V4L2_CAP_TOUCH)),
        "still": StubDriver.Node(capabilities: UInt32(V4L2_CAP_VIDEO_CAPTURE)),
      ])
  }

  deinit { try? FileManager.default.removeItem(atPath: directory) }

  /// Makes a link to a node, as udev does.
  func link(_ number: Int, as name: String) throws {
    let links = "\(directory)/v4l/by-id"
    try FileManager.default.createDirectory(atPath: links, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: "\(links)/\(name)", withDestinationPath: "../../video\(number)")
  }

  func with<Answer>(_ body: () throws -> Answer) rethrows -> Answer {
    try DeviceSystem.$calls.withValue(driver) {
      try ALSASystem.$calls.withValue(card, operation: body)
    }
  }

  /// Creates or removes a node of the audio card, as the kernel does.
  func setAudioNode(_ name: String, exists: Bool) throws {
    let path = "\(directory)/snd/\(name)"
    guard exists else { return try FileManager.default.removeItem(atPath: path) }
    try FileManager.default.createDirectory(
      atPath: "\(directory)/snd", withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: path))
  }

  /// A change as one line: `+video0 Camera` or `-video0`.
  static func text(_ change: CaptureDeviceChange) -> String {
    func node(_ path: String?) -> String {
      path?.split(separator: "/").last.map(String.init) ?? "synthetic"
    }
    return switch change {
    case .added(let device): "+\(node(device.path)) \(device.name)"
    case .removed(_, let path): "-\(node(path))"
    }
  }
}

/// The nodes that are listed as cameras.
struct DeviceListingTests {
  @Test func `Lists only capture nodes as cameras in node number order`()
    throws
  {
    let devices = try ScratchDevices()
    for (number, text) in [
      (10, "camera"), (2, "planes"), (0, "camera"), (1, "metadata"), (3, "output"), (4, "codec"),
      (5, "touch"), (6, "still"), (7, "no driver"), (8, "forbidden"),
    ] {
      try devices.driver.plug(number, text)
    }
    let list = devices.with { CaptureDevice.discover() }
    #expect(
      list.devices.map(\.name) == ["Camera", "Planes", "video8", "Camera", "Synthetic camera"])
    #expect(list.devices.map(\.problem).compactMap(\.self).count == 1)
    let forbidden = try #require(list.devices.first { $0.problem != nil })
    #expect(forbidden.problem == "could not open \(devices.directory)/video8: Permission denied")
    #expect(list.warnings.count == 1)
    // Devices of the same name and bus are distinguished by a number.
    #expect(list.devices.map(\.id).contains("stub-Camera-2"))
  }
}

/// The changes that are reported for devices.
///
/// The tests wait for changes and never for a time.
struct DeviceChangesTests {
  @Test func `A microphone appears and disappears with its device node`() async throws {
    let devices = try ScratchDevices()
    var changes = try devices.with { try CaptureDevice.changes() }.makeAsyncIterator()
    func next() async -> String {
      await changes.next(isolation: #isolation).map(ScratchDevices.text) ?? "end"
    }
    #expect(await next() == "+synthetic Synthetic camera")
    try devices.setAudioNode("pcmC0D0p", exists: true)
    try devices.setAudioNode("pcmC0D0c", exists: true)
    #expect(await next() == "+hw:0,0 Fake card: Microphone")
    try devices.driver.plug(0, "camera")
    #expect(await next() == "+video0 Camera")
    try devices.setAudioNode("pcmC0D0c", exists: false)
    #expect(await next() == "-hw:0,0")
    try devices.setAudioNode("pcmC0D0c", exists: true)
    #expect(await next() == "+hw:0,0 Fake card: Microphone")
  }

  @Test func `Reports the present devices first and then each change`() async throws {
    let devices = try ScratchDevices()
    try devices.driver.plug(1, "other")
    try devices.driver.plug(0, "camera")
    var changes = try devices.with { try CaptureDevice.changes() }.makeAsyncIterator()
    func next() async -> String {
      await changes.next(isolation: #isolation).map(ScratchDevices.text) ?? "end"
    }
    #expect(await next() == "+video0 Camera")
    #expect(await next() == "+video1 Other")
    #expect(await next() == "+synthetic Synthetic camera")
    try devices.driver.plug(12, "metadata")
    try devices.driver.plug(11, "camera")
    #expect(await next() == "+video11 Camera")
    devices.driver.unplug(1)
    #expect(await next() == "-video1")
    devices.driver.unplug(12)
    devices.driver.unplug(0)
    #expect(await next() == "-video0")
    // Without the other camera, the id of this camera does not need a number anymore.
    #expect(await next() == "-video11")
    #expect(await next() == "+video11 Camera")
  }

  @Test func `A device that reappears is reported as removed and added`() async throws {
    let devices = try ScratchDevices()
    try devices.driver.plug(0, "camera")
    var changes = try devices.with { try CaptureDevice.changes() }.makeAsyncIterator()
    func next() async -> String {
      await changes.next(isolation: #isolation).map(ScratchDevices.text) ?? "end"
    }
    #expect(await next() == "+video0 Camera")
    #expect(await next() == "+synthetic Synthetic camera")
    for _ in 0..<20 {
      devices.driver.unplug(0)
      try devices.driver.plug(0, "camera")
      #expect(await next() == "-video0")
      #expect(await next() == "+video0 Camera")
    }
  }

  @Test func `Reports a new device after udev has set its permissions`() async throws {
    let devices = try ScratchDevices()
    let changes = try devices.with { try CaptureDevice.changes() }
    var iterator = changes.makeAsyncIterator()
    #expect(try await iterator.next().map(ScratchDevices.text) == "+synthetic Synthetic camera")
    // First the node has the mode that the kernel gives it, then the mode that udev gives it.
    try devices.driver.plug(0, "forbidden", mode: 0o600)
    try devices.driver.plug(1, "camera")
    #expect(try await iterator.next().map(ScratchDevices.text) == "+video1 Camera")
    try devices.link(0, as: "usb-Maker_Camera_7-video-index0")
    try devices.driver.plug(0, "camera")
    guard case .added(let device) = await iterator.next(isolation: #isolation) else {
      Issue.record("no device was added")
      return
    }
    #expect(device.path == "\(devices.directory)/video0")
    #expect(device.id == "usb-Maker_Camera_7")
    #expect(device.problem == nil)
    // A revoked permission is reported as a change, too.
    try devices.driver.plug(0, "forbidden", mode: 0o660)
    #expect(try await iterator.next() == .removed(id: "usb-Maker_Camera_7", path: device.path))
    guard case .added(let forbidden) = await iterator.next(isolation: #isolation) else {
      Issue.record("no device was added")
      return
    }
    #expect(forbidden.problem?.hasSuffix("Permission denied") == true)
  }

  @Test func `Reports every change while a hundred devices come and go`() async throws {
    let devices = try ScratchDevices()
    let changes = try devices.with { try CaptureDevice.changes() }
    let driver = devices.driver
    let plugging = Task.detached {
      for number in 0..<100 {
        try driver.plug(number, "camera")
        if number % 3 == 0 { driver.unplug(number) }
      }
      try driver.plug(1000, "other")
    }
    var present: Set<String> = []
    for await change in changes {
      switch change {
      case .added(let device): present.insert(device.path ?? device.id)
      case .removed(let id, let path): present.remove(path ?? id)
      }
      // The device that was plugged in last is reported last.
      if present.contains("\(devices.directory)/video1000") { break }
    }
    try await plugging.value
    let expected = (0..<100).filter { $0 % 3 != 0 }.map { "\(devices.directory)/video\($0)" }
    #expect(present == Set(expected + ["synthetic", "\(devices.directory)/video1000"]))
  }

  @Test func `Cancelling the task ends the stream of device changes`() async throws {
    let devices = try ScratchDevices()
    let changes = try devices.with { try CaptureDevice.changes() }
    let counting = Task {
      var count = 0
      for await _ in changes { count += 1 }
      return count
    }
    counting.cancel()
    #expect(await counting.value <= 1)
    // An unused stream closes its watcher.
    _ = try devices.with { try CaptureDevice.changes() }
  }
}
