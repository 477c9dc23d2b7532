// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Foundation
import Glibc
import OvercrankALSA
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// A directory that is removed with its owner.
private final class Scratch {
  let path = "/tmp/choice-\(UUID().uuidString)"

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Writes a file and creates its parent directories.
  func write(_ text: String, to file: String) throws {
    let url = URL(fileURLWithPath: "\(path)/\(file)")
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try text.write(to: url, atomically: true, encoding: .utf8)
  }
}

struct DeviceLocationTests {
  @Test(
    arguments: [
      // The sysfs attributes of the nearest device, its driver and bus, and then the expected type
      // and position.
      ("fixed", "front", "uvcvideo", "usb-1", CaptureDevice.DeviceType.builtIn, "front"),
      ("fixed", "back", "uvcvideo", "usb-1", .builtIn, "back"),
      ("fixed", "left", "uvcvideo", "usb-1", .builtIn, "unspecified"),
      // The connector is on the front of the machine, but the camera may face any direction.
      ("removable", "front", "uvcvideo", "usb-1", .external, "unspecified"),
      ("unknown", "front", "uvcvideo", "usb-1", .external, "unspecified"),
      (nil, nil, "uvcvideo", "usb-1", .external, "unspecified"),
      (nil, "back", "isp", "platform:isp", .builtIn, "back"),
      (nil, nil, "vivid", "platform:vivid-000", .virtual, "unspecified"),
      (nil, nil, "Loopback", "snd_aloop.0", .virtual, "unspecified"),
    ] as [(String?, String?, String, String, CaptureDevice.DeviceType, String)])
  func `Derives device type and position from sysfs attributes`(
    removable: String?, panel: String?, driver: String, bus: String,
    type: CaptureDevice.DeviceType, position: String
  ) throws {
    let scratch = try Scratch()
    try scratch.write("", to: "usb1/1-1/1-1:1.0/uevent")
    try scratch.write("unknown\n", to: "usb1/removable")
    if let removable { try scratch.write("\(removable)\n", to: "usb1/1-1/removable") }
    if let panel { try scratch.write("\(panel)\n", to: "usb1/1-1/physical_location/panel") }
    let offset = DeviceLocation(of: "\(scratch.path)/usb1/1-1/1-1:1.0", driver: driver, bus: bus)
    #expect(offset.type == type && offset.position.rawValue == position)
  }

  @Test func `A function of a USB device is external`() throws {
    let scratch = try Scratch()
    try scratch.write("unknown\n", to: "usb1/1-1/removable")
    try scratch.write("480\n", to: "usb1/1-1/speed")
    try scratch.write("1\n", to: "usb1/1-1/busnum")
    try scratch.write("02\n", to: "usb1/1-1/1-1:1.2/bInterfaceNumber")
    // The bus address of a sound card does not begin with the name of the bus.
    let location = DeviceLocation(
      of: "\(scratch.path)/usb1/1-1/1-1:1.2", driver: "USB-Audio", bus: "1-1:1.2")
    #expect(location.type == .external)
  }

  @Test func `A device missing from sysfs has an unspecified position`() {
    let offset = DeviceLocation(of: "/sys/class/video4linux/none/device", driver: "d", bus: "pci")
    #expect(offset.type == .builtIn && offset.position == .unspecified)
  }

  @Test func `Parses the list of audio cards in /proc/asound/cards`() throws {
    let lines = [
      " 0 [Loopback       ]: Loopback - Loopback", "                      Loopback 1",
      "12 [C920           ]: USB-Audio - HD Pro Webcam - C920",
      "                      HD Pro Webcam C920 at usb-0000:00:14.0-1, high speed",
      "--- no soundcards ---", "",
    ]
    let cards = lines.compactMap(AudioCardLine.init)
    #expect(cards.map(\.card) == [0, 12])
    #expect(cards.map(\.driver) == ["Loopback", "USB-Audio"])
    #expect(cards.map(\.name) == ["Loopback", "HD Pro Webcam - C920"])
  }

