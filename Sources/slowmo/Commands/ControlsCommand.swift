// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo controls DEVICE`: lists and sets the controls of a camera.
struct ControlsCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "controls",
    abstract: "List and set a camera's controls.",
    discussion: """
      EXAMPLES
        slowmo controls synthetic
        slowmo controls synthetic --json
        slowmo controls <DEVICE> auto_exposure=1 exposure_time_absolute=4ms gain=64
        slowmo controls <DEVICE> auto_exposure='manual mode' gain=default

      NAME is the name of a control as v4l2-ctl spells it, or its number (0x009a0902). VALUE is a
      number in the unit that the list shows, a time such as 4ms, the name or number of a menu item,
      on or off, or default. The camera keeps its settings. The synthetic camera and files have no
      controls.

      MANUAL
      All assignments are checked before the first one is set. Automatic modes are set before the
      controls that depend on them. The values that the driver then reports are printed.

      A bare number is in the unit of the control: exposure_time_absolute=40 is 4 ms, which can also
      be written 4ms or 4000us. A time between two steps of the unit is refused, and the message
      names the nearest two. A boolean takes on, off, true, false, 1 or 0.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, part of its id, synthetic or file:PATH.",
    completion: Completions.device)
  var device: String
  @Argument(help: "A control to set, as NAME=VALUE.", completion: Completions.control)
  var assignments: [String] = []
  @OptionGroup var common: CommonOptions

  var endsAtOnce: Bool { false }

  func perform() throws -> ExitStatus {
    // Syntax errors are reported before the camera is opened.
    let wanted = try assignments.map(ControlAssignment.init(parsing:))
    let device = try CaptureDevice.named(self.device)
    let controls = try CameraControls(device: device)
    let changed = wanted.isEmpty ? [] : try controls.set(wanted)
    if common.json {
      try Output.document(
        ControlsDocument(
          device: device.address, set: changed.map(\.name),
          controls: controls.list().map(ControlsDocument.Control.init)))
    } else {
      for control in wanted.isEmpty ? try controls.list() : changed {
        for line in control.lines { Output.line(line) }
      }
    }
    return .done
  }
}

extension CameraControl {
  /// The control as text: one line, then one line for each menu item.
  fileprivate var lines: [String] {
    var parts = ["\(name) (\(kind.v4l2Name))"]
    if !kind.isChoice, let minimum, let maximum {
      parts.append("\(minimum)..\(maximum)" + (step ?? 1 > 1 ? " step \(step ?? 1)" : ""))
    }
    if let defaultValue { parts.append("default \(defaultValue)") }
    if let value { parts.append("value \(text(value))") }
    if let unit { parts.append("in \(unit)") }
    if !flags.isEmpty { parts.append("[\(flags.joined(separator: ", "))]") }
    return [parts.joined(separator: "  ")] + menu.map { "    \($0.index): \($0.name)" }
  }

  private func text(_ value: Value) -> String {
    switch value {
    case .number(let number):
      if let time { return "\(number) = \(time.secondsText) s" }
      if let item = menu.first(where: { $0.index == number }) { return "\(number) (\(item.name))" }
      return kind == .bitmask ? "0x\(String(number, radix: 16))" : "\(number)"
    case .text(let text): return "\"\(text)\""
    case .numbers(let numbers): return numbers.map(String.init).joined(separator: ",")
    case .rectangle(let left, let top, let width, let height):
      return "\(width)x\(height)+\(left)+\(top)"
    }
  }
}

extension CameraControl.Kind {
  /// Whether the control is a menu, a switch or a button, whose minimum and maximum are not shown.
  fileprivate var isChoice: Bool { [.menu, .integerMenu, .boolean, .button].contains(self) }
}

/// The JSON document of `controls`.
struct ControlsDocument: Encodable {
  struct Control: Encodable {
    struct Item: Encodable {
      let index: Int64
      let name: String
    }

    /// The value of a control: a number, text, an array or a rectangle.
    enum Value: Encodable {
      case number(Int64)
      case text(String)
      case numbers([Int64])
      case rectangle(Rectangle)

      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .numbers(let numbers): try container.encode(numbers)
        case .rectangle(let rectangle): try container.encode(rectangle)
        }
      }
    }

    struct Rectangle: Encodable {
      let left: Int64
      let top: Int64
      let width: Int64
      let height: Int64
    }

    let id: UInt32
    let name: String
    let title: String
    let type: String
    let minimum: Int64?
    let maximum: Int64?
    let step: Int64?
    let `default`: Int64?
    let value: Value?
    let valueNs: Int64?
    let unit: String?
    let flags: [String]
    let menu: [Item]
  }

  let schema = schemaName("controls")
  let device: String
  let set: [String]
  let controls: [Control]

  enum CodingKeys: CodingKey { case schema, device, set, controls }
}

extension ControlsDocument.Control {
  init(_ control: CameraControl) {
    id = control.id
    name = control.name
    title = control.title
    type = control.kind.v4l2Name
    minimum = control.minimum
    maximum = control.maximum
    step = control.step
    `default` = control.defaultValue
    valueNs = control.time?.wholeNanoseconds
    unit = control.unit
    flags = control.flags
    menu = control.menu.map { Item(index: $0.index, name: $0.name) }
    value = control.value.map { value in
      switch value {
      case .number(let number): .number(number)
      case .text(let text): .text(text)
      case .numbers(let numbers): .numbers(numbers)
      case .rectangle(let left, let top, let width, let height):
        .rectangle(Rectangle(left: left, top: top, width: width, height: height))
      }
    }
  }
}
