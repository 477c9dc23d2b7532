// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Dispatch
import Overcrank

/// `slowmo devices`: lists the cameras and microphones.
struct DevicesCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "devices",
    abstract: "List the cameras and the microphones.",
    discussion: """
      EXAMPLES
        slowmo devices
        slowmo devices --json
        timeout --preserve-status -s INT 3 slowmo devices --watch --json

      Other verbs take a device by its path (/dev/video0), its index in this list (cam0) or a part
      of its id. synthetic:1280x720@240 is a synthetic camera, and file:clip.mp4 plays a file as a
      camera. With --json, microphone is the id of a USB camera's own microphone.

      --watch lists the present devices, then prints one line for each device that is added or
      removed, until Ctrl-C. With --json, each line is a document.

      MANUAL
      The synthetic camera shows a bouncing ball, a stopwatch and the number of the frame. A click
      sounds when the ball hits the ground. Options follow a question mark and are joined by &, as
      in 'synthetic:640x480@240?drop=5%&seed=7':

        height=0.8      the height of the bounce, 0.01 to 1.3 meters (default: 1.226)
        period=0.5      the time between hits, 0.1 to 60 seconds (default: 1)
        scene=pattern   show moving stripes instead of the ball
        drop=5%         drop this share of the frames; seed=7 selects which
        pace=max        deliver frames as fast as they are taken
        counter=FILE    count the delivered frames in a file of 8 bytes
      """)

  @Flag(help: "Keep running and report devices as they are added and removed.")
  var watch = false

  @OptionGroup var common: CommonOptions

  struct Document: Encodable {
    struct Device: Encodable {
      let id: String
      let path: String?
      let name: String
      let driver: String?
      let bus: String?
      let kind: String
      let media: [String]
      let deviceType: String
      let position: String
      let problem: String?
      /// The id of the camera's own microphone.
      let microphone: String?

      init(_ device: CaptureDevice, microphone: CaptureDevice?) {
        id = device.id
        path = device.path
        name = device.name
        driver = device.driver
        bus = device.bus
        kind = device.kind.rawValue
        media = device.media.map(\.rawValue)
        deviceType = device.deviceType.rawValue
        position = device.position.rawValue
        problem = device.problem
        self.microphone = microphone?.id
      }
    }
    let schema = schemaName("devices")
    let devices: [Device]

    enum CodingKeys: CodingKey { case schema, devices }
  }

  /// One line of `--watch --json`.
  struct Event: Encodable {
    let schema = schemaName("devices.event")
    let event: String
    let id: String
    let path: String?
    let device: Document.Device?

    enum CodingKeys: CodingKey { case schema, event, id, path, device }

    init(_ change: CaptureDeviceChange) {
      switch change {
      case .added(let added):
        event = "added"
        id = added.id
        path = added.path
        device = Document.Device(added, microphone: added.microphone)
      case .removed(let removed, let offset):
        event = "removed"
        id = removed
        path = offset
        device = nil
      }
    }
  }

  var endsAtOnce: Bool { false }

  func perform() throws -> ExitStatus {
    if watch { return try reportChanges() }
    let list = CaptureDevice.discover()
    for warning in list.warnings { Output.warning("\(warning)") }
    guard common.json else {
      for (index, device) in list.devices.enumerated() {
        Output.line("cam\(index)  \(Self.line(device))")
      }
      return .done
    }
    try Output.document(
      Document(
        devices: list.devices.map {
          Document.Device($0, microphone: $0.microphone(among: list.devices))
        }))
    return .done
  }

  /// Reports changes until Ctrl-C, or until the reader of standard output is gone.
  private func reportChanges() throws -> ExitStatus {
    let changes = try CaptureDevice.changes()
    let json = common.json
    let done = DispatchSemaphore(value: 0)
    let task = Task {
      for await change in changes {
        guard Self.emit(change, json: json) else { break }
      }
      done.signal()
    }
    Interrupt.onFirst { task.cancel() }
    done.wait()
    return .done
  }

  /// Writes one line without buffering; returns false if the reader of standard output is gone.
  private static func emit(_ change: CaptureDeviceChange, json: Bool) -> Bool {
    guard !json else {
      guard let data = try? Output.encode(Event(change), isPretty: false) else { return false }
      return Output.verbatim(String(decoding: data, as: UTF8.self))
    }
    switch change {
    case .added(let device):
      if let problem = device.problem { Output.warning("\(problem)") }
      return Output.line("added  \(line(device))")
    case .removed(let id, let path): return Output.line("removed  \(path ?? id)  (\(id))")
    }
  }

  private static func line(_ device: CaptureDevice) -> String {
    "\(device.address)  \(device.name)  (\(device.id))"
  }
}
