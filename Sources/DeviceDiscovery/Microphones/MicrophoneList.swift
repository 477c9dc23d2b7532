// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankV4L2

/// The microphones of the machine, with warnings about devices that could not be queried.
struct MicrophoneList {
  /// The microphones in order of card and device number.
  let devices: [CaptureDevice]
  /// One line for each device that could not be queried.
  let warnings: [String]
}

extension MicrophoneList {
  /// Finds the capture devices of all sound cards.
  ///
  /// Every user can list the device nodes, so a microphone that is busy or that this user may not
  /// open is listed too. Its ``CaptureDevice/problem`` states the reason.
  init() {
    let calls = ALSASystem.calls
    let directory = calls.nodeDirectory
    let identity = DeviceIdentity(linksIn: "\(directory)/by-id", pathsIn: "\(directory)/by-path")
    var devices: [CaptureDevice] = []
    var warnings: [String] = []
    for node in calls.nodes().compactMap(AudioNode.init(named:)).sorted() {
      var description = AudioDescription()
      let result = calls.describe(node, &description)
      guard result < 0 else {
        devices.append(CaptureDevice(node, description, identity, directory))
        continue
      }
      let error = CallFailure(.describe, node.hardwareName, code: -result)
      // A device that was removed after it was listed is ignored. With another error, it is listed by what
      // the kernel says about it, so that a camera whose microphone fails has one.
      if error.kind == .notFound { continue }
      warnings.append(error.advice)
      var device = CaptureDevice(node, .fromKernel(node), identity, directory)
      device.problem = error.description
      device.isForbidden = error.kind == .noPermission
      devices.append(device)
    }
    self.devices = CaptureDevice.withUniqueIDs(devices)
    self.warnings = warnings
  }
}

extension CaptureDevice {
  /// The microphone of this camera: that of the same USB device, such as the one of a webcam.
  ///
  /// Nil for a camera without a microphone, and for a device that is not a USB camera. The call opens
  /// sound cards briefly, and may block. If the microphone may not be opened, its ``problem`` states
  /// why.
  public var microphone: CaptureDevice? {
    usbDirectory == nil ? nil : microphone(among: MicrophoneList().devices)
  }

  /// The microphone of this camera in a list of devices, such as that of ``discover()``.
  public func microphone(among devices: some Sequence<CaptureDevice>) -> CaptureDevice? {
    guard let usbDirectory, kind == .v4l2 else { return nil }
    return devices.first { $0.kind == .alsa && $0.usbDirectory == usbDirectory }
  }
}

extension CaptureDevice {
  /// The version of alsa-lib that this process has loaded.
  public static var audioLibraryVersion: LibraryVersion {
    LibraryVersion("alsa-lib", AudioLibrary.version)
  }

  /// Creates a microphone from the description of its sound card.
  fileprivate init(
    _ node: AudioNode, _ description: AudioDescription, _ identity: DeviceIdentity,
    _ directory: String
  ) {
    let card = "/sys/class/sound/card\(node.card)"
    let bus =
      SystemFiles.resolved("\(card)/device")?.lastPathComponent
      ?? description.cardID
    let control = "\(directory)/\(node.controlName)"
    let real = SystemFiles.resolved(control) ?? control
    let ids = identity.ids(
      ofCard: real, at: "\(card)/device", driver: description.cardID, bus: bus, device: node.device)
    self.init(
      id: ids.current, formerIDs: ids.former, node: node,
      name: [description.cardName, description.deviceName].filter { !$0.isEmpty }
        .joined(separator: ": "),
      driver: description.driver, bus: bus)
  }

  /// Finds the microphone with a name such as `hw:0,1`.
  static func microphone(_ node: AudioNode) throws(MediaError) -> CaptureDevice {
    let devices = MicrophoneList().devices
    guard let device = devices.first(where: { $0.source == .alsa(node) }) else {
      throw MediaError(
        .deviceNotFound, "no microphone is named \(node.hardwareName)",
        recovery: Recovery("choose a device that is listed", .listDevices))
    }
    return device
  }
}

extension AudioDescription {
  /// The description of a sound card from procfs and sysfs, which every user can read.
  fileprivate static func fromKernel(_ node: AudioNode) -> AudioDescription {
    let directory = "/proc/asound/card\(node.card)"
    let id =
      SystemFiles.firstLine(of: "/sys/class/sound/card\(node.card)/id") ?? "card\(node.card)"
    let card = SystemFiles.lines(of: "/proc/asound/cards").lazy
      .compactMap(AudioCardLine.init).first { $0.card == node.card }
    let device = SystemFiles.lines(of: "\(directory)/pcm\(node.device)c/info").lazy
      .first { $0.hasPrefix("name: ") }
    return AudioDescription(
      cardID: id, cardName: card?.name ?? id, driver: card?.driver ?? "unknown",
      deviceName: device.map { String($0.dropFirst("name: ".count)) } ?? "")
  }
}

/// A line of `/proc/asound/cards`, such as ` 0 [Loopback       ]: Loopback - Loopback`.
struct AudioCardLine: Hashable {
  let card: UInt32
  let driver: String
  let name: String

  /// Parses a line.
  ///
  /// Returns nil for the second line of each card, which contains only the card's location.
  init?(_ line: String) {
    guard let (start, rest) = Self.halves(line, at: " ["), let number = UInt32(start.trimmed),
      let (_, label) = Self.halves(rest, at: "]: "),
      let (driver, name) = Self.halves(label, at: " - ")
    else { return nil }
    (card, self.driver, self.name) = (number, driver.trimmed, name.trimmed)
  }

  private static func halves(_ line: String, at mark: String) -> (String, String)? {
    guard let range = line.firstRange(of: mark) else { return nil }
    return (String(line[..<range.lowerBound]), String(line[range.upperBound...]))
  }
}

extension String {
  /// The string without spaces at its start and its end.
  var trimmed: String {
    String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }
}
