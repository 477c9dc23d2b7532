// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankV4L2

/// The devices of the machine, with warnings about nodes that could not be queried.
public struct DeviceList: RandomAccessCollection, Sendable {
  /// The cameras in order of node number, then the synthetic camera, then the microphones in order
  /// of card and device number.
  public let devices: [CaptureDevice]
  /// One line for each node that could not be queried.
  public let warnings: [String]

  /// The index of the first device.
  public var startIndex: Int { devices.startIndex }
  /// The index after the last device.
  public var endIndex: Int { devices.endIndex }

  /// The device at an index.
  public subscript(index: Int) -> CaptureDevice { devices[index] }
}

extension CaptureDevice {
  /// Finds the cameras of the machine, the synthetic camera and the microphones.
  ///
  /// A camera is a node `/dev/video…` with video capture capability. Metadata nodes, outputs, touch
  /// devices and codecs are left out. If this user may not open a node, it cannot be queried. It is
  /// still listed if it is the first node of its device. It then has a name from sysfs, a warning,
  /// and a ``CaptureDevice/problem``. Microphones are the capture devices of sound cards.
  ///
  /// The call opens device nodes and may block. It may come from any thread.
  public static func discover() -> DeviceList {
    let calls = DeviceSystem.calls
    let identity = DeviceIdentity(nodeDirectory: calls.nodeDirectory)
    var nodes: [NodeProbe] = []
    for path in inOrder(calls.nodes()) { nodes.append(NodeProbe(path, identity)) }
    let microphones = MicrophoneList()
    return DeviceList(
      devices: withUniqueIDs(nodes.compactMap(\.device)) + [synthetic] + microphones.devices,
      warnings: nodes.compactMap(\.warning) + microphones.warnings)
  }

  /// The synthetic camera, which is always present.
  static var synthetic: CaptureDevice { CaptureDevice(SyntheticCamera(), id: "synthetic") }

  /// Sorts nodes by the number at the end of their names.
  static func inOrder(_ nodes: some Sequence<String>) -> [String] {
    func key(_ path: String) -> (UInt64, String) {
      let digits = path.reversed().prefix { $0.isASCII && $0.isNumber }.reversed()
      return (UInt64(String(digits)) ?? .max, path)
    }
    return nodes.sorted { key($0) < key($1) }
  }

  /// Creates a camera from an open node.
  init(_ device: borrowing VideoDevice, _ identity: DeviceIdentity) {
    let capabilities = device.capabilities
    self.init(
      id: identity.name(
        of: SystemFiles.resolved(device.path) ?? device.path, driver: capabilities.driver,
        bus: capabilities.bus),
      node: device.path, name: capabilities.card, driver: capabilities.driver,
      bus: capabilities.bus)
    let reported = Position(reportedBy: device)
    if reported != .unspecified { position = reported }
    videoRotationAngleForHorizonLevelCapture = Self.rotationAngle(reportedBy: device)
  }

  /// Creates a camera from the sysfs entry of a node that could not be opened.
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

  /// Returns the same device with another id.
  func renamed(_ id: String) -> CaptureDevice {
    guard kind == .v4l2 || kind == .alsa else { return self }
    var device = self
    device.id = id
    return device
  }

  /// Makes ids unique.
  ///
  /// The second device with an id gets the suffix `-2`, the third `-3`.
  static func withUniqueIDs(_ devices: [CaptureDevice]) -> [CaptureDevice] {
    var seen: [String: Int] = [:]
    return devices.map { device in
      let count = seen[device.id, default: 0]
      seen[device.id] = count + 1
      return count > 0 ? device.renamed("\(device.id)-\(count + 1)") : device
    }
  }
}

/// The result of probing a device node.
struct NodeProbe {
  /// The camera of the node, or nil if the node is gone or belongs to a device that is not a
  /// camera.
  let device: CaptureDevice?
  /// The reason why the node could not be queried, or nil.
  let warning: String?
  /// Whether the node could not be queried because this user lacks permission.
  let isForbidden: Bool

  /// Opens a node, queries its capabilities, and closes it.
  init(_ path: String, _ identity: DeviceIdentity) {
    do throws(CallFailure) {
      let node = try VideoDevice(opening: path)
      device = node.capabilities.isVideoCapture ? CaptureDevice(node, identity) : nil
      warning = nil
      isForbidden = false
    } catch {
      isForbidden = error.kind == .noPermission
      switch error.kind {
      case .noPermission, .busy:
        guard Self.isFirstNode(path) else {
          (device, warning) = (nil, nil)
          return
        }
        var unopened = CaptureDevice(unopenedNode: path, identity, problem: error.description)
        unopened.isForbidden = isForbidden
        device = unopened
        warning = error.advice
      case .notFound, .notVideoDevice:  // The node is gone or is not a video device.
        (device, warning) = (nil, nil)
      default:
        (device, warning) = (nil, error.advice)
      }
    }
  }

  /// Whether a node is the first node of its device.
  ///
  /// The first node of a camera captures video.
  private static func isFirstNode(_ path: String) -> Bool {
    let name = path.lastPathComponent
    return SystemFiles.firstLine(of: "/sys/class/video4linux/\(name)/index") ?? "0" == "0"
  }
}
