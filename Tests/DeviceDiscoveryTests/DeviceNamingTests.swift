// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankALSA
import OvercrankLinuxSystem
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// The names and ids of devices.
struct DeviceNamingTests {
  private func error(_ name: String) throws -> MediaError {
    try #require(throws: MediaError.self) { try CaptureDevice.named(name) }
  }

  @Test func `Refuses a missing node and files that are not cameras`() throws {
    let missing = try error("/dev/video-none")
    #expect(missing.code == .deviceNotFound)
    #expect(missing.message == "could not open /dev/video-none: No such file or directory")
    #expect(missing.recovery == Recovery("choose a device that is listed", .listDevices))

    let null = try error("/dev/null")
    #expect(null.code == .notACaptureDevice)
    #expect(null.message == "could not open /dev/null: it is not a video device")

    let directory = try error("/dev/")
    #expect(directory.code == .notACaptureDevice)
    #expect(directory.message == "/dev/ is not a video device")

    let file = try error("/etc/passwd")
    #expect(file.code == .notACaptureDevice)
    #expect(file.message == "/etc/passwd is a file, not a video device")
    #expect(file.recoverySuggestion == "play it as a camera with: file:/etc/passwd")
  }

  @Test(
    "Refuses a name that matches no device",
    arguments: ["", "cam4294967295", "cam99999999999", "video-none", "SYNTHETIC", "null"])
  func unknown(name: String) throws {
    #expect(try error(name).code == .deviceNotFound)
  }

  @Test func `Finds a device by index or id or unique part of an id`() throws {
    let devices = [
      CaptureDevice(
        id: "usb-046d_C920_AB", node: "/dev/video0", name: "C920", driver: "uvcvideo", bus: "1"),
      CaptureDevice(
        id: "usb-046d_C920_AB-2", node: "/dev/video2", name: "C920", driver: "uvcvideo", bus: "1"),
      CaptureDevice(SyntheticCamera(), id: "synthetic"),
    ]
    func find(_ name: String) throws -> String? {
      try CaptureDevice.find(name, among: devices).path
    }
    #expect(try find("cam0") == "/dev/video0")
    #expect(try find("cam1") == "/dev/video2")
    #expect(try find("cam2") == nil)
    #expect(try find("usb-046d_C920_AB") == "/dev/video0")
    #expect(try find("AB-2") == "/dev/video2")
    let several = try #require(throws: MediaError.self) { try find("C920") }
    #expect(several.code == .badName)
    let ids = "usb-046d_C920_AB, usb-046d_C920_AB-2"
    #expect(several.recoverySuggestion == "write more of an id: \(ids)")
    #expect(throws: MediaError.self) { try find("cam3") }
  }

