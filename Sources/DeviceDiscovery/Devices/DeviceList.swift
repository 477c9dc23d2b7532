// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankV4L2

/// The devices that were found, and what is to be said about them.
public struct DeviceList: RandomAccessCollection, Sendable {
  /// The cameras by the number of their node, then the synthetic camera, then the microphones by
  /// the numbers of card and device.
  public let devices: [CaptureDevice]
  /// Nodes that could not be asked what they are, a line each.
  public let warnings: [String]

  /// The index of the first device.
  public var startIndex: Int { devices.startIndex }
  /// The index behind the last device.
  public var endIndex: Int { devices.endIndex }

  /// The device at an index.
  public subscript(index: Int) -> CaptureDevice { devices[index] }
}

extension CaptureDevice {
  /// Finds the cameras of this machine, the synthetic camera, and the microphones, and tells what
  /// could not be asked.
  ///
  /// Cameras are the nodes `/dev/video…` that give pictures of their own by their own
  /// capabilities; a webcam has another node, for metadata, that does not, and neither do outputs,
  /// touch pads and codecs. A camera that one has no permission for is there all the same: a node
  /// that may not be opened, and so cannot be asked what it gives, is listed with a warning, with
  /// its ``problem``, and with what the kernel tells about it to everyone, if it is the first node
  /// of its device. Microphones are the capture devices of the sound cards.
  public static func discover() -> DeviceList {
    let calls = DeviceSystem.calls
    let identity = DeviceIdentity(nodeFolder: calls.nodeFolder)
    var nodes: [NodeProbe] = []
    for path in inOrder(calls.nodes()) { nodes.append(NodeProbe(path, identity)) }
    let microphones = MicrophoneList()
    return DeviceList(
      devices: withUniqueIDs(nodes.compactMap(\.device)) + [synthetic] + microphones.devices,
      warnings: nodes.compactMap(\.warning) + microphones.warnings)
  }

  /// The camera that is always there.
  static var synthetic: CaptureDevice { CaptureDevice(SyntheticCamera(), id: "synthetic") }

  /// Nodes by the numbers that their names end in.
  static func inOrder(_ nodes: some Sequence<String>) -> [String] {
    func key(_ path: String) -> (UInt64, String) {
      let digits = path.reversed().prefix { $0.isASCII && $0.isNumber }.reversed()
      return (UInt64(String(digits)) ?? .max, path)
    }
    return nodes.sorted { key($0) < key($1) }
  }

  /// A node that was opened and told what it is.
  init(_ device: borrowing VideoDevice, _ identity: DeviceIdentity) {
    let capabilities = device.capabilities
    self.init(
      id: identity.name(
        of: SystemFiles.resolved(device.path) ?? device.path, driver: capabilities.driver,
        bus: capabilities.bus),
      node: device.path, name: capabilities.card, driver: capabilities.driver,
      bus: capabilities.bus)
    let reported = Position(askedOf: device)
    if reported != .unspecified { position = reported }
  }

  /// A node that would not open, as the kernel describes it to everyone.
  fileprivate init(unopenedNode path: String, _ identity: DeviceIdentity, problem: String) {
    let node = path.lastPathComponent
    let entry = "/sys/class/video4linux/\(node)"
    func lastPart(_ link: String) -> String? {
      SystemFiles.resolved("\(entry)/\(link)")?.lastPathComponent
    }
    let driver = lastPart("device/driver") ?? "unknown"
    let bus = lastPart("device") ?? "unknown"
    self.init(
      id: identity.name(of: path, driver: driver, bus: bus), node: path,
      name: SystemFiles.firstLine(of: "\(entry)/name") ?? node, driver: driver, bus: bus)
    self.problem = problem
  }

  /// The same device by another id.
  func renamed(_ id: String) -> CaptureDevice {
    guard kind == .v4l2 || kind == .alsa else { return self }
    var device = self
    device.id = id
    return device
  }

  /// The devices with different ids: nodes of one device on one bus are told apart by a number.
  static func withUniqueIDs(_ devices: [CaptureDevice]) -> [CaptureDevice] {
    var seen: [String: Int] = [:]
    return devices.map { device in
      let count = seen[device.id, default: 0]
      seen[device.id] = count + 1
      return count > 0 ? device.renamed("\(device.id)-\(count + 1)") : device
    }
  }
}

/// What a node is found to be.
struct NodeProbe {
  /// The camera that the node is; nil for anything else, and for what is gone.
  let device: CaptureDevice?
  /// Why the node could not be asked.
  let warning: String?
  /// Whether it is for want of permission that it could not be asked.
  let isForbidden: Bool

  /// Opens a node, asks it what it is, and closes it.
  init(_ path: String, _ identity: DeviceIdentity) {
    do throws(DeviceError) {
      let node = try VideoDevice(opening: path)
      device = node.capabilities.isVideoCapture ? CaptureDevice(node, identity) : nil
      warning = nil
      isForbidden = false
    } catch {
      isForbidden = error.reason == .noPermission
      switch error.reason {
      case .noPermission, .busy:
        guard Self.isFirstNode(path) else {
          (device, warning) = (nil, nil)
          return
        }
        var unopened = CaptureDevice(unopenedNode: path, identity, problem: error.description)
        unopened.isForbidden = isForbidden
        device = unopened
        warning = "\(error.description); \(error.recovery)"
      case .notFound, .notAVideoDevice:  // The node was removed, or is no video device.
        (device, warning) = (nil, nil)
      default:
        (device, warning) = (nil, "\(error.description); \(error.recovery)")
      }
    }
  }

  /// Whether a node is the first of its device, which is the one that gives pictures.
  private static func isFirstNode(_ path: String) -> Bool {
    let name = path.lastPathComponent
    return SystemFiles.firstLine(of: "/sys/class/video4linux/\(name)/index") ?? "0" == "0"
  }
}
