// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Projects and markers that were made to crash a program, or to keep it busy for a long time.
struct HostileProjectTests {
  private func parse(_ spine: String, resources: String = "") throws(MediaError) {
    _ = try EditingProject(
      parsing: """
        <?xml version="1.0"?><fcpxml version="1.9"><resources>\(resources)</resources><library>
        <event><project name="x"><sequence duration="1s"><spine>\(spine)</spine></sequence>
        </project></event></library></fcpxml>
        """
    ) { (path) throws(MediaError) in
      try MediaSource(path: path, duration: MediaTime(seconds: 1))
    } timeCodeRate: { (_) throws(MediaError) in
      nil
    }
  }

  @Test(arguments: ["-9223372036854775808", "9223372036854775807", "10000", "-10000", "x"])
  func `A Final Cut gap with an extreme lane number is ignored`(lane: String) throws {
    try parse(
      """
      <gap offset="0s" duration="1s"><gap lane="\(lane)" duration="1s"/></gap>
      """)
  }

  @Test func `Nested compound clips of exponential size are refused`() {
    // Each compound clip holds the next one eight times: 8^12 clips in 4 KiB.
    let media = (0..<12).map { level in
      let inner = String(
        repeating: "<ref-clip ref=\"m\(level + 1)\" duration=\"1s\"/>", count: 8)
      return "<media id=\"m\(level)\"><sequence><spine>\(inner)</spine></sequence></media>"
    }
    let last =
      "<media id=\"m12\"><sequence><spine><gap duration=\"1s\"/></spine></sequence></media>"
    #expect {
      try parse("<ref-clip ref=\"m0\" duration=\"1s\"/>", resources: media.joined() + last)
    } throws: { ($0 as? MediaError)?.code == .invalidProject }
  }

  @Test func `Many speed changes at once equal the same changes one by one`() throws {
    let source = try MediaSource(path: "a.mov", duration: MediaTime(seconds: 1_000))
    func changes(_ count: Int64) throws -> [Composition.SpeedChange] {
      var changes: [Composition.SpeedChange] = []
      for number in (0..<count).reversed() {
        let start = MediaTime(number * 2, over: 100)
        let range = try TimeRange(start: start, end: MediaTime(number * 2 + 1, over: 100))
        let speed = try Speed.of(1, Int128(2 + number % 7))
        changes.append(.init(speed, in: range, isReversed: number % 3 == 0))
      }
      return changes
    }
    let few = try changes(60)
    var edited = Composition(source)
    for change in few {
      if change.isReversed { try edited.reverse(change.range) }
      try edited.setSpeed(change.speed, in: change.range)
    }
    #expect(try Composition.retimed(source, changes: few) == edited)
    let many = try Composition.retimed(source, changes: changes(20_000))
    #expect(many.segments.count == 40_000)
    try many.validateSegments()
  }
}
