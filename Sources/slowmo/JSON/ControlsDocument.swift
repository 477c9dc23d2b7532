// SPDX-License-Identifier: Apache-2.0

import Overcrank

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