  @Test func `Equal device ids are made unique by a number`() {
    let devices = (0..<3).map { number in
      CaptureDevice(id: "isp-bus", node: "/dev/video\(number)", name: "", driver: "", bus: "")
    }
    #expect(
      CaptureDevice.withUniqueIDs(devices).map(\.id) == ["isp-bus", "isp-bus-2", "isp-bus-3"])
  }

  @Test func `The synthetic camera is always listed as the last camera`() throws {
    let devices = CaptureDevice.discover().filter { $0.media == [.video] }
    #expect(devices.last?.kind == .synthetic)
    #expect(devices.last?.id == "synthetic")
    #expect(devices.last?.media == [.video])
    #expect(try CaptureDevice.named("cam\(devices.count - 1)") == devices.last)
    #expect(try CaptureDevice.named("synthetic") == devices.last)
  }

  @Test func `Regular files named like video nodes are not cameras`() throws {
    let directory = "/tmp/nodes-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    for name in ["video0", "video", "videox", "video-1", "video99999999999"] {
      #expect(FileManager.default.createFile(atPath: "\(directory)/\(name)", contents: nil))
    }
    let list = DeviceSystem.$calls.withValue(KernelVideoCalls(nodeDirectory: directory)) {
      ALSASystem.$calls.withValue(LibraryCalls(nodeDirectory: directory)) {
        CaptureDevice.discover()
      }
    }
    #expect(list.devices.map(\.id) == ["synthetic"])
    #expect(list.warnings == [])
  }

  @Test func `Device ids are the names of udev links`() throws {
    let directory = "/tmp/links-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    for (link, node) in [
      ("usb-046d_C920_AB-video-index0", "/dev/null"),
      ("usb-046d_C920_AB-video-index2", "/dev/full"),
    ] {
      try FileManager.default.createSymbolicLink(
        atPath: "\(directory)/\(link)", withDestinationPath: node)
    }
    let pathLinks = "\(directory)/by-path"
    try FileManager.default.createDirectory(atPath: pathLinks, withIntermediateDirectories: true)
    for (link, node) in [
      ("pci-0000:00:14.0-usb-0:1:1.0-video-index0", "/dev/null"),
      ("pci-0000:00:14.0-usb-0:2:1.0-video-index0", "/dev/random"),
    ] {
      try FileManager.default.createSymbolicLink(
        atPath: "\(pathLinks)/\(link)", withDestinationPath: node)
    }
    let identity = DeviceIdentity(linksIn: directory, pathsIn: pathLinks)
    func name(_ node: String) -> String { identity.name(of: node, driver: "d r", bus: "usb:1/2") }
    #expect(name("/dev/null") == "usb-046d_C920_AB")
    #expect(name("/dev/full") == "usb-046d_C920_AB-video-index2")
    // A device without a link in `by-id` is named after its path, or after its driver and bus.
    #expect(name("/dev/random") == "pci-0000:00:14.0-usb-0:2:1.0")
    #expect(name("/dev/zero") == "d_r-usb:1_2")
  }
}

/// The names of USB sound cards, on systems with and without udev's links.
struct CardNamingTests {
  /// A directory of a USB device with a sound card.
  private func device(serial: String?) throws -> Scratch {
    let root = try Scratch()
    for (file, text) in [
      ("speed", "480"), ("busnum", "1"), ("idVendor", "046d"), ("idProduct", "0825"),
      ("manufacturer", "Acme Inc"), ("product", "Fast Cam"), ("1-2:1.2/bInterfaceNumber", "02"),
    ] + (serial.map { [("serial", $0)] } ?? []) {
      try root.writeSystemFile("\(text)\n", "1-2/\(file)")
    }
    return root
  }

  private func name(of root: Scratch, node: String = "/dev/snd/controlC9") -> String {
    DeviceIdentity(linksIn: root.file("links")).name(
      ofCard: node, at: root.file("1-2/1-2:1.2"), driver: "Cam", bus: "1-2:1.2")
  }

  @Test func `A USB sound card is named after its device and serial number`() throws {
    #expect(try name(of: device(serial: "A1B2")) == "usb-Acme_Inc_Fast_Cam_A1B2-02")
    #expect(try name(of: device(serial: nil)) == "usb-Acme_Inc_Fast_Cam-02")
  }