  @Test func `An audio card without permission is not reported as missing`() throws {
    let scratch = try Scratch()
    // Real machines do not have this many cards, so the audio library does not know this card.
    try scratch.write("", to: "controlC31")
    chmod("\(scratch.path)/controlC31", 0)
    let calls = LibraryCalls(nodeDirectory: scratch.path)
    var description = AudioDescription()
    var handle = AudioHandle()
    let node = AudioNode(card: 31, device: 0)
    // Root may open every node.
    let expected = geteuid() == 0 ? -ENODEV : -EACCES
    let answers = [
      calls.describe(node, &description), calls.open(node.hardwareName, &handle),
    ]
    #expect(answers.allSatisfy { $0 == expected || (geteuid() == 0 && $0 == -ENOENT) })
  }
}

struct DefaultDeviceTests {
  private func with<Answer>(
    _ machine: any VideoSystemCalls, _ card: FakeAudioCard.Description? = nil,
    nodesIn directory: String = "/nowhere", remembering scratch: Scratch? = nil,
    _ body: () throws -> Answer
  ) rethrows -> Answer {
    var none = FakeAudioCard.Description()
    none.describeResult = -ENOENT
    let memory = PreferredCameras(stateDirectory: scratch?.path, home: nil)
    return try DeviceSystem.$calls.withValue(machine) {
      try ALSASystem.$calls.withValue(FakeAudioCard(card ?? none, nodeDirectory: directory)) {
        try PreferredCameras.$current.withValue(memory, operation: body)
      }
    }
  }

