// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Projects of LosslessCut, of edit decision lists, and of Final Cut Pro.
struct OtherProjectsTests {
  private func read(
    _ text: String, seconds: Int64 = 100, rate: Int64? = 24
  ) throws -> EditingProject {
    try EditingProject(parsing: text) { (path) throws(MediaError) in
      try MediaSource(
        path: path, duration: MediaTime(seconds: seconds),
        tracks: [SourceTrack(.video), SourceTrack(.audio)])
    } timeCodeRate: { _ in
      rate.map { FrameRate(Int($0)) }
    }
  }

  private func table(_ project: EditingProject, _ kind: MediaType = .video) -> [String] {
    project.composition.track(kind)?.segments.map(\.description) ?? []
  }

  static let llc = """
    {
      version: 2, mediaFileName: 'IMG_1.mp4', // JSON5, as it is written
      cutSegments: [
        { start: 1.5, end: 3, name: 'one', },
        { start: 10, name: 'a marker' },
        { start: 5, end: 6, name: 'no', selected: false },
        { start: 8.25, end: 9, name: '', tags: { a: 'b' } },
      ],
    }
    """

  @Test func `LosslessCut segments play in sequence`() throws {
    let found = try read(Self.llc)
    #expect(found.format == .losslessCut)
    #expect(
      table(found) == ["IMG_1.mp4 3/2..3/1 -> 0/1..3/2", "IMG_1.mp4 33/4..9/1 -> 3/2..9/4"])
    #expect(table(found, .audio) == table(found))
    #expect(found.warnings.count == 2, "\(found.warnings)")
    let first = try read(
      #"{"version": 1, "mediaFileName": "a.mov", "cutSegments": [{"end": 2, "name": ""}, {"start": 99, "name": ""}]}"#
    )
    #expect(table(first) == ["a.mov 0/1..2/1 -> 0/1..2/1", "a.mov 99/1..100/1 -> 2/1..3/1"])
  }

  static let list = """
    TITLE:   List of edits
    FCM: NON-DROP FRAME

    001  A001     V     C        00:00:02:00 00:00:03:00 01:00:00:00 01:00:01:00
    * FROM CLIP NAME:  first.mov
    002  A001     V     C        00:00:10:00 00:00:10:06 01:00:01:00 01:00:02:00
    M2   A001           006.0                00:00:10:00
    * FROM CLIP NAME:  first.mov
    003  A002     B     C        00:00:20:00 00:00:20:12 01:00:02:12 01:00:03:00
    * SOURCE FILE: second.mov
    004  A002     V     C        00:00:30:00 00:00:31:00 01:00:03:00 01:00:04:00
    M2   A002           -024.0               00:00:30:00
    * SOURCE FILE: second.mov
    005  A002     V     C        00:00:40:00 00:00:40:01 01:00:04:00 01:00:05:00
    M2   A002           000.0                00:00:40:00
    * SOURCE FILE: second.mov
    """

  @Test func `Reads an EDL with speeds and gaps and reversals and freezes`() throws {
    let found = try read(Self.list)
    #expect(found.format == .editDecisionList)
    #expect(found.name == "List of edits")
    #expect(
      table(found) == [
        "first.mov 2/1..3/1 -> 0/1..1/1", "first.mov 10/1..41/4 -> 1/1..2/1", "empty -> 2/1..5/2",
        "second.mov 20/1..41/2 -> 5/2..3/1", "second.mov reversed 30/1..31/1 -> 3/1..4/1",
        "second.mov hold 40/1 -> 4/1..5/1",
      ])
    #expect(table(found, .audio) == ["empty -> 0/1..5/2", "second.mov 20/1..41/2 -> 5/2..3/1"])
    #expect(found.warnings.isEmpty, "\(found.warnings)")
    // The edit decision list does not state the frame rate of its time codes.
    let error = #expect(throws: MediaError.self) { try read(Self.list, rate: nil) }
    #expect(error?.code == .frameRateNeeded)
    #expect(throws: MediaError.self) { try read(Self.list, rate: 10) }
  }

  @Test func `Drop-frame and camera timecodes map to times in the media`() throws {
    let hours = """
      001  A001     V     C        01:00:02:00 01:00:03:00 00:00:00:00 00:00:01:00
      * FROM CLIP NAME:  first.mov
      """
    let found = try read(hours)
    #expect(table(found) == ["first.mov 2/1..3/1 -> 0/1..1/1"])
    #expect(found.warnings.count == 1)
    let drop = """
      FCM: DROP FRAME
      001  A001     V     C        00:00:59;28 00:01:00;02 00:00:59;28 00:01:00;02
      """
    let television = try EditingProject(parsing: drop) { (path) throws(MediaError) in
      try MediaSource(path: path, duration: MediaTime(seconds: 100))
    } timeCodeRate: { _ in
      FrameRate(30_000, over: 1_001)
    }
    // Drop-frame time code skips two numbers at the minute, so the range has two frames.
    #expect(television.composition.duration == (MediaTime(2_002, over: 30_000)))
    // Without a speed line (M2), two seconds of source cannot play in one second.
    let odd = "001  A001     V     C        00:00:02:00 00:00:04:00 00:00:00:00 00:00:01:00"
    #expect(throws: MediaError.self) { try read(odd) }
  }

  static let finalCut = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE fcpxml>
    <fcpxml version="1.9"><resources>
      <format id="r0" frameDuration="100/2400s"/>
      <asset id="r1" src="file:///a%20b.mov" start="3600s" duration="50s" hasVideo="1" hasAudio="1"/>
      <asset id="r2" start="0s" duration="50s" hasVideo="1">
        <media-rep kind="original-media" src="c.mov"/></asset>
      <media id="r3"><sequence duration="4s" tcStart="0s"><spine>
        <asset-clip ref="r2" offset="0s" start="20s" duration="4s"/></spine></sequence></media>
    </resources><library><event><project name="P &amp; Q"><sequence tcStart="3600s"><spine>
      <asset-clip name="x" ref="r1" offset="3600s" start="3605s" duration="2s">
        <asset-clip ref="r2" lane="1" offset="3606s" start="7s" duration="2s"/>
      </asset-clip>
      <gap offset="3602s" start="3600s" duration="2s"/>
      <transition name="Cross Dissolve" offset="3603s" duration="2s"/>
      <asset-clip ref="r1" offset="3604s" start="3600s" duration="6s"><timeMap>
        <timept time="3600s" value="3600s" interp="linear"/>
        <timept time="3602s" value="3602s" interp="linear"/>
        <timept time="3606s" value="3603s" interp="linear"/></timeMap></asset-clip>
      <ref-clip ref="r3" offset="3610s" start="1s" duration="2s"/>
      <clip offset="3612s" start="30s" duration="1s"><video ref="r2" offset="0s" duration="50s"/></clip>
    </spine></sequence></project></event></library></fcpxml>
    """

  @Test func `Final Cut clips and speeds and connected clips are read`() throws {
    let found = try read(Self.finalCut)
    #expect(found.format == .finalCut)
    #expect(found.name == "P & Q")
    #expect(
      table(found) == [
        "/a b.mov 5/1..6/1 -> 0/1..1/1", "c.mov 7/1..9/1 -> 1/1..3/1", "empty -> 3/1..4/1",
        "/a b.mov 0/1..2/1 -> 4/1..6/1",
        "/a b.mov 2/1..3/1 -> 6/1..10/1", "c.mov 21/1..23/1 -> 10/1..12/1",
        "c.mov 30/1..31/1 -> 12/1..13/1",
      ])
    #expect(
      table(found, .audio).prefix(4) == [
        "/a b.mov 5/1..7/1 -> 0/1..2/1", "empty -> 2/1..4/1", "/a b.mov 0/1..2/1 -> 4/1..6/1",
        "/a b.mov 2/1..3/1 -> 6/1..10/1",
      ])
    #expect(found.warnings.count == 1, "\(found.warnings)")
  }

  @Test(arguments: [
    "", "hello", "<playlist version=\"4\"/>", "<a><b></a>", "{\"tracks\": []}", "[1, 2]", "{",
  ])
  func `The error for an unknown project type lists the known types`(text: String) {
    let error = #expect(throws: MediaError.self) { try read(text) }
    #expect(error?.code == .invalidProject)
    let names = [".otio", ".llc", ".edl", ".fcpxml", ".xml"]
    let isNamed = names.allSatisfy { error?.description.contains($0) ?? false }
    #expect(isNamed || text == "<a><b></a>", "\(error?.description ?? "")")
  }

  /// A damaged project must give an error or a valid composition, and never a crash.
  @Test(arguments: [llc, list, finalCut])
  func `A damaged project of another editor gives an error or loads`(text: String) throws {
    let bytes = Array(text.utf8)
    var random = SeededGenerator(seed: 11)
    var readable = 0
    for _ in 0..<RunSize.cases(300, full: 1_200) {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let position = Int.random(in: 0..<damaged.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: damaged[position] = UInt8.random(in: 32...255, using: &random)
        case 1: damaged.remove(at: position)
        case 2: damaged.removeSubrange(position..<min(damaged.count, position + 40))
        default:
          damaged.insert(
            Array("0123456789-:;/<>\"{}[]&".utf8).randomElement(using: &random) ?? 48, at: position)
        }
        if damaged.isEmpty { damaged = bytes }
      }
      do {
        let found = try read(String(decoding: damaged, as: UTF8.self))
        try found.composition.validateSegments()
        readable += 1
      } catch is MediaError {}
    }
    #expect(readable * 30 > RunSize.cases(300, full: 1_200))
  }

  @Test func `XML that is malformed or too deep or has entities is refused`() {
    let deep = String(repeating: "<a>", count: 100_000)
    let entities = "<!DOCTYPE a [<!ENTITY b \"bb\">]><a c=\"&b;\"/>"
    for text in [deep, entities, "<a b=\"&c;\"/>", "<a b=\"1\" b=\"2\"/>", "<a b=1/>", "<a"] {
      #expect(throws: MediaError.self) { try read(text) }
    }
  }
}