  @Test func `A link of udev names a USB sound card first`() throws {
    let root = try device(serial: "A1B2")
    try FileManager.default.createDirectory(
      atPath: root.file("links"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: root.file("links/usb-046d_0825-02"), withDestinationPath: "/dev/null")
    #expect(name(of: root, node: "/dev/null") == "usb-046d_0825-02")
  }

  @Test func `Only a serial number keeps the port out of a microphone id`() throws {
    func ids(_ serial: String?) throws -> (current: String, former: [String]) {
      let root = try device(serial: serial)
      return DeviceIdentity(linksIn: root.file("links")).ids(
        ofCard: "/dev/snd/controlC9", at: root.file("1-2/1-2:1.2"), driver: "Cam", bus: "1-2:1.2",
        device: 0)
    }
    let (known, unknown) = (try ids("A1B2"), try ids(nil))
    #expect(known.current == "usb-Acme_Inc_Fast_Cam_A1B2-02-pcm0")
    #expect(known.former == ["Cam-1-2:1.2-pcm0"])
    #expect(unknown.current == "usb-Acme_Inc_Fast_Cam-02-pcm0-1-2:1.2")
    #expect(unknown.former == ["usb-Acme_Inc_Fast_Cam-02-pcm0", "Cam-1-2:1.2-pcm0"])
  }

  @Test func `A former id of two microphones is ambiguous`() throws {
    let microphones = ["1-1:1.2", "1-2:1.2"].map { port in
      CaptureDevice(
        id: "usb-Cam-02-pcm0-\(port)", formerIDs: ["usb-Cam-02-pcm0", "Cam-\(port)-pcm0"],
        node: AudioNode(card: 1, device: 0), name: "Cam", driver: "USB-Audio", bus: port)
    }
    let error = #expect(throws: MediaError.self) {
      try CaptureDevice.find("usb-Cam-02-pcm0", among: microphones)
    }
    #expect(error?.code == .badName)
    for (index, name) in ["Cam-1-1:1.2-pcm0", "usb-Cam-02-pcm0-1-2:1.2"].enumerated() {
      #expect(try CaptureDevice.find(name, among: microphones) == microphones[index])
    }
    let alone = try CaptureDevice.find("usb-Cam-02-pcm0", among: [microphones[1]])
    #expect(alone == microphones[1])
  }

  @Test func `A sound card on another bus is named after its address`() throws {
    let root = try Scratch()
    #expect(name(of: root) == "Cam-1-2:1.2")
  }

  @Test func `The previous id of a microphone still finds it`() throws {
    let microphone = CaptureDevice(
      id: "usb-Acme_Cam_A1-02-pcm0", formerIDs: ["Cam-1-2:1.2-pcm0"],
      node: AudioNode(card: 1, device: 0), name: "Cam", driver: "USB-Audio", bus: "1-2:1.2")
    let other = CaptureDevice(
      id: "PCH-0000:00:1f.3-pcm0", formerIDs: ["PCH-0000:00:1f.3-pcm0"],
      node: AudioNode(card: 0, device: 0), name: "PCH", driver: "HDA-Intel", bus: "0000:00:1f.3")
    for name in ["usb-Acme_Cam_A1-02-pcm0", "Cam-1-2:1.2-pcm0", "Acme", "1-2:1.2"] {
      #expect(try CaptureDevice.find(name, among: [other, microphone]) == microphone)
    }
  }

  @Test func `A device without a USB directory has no microphone`() {
    let camera = CaptureDevice(
      id: "c", node: "/dev/video-none", name: "Cam ", driver: "isp", bus: "platform:isp")
    let microphone = CaptureDevice(
      id: "m", node: AudioNode(card: 99, device: 0), name: "Mic", driver: "x", bus: "y")
    #expect(camera.microphone == nil && camera.microphone(among: [microphone]) == nil)
    #expect(camera.name == "Cam")
  }
}

/// The synthetic camera, which needs no hardware.
struct SyntheticCameraTests {
  private func camera(_ name: String) throws -> SyntheticCamera {
    try #require(try SyntheticCamera(parsing: name))
  }

  @Test func `The synthetic camera lists 36 formats by default`() throws {
    let formats = try CaptureDevice.named("synthetic").formats()
    #expect(formats.count == 36)
    #expect(Set(formats.map(\.id)).count == 36)
    #expect(formats.first?.id == "640x480@30/mjpg")
    #expect(formats.last?.id == "1920x1080@240/grey")
    #expect(try CaptureDevice.named("synthetic").fastestFormat().id == "1920x1080@240/mjpg")
  }

  @Test(
    "The synthetic camera has each requested mode it can draw",
    arguments: [
      ("synthetic", "320x240@1000/grey", "320x240@1000/grey"),
      ("synthetic", "@2000", "1920x1080@2000/mjpg"), ("synthetic", "640x480", "640x480@240/mjpg"),
      ("synthetic", "@59.94/yuyv", "1920x1080@60000/1001/yuyv"),
      ("synthetic:1280x720@240", "@240", "1280x720@240/mjpg"),
      ("synthetic:1280x720@240", "/grey", "1280x720@240/grey"),
      ("synthetic:1280x720", "@50", "1280x720@50/mjpg"),
      ("synthetic:@500/yuyv", "128x96", "128x96@500/yuyv"),
      ("synthetic:4096x2304@1", "4096x2304@1", "4096x2304@1/mjpg"),
    ])
  func mode(name: String, mode: String, expected: String) throws {
    let device = try CaptureDevice.named(name)
    #expect(device.id == name)
    #expect(try device.format(matching: ModeRequest(parsing: mode)).id == expected)
  }

