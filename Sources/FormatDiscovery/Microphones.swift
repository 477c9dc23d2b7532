// SPDX-License-Identifier: Apache-2.0
import ALSA
import V4L2

/// The microphones that were found, and what is to be said about them.
struct MicrophoneList {
  /// By the numbers of card and device.
  let devices: [CaptureDevice]
  /// Devices that could not be asked what they are, a line each.
  let warnings: [String]
}

extension MicrophoneList {
  /// Finds the capture devices of the sound cards; a machine without sound cards has none.
  ///
  /// The nodes are seen by everyone, so that a microphone that one has no permission for is told
  /// from one that is not there.
  init() {
    let calls = SoundSystem.calls
    let folder = calls.nodeFolder
    let identity = DeviceIdentity(linksIn: "\(folder)/by-id", placesIn: "\(folder)/by-path")
    var devices: [CaptureDevice] = []
    var warnings: [String] = []
    for node in calls.nodes().compactMap(SoundNode.init(named:)).sorted() {
      var description = SoundDescription()
      let result = calls.describe(node, &description)
      guard result < 0 else {
        devices.append(CaptureDevice(node, description, identity, folder))
        continue
      }
      let error = SoundError(.describe, node.hardwareName, code: -result)
      // What went since it was listed is not there; anything else is worth a word.
      if error.reason == .notFound { continue }
      warnings.append("\(error.description); \(error.hint)")
      guard error.reason == .noPermission || error.reason == .busy else { continue }
      var device = CaptureDevice(node, .fromKernel(node), identity, folder)
      device.problem = error.description
      devices.append(device)
    }
    self.devices = CaptureDevice.withUniqueIDs(devices)
    self.warnings = warnings
  }
}

extension CaptureDevice {
  /// The microphone to take unless another is asked for; nil where there is none.
  ///
  /// One on USB before those that are built in, as it was plugged in for a reason; then by the
  /// numbers of card and device. Those that cannot be opened come after those that can, and
  /// loopbacks, which hear only what another program plays, last.
  public static var defaultMicrophone: CaptureDevice? {
    func rank(_ device: CaptureDevice) -> (Int, Int) {
      let isLoopback = device.driver == "Loopback" || device.driver == "Dummy"
      let isPlugged = device.id.hasPrefix("usb-") || device.driver == "USB-Audio"
      return (isLoopback ? 2 : device.problem == nil ? 0 : 1, isPlugged ? 0 : 1)
    }
    let devices = MicrophoneList().devices
    // The first of equals, which `min` gives.
    return devices.min { rank($0) < rank($1) }
  }

  /// The library behind the microphones, and the version that the process runs with.
  public static var soundLibraryVersion: (name: String, version: String) {
    ("alsa-lib", SoundLibrary.version)
  }

  /// A capture device of a card that told what it is.
  fileprivate init(
    _ node: SoundNode, _ description: SoundDescription, _ identity: DeviceIdentity,
    _ folder: String
  ) {
    let card = "/sys/class/sound/card\(node.card)"
    let bus =
      SystemFiles.resolved("\(card)/device")?.split(separator: "/").last.map(String.init)
      ?? description.cardID
    let control = "\(folder)/\(node.controlName)"
    let name = identity.name(
      of: SystemFiles.resolved(control) ?? control, driver: description.cardID, bus: bus)
    self.init(
      id: "\(name)-pcm\(node.device)", node: node,
      name: [description.cardName, description.deviceName].filter { !$0.isEmpty }
        .joined(separator: ": "),
      driver: description.driver, bus: bus)
  }

  /// The microphone that a name such as `hw:0,1` means.
  static func microphone(_ node: SoundNode) throws(DiscoveryError) -> CaptureDevice {
    let devices = MicrophoneList().devices
    guard let device = devices.first(where: { $0.source == .alsa(node) }) else {
      throw DiscoveryError(
        .notFound, "There is no microphone \(node.hardwareName)",
        hint: "see which devices there are with: slowmo devices")
    }
    return device
  }
}

extension SoundDescription {
  /// What the kernel tells everyone about a card that may not be opened.
  fileprivate static func fromKernel(_ node: SoundNode) -> SoundDescription {
    let card = "/sys/class/sound/card\(node.card)"
    let id = SystemFiles.firstLine(of: "\(card)/id") ?? "card\(node.card)"
    let driver = SystemFiles.resolved("\(card)/device/driver")?.split(separator: "/").last
    return SoundDescription(
      cardID: id, cardName: id, driver: driver.map(String.init) ?? "unknown", deviceName: "")
  }
}

extension DiscoveryError {
  init(_ error: SoundError) {
    let code: Code =
      switch error.reason {
      case .noPermission: .noPermission
      case .notFound: .notFound
      case .busy: .busy
      case .unplugged: .unplugged
      case .notSupported, .outOfMemory, .tooManyFiles, .other: .deviceFailed
      }
    self.init(code, error.description, hint: error.hint)
  }
}
