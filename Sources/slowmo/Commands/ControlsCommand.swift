// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo controls DEVICE`: what can be set on a camera, and setting it.
struct ControlsCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "controls",
    abstract: "List a camera's settings, and set them.",
    discussion: """
      EXAMPLES
        slowmo controls synthetic
        slowmo controls synthetic --json
        slowmo controls <DEVICE> auto_exposure=1 exposure_time_absolute=4ms gain=64
        slowmo controls <DEVICE> auto_exposure='manual mode' power_line_frequency=default

      A NAME is spelled as v4l2-ctl does, or is a number (0x009a0902). A bare VALUE is in the
      unit that the list states: exposure_time_absolute=40 is 4 ms, which may also be written
      4ms or 4000us; a time that is no whole number of the unit is refused with the nearest
      that are. A menu takes an item's number or name; a switch takes on, off, true, false, 1
      or 0; default sets a number back.

      All are checked before the first is set, in the order in which automatics come before what
      they govern; then what the driver holds is printed. What is set stays with the camera.
      The synthetic camera and files have no settings.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, a part of its id, synthetic or file:PATH.",
    completion: .file())
  var device: String
  @Argument(help: "What to set, as NAME=VALUE.")
  var assignments: [String] = []
  @OptionGroup var common: CommonOptions

  func perform() throws -> ExitStatus {
    // What is written wrongly is told before a camera is opened.
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
  /// The control for people: a line, and one for each item of its menu.
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
  /// Whether a range of numbers would say nothing.
  fileprivate var isChoice: Bool { [.menu, .integerMenu, .boolean, .button].contains(self) }
}