  @Test(
    "The synthetic camera refuses modes that it cannot draw",
    arguments: [
      ("synthetic", "641x480"), ("synthetic", "126x96"), ("synthetic", "4098x2304"),
      ("synthetic", "@2001"), ("synthetic", "@1/2"), ("synthetic", "/h264"),
      ("synthetic:1280x720@240", "640x480"), ("synthetic:1280x720@240", "@120"),
      ("synthetic:1280x720/mjpg", "/yuyv"),
    ])
  func noMode(name: String, mode: String) throws {
    let device = try CaptureDevice.named(name)
    let error = try #require(throws: MediaError.self) {
      try device.format(matching: ModeRequest(parsing: mode))
    }
    #expect(error.code == .noMatchingFormat)
  }

  @Test func `An error reports a filter that excludes every camera mode`() throws {
    let device = try CaptureDevice.named("synthetic:640x480@60/mjpg")
    let error = try #require(throws: MediaError.self) {
      try device.format(matching: .any) { !$0.isCompressed }
    }
    #expect(
      error.message == "synthetic:640x480@60/mjpg has no mode that fits the other options")
  }

  @Test(
    "Parses the drop and seed options of the synthetic camera",
    arguments: [
      ("synthetic?drop=5%&seed=7", "1/20", 7), ("synthetic:640x480@240?seed=0", "0/1", 0),
      ("synthetic:?drop=0.5%", "1/200", 0), ("synthetic?drop=1/3", "1/3", 0),
      ("synthetic?drop=100%&seed=18446744073709551615", "1/1", .max),
    ] as [(String, String, UInt64)])
  func faults(name: String, share: String, seed: UInt64) throws {
    let camera = try camera(name)
    #expect(camera.dropShare.description == share)
    #expect(camera.seed == seed)
    #expect(camera.pace == .realTime)
  }

  @Test(
    "Parses the scene option of the synthetic camera",
    arguments: [
      ("synthetic", "613/500", "1/1"), ("synthetic?scene=ball", "613/500", "1/1"),
      ("synthetic?height=0.8", "4/5", "1/1"), ("synthetic?period=2/3&height=1.3", "13/10", "2/3"),
      ("synthetic:640x480@240?period=500ms", "613/500", "1/2"),
      ("synthetic:640x480@240?scene=pattern&drop=5%", nil, nil),
    ] as [(String, String?, String?)])
  func scene(name: String, height: String?, period: String?) throws {
    let scene = try camera(name).scene
    guard let height, let period else {
      #expect(scene == .pattern)
      return
    }
    #expect(
      try scene
        == .ball(
          #require(
            BouncingBall(height: Rational(parsing: height), period: Rational(parsing: period)))))
  }

  @Test func `Parses the pace option of the synthetic camera`() throws {
    let name = "synthetic:640x480@240?drop=5%&pace=max&seed=7"
    #expect(try camera(name).pace == .maximum)
    let error = try #require(throws: MediaError.self) {
      try CaptureDevice.named("synthetic?pace=slow")
    }
    #expect(error.message.contains("pace=slow") && error.recoverySuggestion == "write pace=max")
  }

  @Test(
    "Refuses a malformed synthetic camera name",
    arguments: [
      "synthetic:", "synthetic:big", "synthetic:641x480", "synthetic:640x480@5000",
      "synthetic:640x480/h264", "synthetic?", "synthetic?drop", "synthetic?drop=", "synthetic?=5%",
      "synthetic?drop=5", "synthetic?drop=-5%", "synthetic?drop=101%", "synthetic?drop=5%&drop=6%",
      "synthetic?seed=-1", "synthetic?seed=18446744073709551616", "synthetic?seed=+1",
      "synthetic?colour=red", "synthetic?drop=5%%", "synthetic?pace=2", "synthetic?pace",
      "synthetic?scene=", "synthetic?scene=Ball", "synthetic?height=0", "synthetic?height=1.31",
      "synthetic?height=-1", "synthetic?height=1m", "synthetic?height=1e-1",
      "synthetic?height=0.1234567", "synthetic?period=0", "synthetic?period=0.09",
      "synthetic?period=61", "synthetic?period=2min", "synthetic?period=1/0",
      "synthetic?period=0.3333333", "synthetic?scene=pattern&height=1",
      "synthetic?period=1&scene=pattern",
    ])
  func mistakes(name: String) throws {
    // An empty list of options is allowed.
    if ["synthetic:", "synthetic?"].contains(name) {
      #expect(try camera(name) == SyntheticCamera())
      return
    }
    let error = try #require(throws: MediaError.self) { try CaptureDevice.named(name) }
    #expect(error.code == .badName)
    #expect(error.message.hasPrefix("\"\(name)\" is not a device name: "))
  }
}

