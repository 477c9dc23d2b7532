// SPDX-License-Identifier: Apache-2.0

/// Parses the input from a terminal: keys, and answers to requests.
struct TerminalInput {
  enum Event: Hashable {
    /// A key, with the same name as a key of a window.
    case key(String)
    /// The terminal's answer to the request for the cursor position.
    case cursorPosition
  }

  /// The bytes of an escape sequence that is not complete yet.
  private var pending: [UInt8] = []

  /// The greatest length of an escape sequence in bytes; longer sequences are ignored.
  private static let longest = 32
  private static let keys: [UInt8: String] = [
    UInt8(ascii: "A"): "up", UInt8(ascii: "B"): "down", UInt8(ascii: "C"): "right",
    UInt8(ascii: "D"): "left", UInt8(ascii: "H"): "home", UInt8(ascii: "F"): "end",
  ]

  /// Returns the events for bytes that have arrived.
  ///
  /// The Escape key is only recognized when another escape byte follows it, such as that of the
  /// next answer.
  mutating func events(_ bytes: [UInt8]) -> [Event] {
    var events: [Event] = []
    for byte in bytes {
      guard !pending.isEmpty else {
        if byte == 0x1B { pending = [byte] } else if let key = Self.key(byte) { events.append(key) }
        continue
      }
      pending.append(byte)
      if pending.count == 2 {
        if byte == 0x1B {
          events.append(.key("escape"))
          pending = [byte]
        } else if byte != UInt8(ascii: "["), byte != UInt8(ascii: "O") {
          // Escape and another byte stand for a key pressed with Alt, which has no function here.
          pending = []
        }
      } else if (0x40...0x7E).contains(byte) {
        if byte == UInt8(ascii: "R"), pending[1] == UInt8(ascii: "[") {
          events.append(.cursorPosition)
        }
        if let name = Self.keys[byte] { events.append(.key(name)) }
        pending = []
      } else if pending.count > Self.longest {
        pending = []
      }
    }
    return events
  }

  private static func key(_ byte: UInt8) -> Event? {
    switch byte {
    case 0x20: .key("space")
    case 0x7F, 0x08: .key("backspace")
    case 0x21..<0x7F: .key(String(UnicodeScalar(byte)))
    default: nil
    }
  }
}
