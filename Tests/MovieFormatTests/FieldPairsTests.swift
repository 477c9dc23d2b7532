// SPDX-License-Identifier: Apache-2.0

import OvercrankMovieFormat
import Testing

/// Packets of fields and frames, written as letters, and the packets that result from joining.
struct FieldPairsTests {
  /// Joins the fields of packets.
  ///
  /// `F` is a whole frame, `1` a field that may be the first of a frame, `2` a field that completes
  /// a frame, and `a` audio.
  private func paired(_ packets: String, resettingAt reset: Int? = nil) -> [String] {
    var fields = FieldPairs<String>()
    var found: [String] = []
    for (index, letter) in packets.enumerated() {
      if index == reset { fields.reset() }
      let content: FieldPairs<String>.Content =
        switch letter {
        case "1": .firstField
        case "2": .secondField
        case "a": .otherTrack
        default: .frame
        }
      fields.append("\(letter)", content) { $0 + $1 }
      while let packet = fields.next() { found.append(packet) }
    }
    fields.finish()
    while let packet = fields.next() { found.append(packet) }
    return found
  }

  @Test(arguments: [
    ("FFF", ["F", "F", "F"]),
    ("1212", ["12", "12"]),
    ("a1a2a", ["a", "12", "a", "a"]),
    // A first field without a second one stays a packet, and a second field without a first one
    // does too.
    ("1F12", ["1", "F", "12"]),
    ("1112", ["1", "1", "12"]),
    ("212", ["2", "12"]),
    ("2F", ["2", "F"]),
    ("1aa", ["1", "a", "a"]),
    ("12a1", ["12", "a", "1"]),
  ])
  func `Joins two fields into a video frame and keeps single fields`(
    packets: String, expected: [String]
  ) {
    #expect(paired(packets) == expected)
  }

  @Test func `Resetting the field joiner discards an unpaired field`() {
    #expect(paired("1a2F", resettingAt: 2) == ["2", "F"])
  }

  @Test func `An error thrown while joining two fields reaches the caller`() {
    struct Refusal: Error {}
    var fields = FieldPairs<Int>()
    fields.append(1, .firstField) { _, _ in 0 }
    #expect(throws: Refusal.self) {
      try fields.append(2, .secondField) { (_, _) throws(Refusal) in throw Refusal() }
    }
  }
}
