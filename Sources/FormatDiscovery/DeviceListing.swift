// SPDX-License-Identifier: Apache-2.0
import V4L2

/// The devices that were found, and what is to be said about them.
public struct DeviceList: Sendable {
  /// The cameras by the number of their node, then the synthetic camera.
  public let devices: [CaptureDevice]
  /// Nodes that could not be asked what they are, a line each.
  public let warnings: [String]
}

extension CaptureDevice {
  /// Finds the cameras of this machine, and the synthetic camera.
  ///
  /// ``list()`` also tells what could not be asked.
  public static func discover() -> [CaptureDevice] { list().devices }

  /// Finds the cameras of this machine, and the synthetic camera, and tells what could not be
  /// asked.
  ///
  /// Cameras are the nodes `/dev/video…` that give pictures by their own capabilities; a webcam
  /// has another node, for metadata, that does not. A camera that one has no permission for is
  /// there all the same: a node that may not be opened, and so cannot be asked what it gives, is
  /// listed with a warning and with what the kernel tells about it to everyone, if it is the
  /// first node of its device.
  public static func list() -> DeviceList { list(in: "/dev", identity: DeviceIdentity()) }

  static func list(in folder: String, identity: DeviceIdentity) -> DeviceList {
    let numbers = SystemFiles.entries(in: folder).compactMap { name in
      name.hasPrefix("video") ? UInt32(name.dropFirst("video".count)) : nil
    }
    var devices: [CaptureDevice] = []
    var warnings: [String] = []
    for number in numbers.sorted() {
      let path = "\(folder)/video\(number)"
      do throws(DeviceError) {
        let capabilities = try VideoDevice(opening: path).capabilities
        if capabilities.isVideoCapture {
          devices.append(CaptureDevice(node: path, capabilities, identity))
        }
      } catch {
        switch error.reason {
        case .notFound, .notAVideoDevice: continue  // Gone since, or never one.
        case .noPermission, .busy:
          guard isFirstNode(number) else { continue }
          devices.append(CaptureDevice(unopenedNode: path, identity))
        case .unplugged, .noBandwidth, .notSupported, .outOfRange, .readOnly, .other: break
        }
        warnings.append("\(error.description); \(error.hint)")
      }
    }
    devices.append(CaptureDevice(SyntheticCamera(), id: "synthetic"))
    return DeviceList(devices: withUniqueIDs(devices), warnings: warnings)
  }

  /// Whether a node is the first of its device, which is the one that gives pictures.
  private static func isFirstNode(_ number: UInt32) -> Bool {
    SystemFiles.firstLine(of: "/sys/class/video4linux/video\(number)/index") ?? "0" == "0"
  }

  /// A node that was opened and told what it is.
  init(
    node path: String, _ capabilities: VideoDevice.Capabilities, _ identity: DeviceIdentity
  ) {
    self.init(
      id: identity.name(
        of: SystemFiles.resolved(path) ?? path, driver: capabilities.driver,
        bus: capabilities.bus),
      node: path, name: capabilities.card, driver: capabilities.driver, bus: capabilities.bus)
  }

  /// A node that would not open, as the kernel describes it to everyone.
  private init(unopenedNode path: String, _ identity: DeviceIdentity) {
    let node = path.split(separator: "/").last.map(String.init) ?? path
    let entry = "/sys/class/video4linux/\(node)"
    func lastPart(_ link: String) -> String? {
      SystemFiles.resolved("\(entry)/\(link)")?.split(separator: "/").last.map(String.init)
    }
    let driver = lastPart("device/driver") ?? "unknown"
    let bus = lastPart("device") ?? "unknown"
    self.init(
      id: identity.name(of: path, driver: driver, bus: bus), node: path,
      name: SystemFiles.firstLine(of: "\(entry)/name") ?? node, driver: driver, bus: bus)
  }

  /// The devices with different ids: nodes of one device on one bus are told apart by a number.
  static func withUniqueIDs(_ devices: [CaptureDevice]) -> [CaptureDevice] {
    var seen: [String: Int] = [:]
    return devices.map { device in
      let count = seen[device.id, default: 0]
      seen[device.id] = count + 1
      guard count > 0, let path = device.path else { return device }
      return CaptureDevice(
        id: "\(device.id)-\(count + 1)", node: path, name: device.name, driver: device.driver,
        bus: device.bus)
    }
  }
}