  @Test func `Discovery lists devices in the order of the requested types`() throws {
    let machine = try FakeVideoSystemCalls(
      "stepwise-sensor\nhfr-usb\ncontinuous-sensor\nmono-hfr\nyuyv-1080p120")
    with(machine, FakeAudioCard.Description()) {
      func names(
        _ types: [CaptureDevice.DeviceType], _ media: MediaType? = nil,
        _ position: CaptureDevice.Position = .unspecified
      ) -> [String] {
        CaptureDevice.discover(types, for: media, at: position).map(\.name)
      }
      #expect(
        names([.external, .builtIn], .video) == [
          "High Frame Rate Camera", "Mono Global Shutter", "Stepwise Sensor",
          "Continuous Sensor", "Uncompressed 1080p120",
        ])
      #expect(names([.virtual, .external, .virtual], .video).first == "Synthetic camera")
      #expect(names([.virtual, .external, .virtual], .video).count == 3)
      #expect(names([.builtIn], .video, .back) == ["Continuous Sensor"])
      #expect(names([.builtIn], nil, .front) == ["Stepwise Sensor"])
      #expect(names(CaptureDevice.DeviceType.allCases, .audio) == ["Fake card: Microphone"])
      #expect(names([]) == [])
      #expect(CaptureDevice.defaultDevice(for: .video)?.name == "High Frame Rate Camera")
    }
  }

  @Test func `The synthetic camera is not a default if no camera exists`() throws {
    let scratch = try Scratch()
    let machine = try FakeVideoSystemCalls("output")
    with(machine, remembering: scratch) {
      #expect(CaptureDevice.discover().map(\.id) == ["synthetic"])
      #expect(CaptureDevice.defaultDevice(for: .video) == nil)
      #expect(CaptureDevice.userPreferredCamera == nil)
      #expect(CaptureDevice.systemPreferredCamera == nil)
      for media in [MediaType.video, .audio] {
        #expect(CaptureDevice.authorizationStatus(for: media) == .noDevice)
        let error = #expect(throws: MediaError.self) { try CaptureDevice.requestAccess(for: media) }
        #expect(error?.code == .deviceNotFound)
      }
    }
  }

  @Test func `A denied authorization status names the group with access`() throws {
    let scratch = try Scratch()
    let capture = UInt32(V4L2_CAP_VIDEO_CAPTURE) | UInt32(V4L2_CAP_STREAMING)
    let machine = StubDriver(scratch.path, ["camera": StubDriver.Node(capabilities: capture)])
    try "".write(toFile: "\(scratch.path)/controlC0", atomically: false, encoding: .utf8)
    // Only root can give a node to a group that is not one of its own.
    let isRoot = geteuid() == 0
    func give(_ name: String, to group: gid_t, mode: mode_t = 0o660) {
      let path = "\(scratch.path)/\(name)"
      chmod(path, mode)
      if isRoot { #expect(chown(path, 0, group) == 0) }
    }
    func groupName(_ id: gid_t) -> String? {
      getgrgid(id).map { String(cString: $0.pointee.gr_name) }
    }
    let (video, audio): (gid_t, gid_t) = isRoot ? (44, 29) : (getegid(), getegid())
    func status(_ result: CInt) -> [CaptureDevice.AuthorizationStatus] {
      var card = FakeAudioCard.Description()
      card.describeResult = result
      return with(machine, card, nodesIn: scratch.path) {
        [MediaType.video, .audio].map { CaptureDevice.authorizationStatus(for: $0) }
      }
    }
    func refusal(_ media: MediaType, _ result: CInt) -> MediaError? {
      var card = FakeAudioCard.Description()
      card.describeResult = result
      return with(machine, card, nodesIn: scratch.path) {
        do throws(MediaError) { try CaptureDevice.requestAccess(for: media) } catch { return error }
        return nil
      }
    }
    #expect(status(-ENOENT) == [.noDevice, .noDevice])
    try machine.plug(0, "forbidden")
    give("video0", to: video)
    give("controlC0", to: audio)
    #expect(
      status(-EACCES) == [.denied(group: groupName(video)), .denied(group: groupName(audio))])
    for (media, group) in [(MediaType.video, video), (.audio, audio)] {
      let error = try #require(refusal(media, -EACCES))
      let name = try #require(groupName(group))
      #expect(error.code == .noPermission)
      #expect(error.recoverySuggestion.contains("usermod -aG \(name) $USER"), "\(error)")
    }
    // A group without permission on its node is not named.
    give("video0", to: video, mode: 0o600)
    #expect(status(-EACCES)[0] == .denied(group: nil))
    #expect(refusal(.video, -EACCES)?.code == .noPermission)
    // A device that another program uses may be opened.
    #expect(status(-EBUSY) == [.denied(group: nil), .authorized])
    #expect(refusal(.audio, -EBUSY) == nil)
    try machine.plug(1, "camera")
    #expect(status(0) == [.authorized, .authorized])
    with(machine) {
      #expect(CaptureDevice.defaultDevice(for: .video)?.path == "\(scratch.path)/video1")
    }
  }

  @Test func `Picks the latest preferred camera that is plugged in`() throws {
    let scratch = try Scratch()
    let machine = try FakeVideoSystemCalls("hfr-usb\nmono-hfr\nstepwise-sensor\ntiny")
    try with(machine, remembering: scratch) {
      let cameras = CaptureDevice.discover()
      #expect(CaptureDevice.userPreferredCamera == cameras[0])
      try CaptureDevice.setUserPreferredCamera(cameras[2])
      try CaptureDevice.setUserPreferredCamera(cameras[1])
      #expect(CaptureDevice.userPreferredCamera == cameras[1])
      #expect(CaptureDevice.systemPreferredCamera == cameras[1])
      // The synthetic camera is preferred only if the user chooses it.
      try CaptureDevice.setUserPreferredCamera(cameras[4])
      #expect(CaptureDevice.userPreferredCamera?.id == "synthetic")
      try CaptureDevice.setUserPreferredCamera(cameras[1])
      let ids = [cameras[1], cameras[4], cameras[2]].map(\.id)
      #expect(PreferredCameras.current.ids == ids)
      let file = "\(scratch.path)/overcrank/preferred-cameras"
      #expect(try String(contentsOfFile: file, encoding: .utf8) == ids.map { "\($0)\n" }.joined())
    }
    // When the program runs again, the latest preferred camera is not plugged in.
    let others = try FakeVideoSystemCalls("tiny\nstepwise-sensor")
    try with(others, remembering: scratch) {
      #expect(CaptureDevice.userPreferredCamera?.id == "synthetic")
      try CaptureDevice.setUserPreferredCamera(try CaptureDevice.named("cam1"))
      #expect(CaptureDevice.userPreferredCamera?.name == "Stepwise Sensor")
    }
    // None of the stored preferred cameras is present, but another camera is.
    let stranger = try FakeVideoSystemCalls("odd-rates")
    let empty = try Scratch()
    with(stranger, remembering: empty) {
      #expect(CaptureDevice.userPreferredCamera?.name == "Odd Fractions")
    }
  }

  @Test func `The system preferred camera is one that can be opened`()
    throws
  {
    let scratch = try Scratch()
    let capture = UInt32(V4L2_CAP_VIDEO_CAPTURE) | UInt32(V4L2_CAP_STREAMING)
    let machine = StubDriver(scratch.path, ["camera": StubDriver.Node(capabilities: capture)])
    try machine.plug(0, "camera")
    try machine.plug(1, "camera")
    try with(machine, remembering: scratch) {
      let second = CaptureDevice.discover()[1]
      try CaptureDevice.setUserPreferredCamera(second)
      try machine.plug(1, "forbidden")
      // A node that cannot be opened has a different id, made from public attributes.
      let forbidden = CaptureDevice.discover()[1]
      try CaptureDevice.setUserPreferredCamera(forbidden)
      #expect(CaptureDevice.userPreferredCamera == forbidden)
      #expect(CaptureDevice.systemPreferredCamera?.path == "\(scratch.path)/video0")
    }
  }

  @Test func `Stores eight preferred cameras and skips damaged file lines`() throws {
    let scratch = try Scratch()
    let memory = PreferredCameras(stateDirectory: scratch.path, home: "/nowhere")
    #expect(memory.ids == [])
    for number in 0..<12 {
      let camera = CaptureDevice(
        id: "camera\(number)", node: "/dev/video\(number)", name: "", driver: "", bus: "")
      try memory.remember(camera)
    }
    #expect(memory.ids == (4..<12).reversed().map { "camera\($0)" })
    try scratch.write("\n\n\u{0}\u{FFFD}", to: "overcrank/preferred-cameras")
    #expect(memory.latest(among: CaptureDevice.discover().devices) == nil)
  }

  @Test func `A camera that cannot be stored is refused as preferred`() throws {
    let scratch = try Scratch()
    let machine = try FakeVideoSystemCalls("hfr-usb")
    try with(machine, FakeAudioCard.Description(), remembering: scratch) {
      let wrong = try [
        CaptureDevice.named("hw:0"), CaptureDevice.named("synthetic:128x96@30"),
      ]
      for device in wrong {
        let error = #expect(throws: MediaError.self) {
          try CaptureDevice.setUserPreferredCamera(device)
        }
        #expect(error?.code == .notACaptureDevice)
      }
      try scratch.write("a file where the directory should be", to: "overcrank")
      let error = #expect(throws: MediaError.self) {
        try CaptureDevice.setUserPreferredCamera(try CaptureDevice.named("cam0"))
      }
      #expect(error?.code == .notRemembered && error?.message.contains(scratch.path) == true)
    }
  }

  @Test(
    arguments: [
      ("/state", "/home/me", "/state/overcrank/preferred-cameras"),
      (nil, "/home/me", "/home/me/.local/state/overcrank/preferred-cameras"),
      ("state", "/home/me", "/home/me/.local/state/overcrank/preferred-cameras"),
      ("", nil, nil), (nil, "relative", nil),
    ] as [(String?, String?, String?)])
  func `Preferred cameras are stored in the XDG state directory`(
    state: String?, home: String?, path: String?
  ) {
    #expect(PreferredCameras(stateDirectory: state, home: home).path == path)
  }
}
