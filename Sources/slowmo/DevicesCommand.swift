// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Overcrank

/// `slowmo devices`: what cameras there are.
struct DevicesCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "devices",
    abstract: "List the cameras.",
    discussion: """
      EXAMPLES
        slowmo devices
        slowmo devices --json

      A device is then named by its path (/dev/video0), its place in this list (cam0) or a part
      of its id. Besides, synthetic:1280x720@240 is a camera of the program's own, and
      file:clip.mp4 plays a file as one.
      """)

  @OptionGroup var common: CommonOptions

  struct Document: Encodable {
    struct Device: Encodable {
      let id: String
      @Nullable var path: String?
      let name: String
      @Nullable var driver: String?
      @Nullable var bus: String?
      let kind: String
      let media: [String]
    }
    let schema = schemaName("devices")
    let devices: [Device]

    enum CodingKeys: CodingKey { case schema, devices }
  }

  func perform() throws -> ExitStatus {
    let list = CaptureDevice.list()
    for warning in list.warnings { Output.note("slowmo: warning: \(warning)") }
    let devices = list.devices
    guard common.json else {
      for (index, device) in devices.enumerated() {
        Output.line("cam\(index)  \(device.path ?? device.id)  \(device.name)  (\(device.id))")
      }
      return .done
    }
    try Output.document(
      Document(
        devices: devices.map {
          Document.Device(
            id: $0.id, path: $0.path, name: $0.name, driver: $0.driver, bus: $0.bus,
            kind: $0.kind.rawValue, media: $0.media.map(\.rawValue))
        }))
    return .done
  }
}