/// Movie files that are used as a camera.
struct FileCameraTests {
  @Test(
    "In a camera name a movie path ends at the last question mark",
    arguments: [
      ("file:clip.mp4", "clip.mp4", Pace.realTime),
      ("file:clip.mp4?pace=max", "clip.mp4", .maximum),
      ("file:/a b/what?.mp4?", "/a b/what?.mp4", .realTime),
      ("file:a:b.mov?pace=max", "a:b.mov", .maximum),
    ])
  func reading(name: String, path: String, pace: Pace) throws {
    #expect(try FileCamera(parsing: name) == FileCamera(path: path, pace: pace))
  }

  @Test(
    "Refuses a malformed name of a camera that plays a file",
    arguments: ["file:", "file:?pace=max", "file:a?pace=2", "file:a?fast=1", "file:a?pace"])
  func mistakes(name: String) throws {
    let error = try #require(throws: MediaError.self) { try CaptureDevice.named(name) }
    #expect(error.code == .badName)
  }

  @Test(
    "A camera that plays a movie file has the mode of that movie",
    .enabled(if: SystemFiles.kind(of: "/usr/bin/ffmpeg") != nil, "ffmpeg makes the movies"),
    arguments: [
      (["-c:v", "mjpeg"], "240", "160x120@240/mjpg"),
      (["-c:v", "libx264", "-bf", "0"], "60000/1001", "160x120@60000/1001/h264"),
      // This movie stores frames in another order than it shows them, so the frames are decoded.
      (["-c:v", "libx264", "-bf", "2"], "30", "160x120@30/yu12"),
      (["-c:v", "rawvideo", "-pix_fmt", "yuyv422"], "25/2", "160x120@25/2/yu12"),
    ])
  func movie(codec: [String], rate: String, id: String) throws {
    let path = "/tmp/movie-\(UUID().uuidString).mov"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let ffmpeg = try Process.run(
      URL(fileURLWithPath: "/usr/bin/ffmpeg"),
      arguments: ["-v", "error", "-f", "lavfi", "-i", "testsrc=s=160x120:r=\(rate)"] + codec
        + ["-frames:v", "12", path])
    ffmpeg.waitUntilExit()
    let device = try CaptureDevice.named("file:\(path)")
    #expect(try device.formats().map(\.id) == [id])
    #expect(device.kind == .file)
    #expect(device.path == path)
  }

  @Test func `Distinguishes a missing file from a file that is no movie`() throws {
    func code(_ name: String) throws -> MediaError.Code {
      try #require(throws: MediaError.self) { try CaptureDevice.named(name).formats() }.code
    }
    #expect(try code("file:/tmp/none-\(UUID().uuidString).mp4") == .fileNotFound)
    #expect(try code("file:/tmp") == .invalidData)
    #expect(try code("file:/etc/passwd") == .invalidData)
  }
}
