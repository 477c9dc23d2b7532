// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import OvercrankALSA
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery

/// A machine that has only the nodes of an audio card.
private func machine(
  _ change: (inout FakeAudioCard.Description) -> Void = { _ in }
) -> FakeAudioCard {
  var description = FakeAudioCard.Description()
  change(&description)
  return FakeAudioCard(description)
}

private func with<Result>(
  _ card: FakeAudioCard, _ body: () throws -> Result
) rethrows -> Result {
  try ALSASystem.$calls.withValue(card, operation: body)
}

struct MicrophoneTests {
  @Test func `Lists a microphone and its properties after the cameras`() throws {
    let list = with(machine()) { CaptureDevice.discover() }
    let device = try #require(list.devices.last)
    #expect(device.media == [.audio] && device.kind == .alsa)
    #expect(device.path == "hw:0,0")
    #expect(device.name == "Fake card: Microphone")
    #expect(device.driver == "Fake" && device.problem == nil)
    #expect(list.warnings.isEmpty)
    #expect(list.devices.dropLast().allSatisfy { $0.media == [.video] })
    let position = list.devices.count - 1
    for name in ["hw:0,0", "hw:0", device.id, "cam\(position)"] {
      #expect(try with(machine()) { try CaptureDevice.named(name) } == device, "\(name)")
    }
  }

  @Test func `A microphone keeps its id when the card number changes`() throws {
    func device(_ card: UInt32, _ device: UInt32) throws -> CaptureDevice {
      let card = machine { $0.node = AudioNode(card: card, device: device) }
      return try #require(with(card) { CaptureDevice.discover() }.devices.last)
    }
    let (one, moved, other) = (try device(90, 0), try device(91, 0), try device(91, 2))
    #expect(one.path == "hw:90,0" && moved.path == "hw:91,0" && other.path == "hw:91,2")
    #expect(one.id == moved.id && moved.id != other.id)
    #expect(one.id == "Fake-Fake-pcm0")
  }

  @Test func `The id of a microphone is the udev name of its card`() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    let links = directory.appending(path: "by-id")
    try FileManager.default.createDirectory(at: links, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let real = directory.resolvingSymlinksInPath()
    try Data().write(to: real.appending(path: "controlC0"))
    try FileManager.default.createSymbolicLink(
      atPath: links.appending(path: "usb-046d_0825_A1B2-02").path,
      withDestinationPath: "../controlC0")
    let card = FakeAudioCard(FakeAudioCard.Description(), nodeDirectory: real.path)
    let device = try #require(with(card) { CaptureDevice.discover() }.devices.last)
    #expect(device.id == "usb-046d_0825_A1B2-02-pcm0")
  }

  @Test func `Lists an inaccessible microphone and the group with access`() throws {
    let list = with(machine { $0.describeResult = -EACCES }) { CaptureDevice.discover() }
    let device = try #require(list.devices.last)
    #expect(device.media == [.audio] && device.path == "hw:0,0")
    #expect(device.problem?.contains("Permission denied") == true)
    #expect(list.warnings.count == 1 && list.warnings[0].contains("group audio"))
    let card = machine { $0.openResult = -EACCES }
    let error = #expect(throws: MediaError.self) {
      try with(card) { try device.audioFormats() }
    }
    #expect(
      error?.code == .noPermission && error?.recoverySuggestion.contains("group audio") == true)
  }

  @Test func `A missing microphone is not listed and not found by name`() {
    let gone = machine { $0.describeResult = -ENOENT }
    let list = with(gone) { CaptureDevice.discover() }
    #expect(list.warnings.isEmpty && list.devices.allSatisfy { $0.media == [.video] })
    let error = #expect(throws: MediaError.self) {
      try with(gone) { try CaptureDevice.named("hw:0,0") }
    }
    #expect(error?.code == .deviceNotFound)
    #expect(with(gone) { CaptureDevice.defaultDevice(for: .audio) } == nil)
  }

  @Test func `A machine without audio cards lists no microphone`() {
    let calls = LibraryCalls(nodeDirectory: "/nowhere/at/all")
    let list = ALSASystem.$calls.withValue(calls) { CaptureDevice.discover() }
    #expect(list.devices.allSatisfy { $0.media == [.video] })
    #expect(list.warnings.allSatisfy { !$0.contains("hw:") })
  }

  @Test func `Audio formats combine sample type and channel count and rate`() throws {
    let card = machine {
      $0.layouts = [.s16, .s24Packed, .float]
      $0.channelCounts = 1...3
      $0.rates = [16_000, 44_100]
    }
    let device = try #require(with(card) { CaptureDevice.discover() }.devices.last)
    let formats = try with(card) { try device.audioFormats() }
    var expected: Set<String> = []
    for layout in ["s16", "s24_3", "float"] {
      for count in 1...3 {
        for rate in [16_000, 44_100] { expected.insert("\(rate)x\(count)/\(layout)") }
      }
    }
    #expect(Set(formats.map(\.id)) == expected && formats.count == expected.count)
    #expect(try with(card) { try device.preferredAudioFormat() }.id == "44100x2/float")
    #expect(!card.isOpen)
  }

  @Test func `Refuses to list formats of a busy card or wrong media type`() throws {
    let card = machine { $0.openResult = -EBUSY }
    let device = try #require(with(card) { CaptureDevice.discover() }.devices.last)
    let busy = #expect(throws: MediaError.self) {
      try with(card) { try device.audioFormats() }
    }
    #expect(busy?.code == .deviceBusy)
    let wrong = #expect(throws: MediaError.self) { try device.formats() }
    #expect(wrong?.code == .notACaptureDevice)
    let camera = try CaptureDevice.named("synthetic")
    let other = #expect(throws: MediaError.self) { try camera.audioFormats() }
    #expect(other?.code == .notACaptureDevice)
  }

  @Test func `Part of an id finds a camera before the camera microphone`() throws {
    let camera = CaptureDevice(
      id: "usb-046d_Cam_1", node: "/dev/video7", name: "Cam", driver: "uvcvideo", bus: "usb")
    let microphone = CaptureDevice(
      id: "usb-046d_Cam_1-02-pcm0", node: AudioNode(card: 1, device: 0), name: "Cam",
      driver: "USB-Audio", bus: "usb")
    #expect(try CaptureDevice.find("046d", among: [camera, microphone]) == camera)
    #expect(try CaptureDevice.find("02-pcm0", among: [camera, microphone]) == microphone)
  }
}
