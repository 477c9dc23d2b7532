// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Conformed and multicam clips of FCPXML, and `xmeml` as Premiere and DaVinci Resolve write it.
struct FinalCutVariantsTests {
  private func read(_ text: String, seconds: Int64 = 100) throws -> EditingProject {
    try EditingProject(parsing: text) { (path) throws(MediaError) in
      try MediaSource(
        path: path, duration: MediaTime(seconds: seconds),
        tracks: [SourceTrack(.video), SourceTrack(.audio)])
    }
  }

  private func table(_ project: EditingProject, _ kind: MediaType = .video) -> [String] {
    project.composition.track(kind)?.segments.map(\.description) ?? []
  }

  private func conformed(_ clip: String) -> String {
    """
    <fcpxml version="1.11"><resources>
    <format id="r1" frameDuration="100/2400s"/><format id="r2" frameDuration="1001/24000s"/>
    <asset id="a1" start="0s" duration="50s" hasVideo="1" src="a.mov"/>
    <asset id="a2" start="50s" duration="50s" hasVideo="1" src="b.mov"/>
    </resources><project name="p"><sequence format="r1" tcStart="0s"><spine>\(clip)</spine>
    </sequence></project></fcpxml>
    """
  }

  @Test func `A clip conformed to a new frame rate keeps every frame`() throws {
    let plain = try read(
      conformed(
        """
        <asset-clip ref="a1" offset="0s" duration="25/12s"><conform-rate srcFrameRate="25"/></asset-clip>
        """))
    #expect(table(plain) == ["a.mov 0/1..2/1 -> 0/1..25/12"])
    #expect(plain.warnings.isEmpty)
    let unscaled = try read(
      conformed(
        """
        <asset-clip ref="a1" offset="0s" duration="2s"><conform-rate scaleEnabled="0" srcFrameRate="60"/></asset-clip>
        """))
    #expect(table(unscaled) == ["a.mov 0/1..2/1 -> 0/1..2/1"])
    // 23.98 stands for 24000/1001. The time of the clip begins at 50 s of conformed time.
    let late = try read(
      conformed(
        """
        <asset-clip ref="a2" offset="0s" duration="24s"><conform-rate srcFrameRate="23.98"/></asset-clip>
        """))
    #expect(table(late) == ["b.mov 0/1..3003/125 -> 0/1..24/1"])
  }

  @Test func `Only the active angle of a multicam clip is played`() throws {
    let text = """
      <fcpxml version="1.10"><resources>
      <format id="r1" frameDuration="1/25s"/>
      <asset id="a1" start="0s" duration="50s" hasVideo="1" hasAudio="1" src="left.mov"/>
      <asset id="a2" start="0s" duration="50s" hasVideo="1" hasAudio="1" src="right.mov"/>
      <media id="m1"><multicam format="r1" tcStart="3600s">
        <mc-angle name="L" angleID="L1"><asset-clip ref="a1" offset="3600s" duration="20s"/></mc-angle>
        <mc-angle name="R" angleID="R1"><gap offset="3600s" duration="2s" start="0s"/>
          <asset-clip ref="a2" offset="3602s" duration="20s" start="5s"/></mc-angle>
      </multicam></media>
      </resources><project name="p"><sequence format="r1" tcStart="0s"><spine>
        <mc-clip ref="m1" offset="0s" start="3601s" duration="4s">
          <mc-source angleID="R1" srcEnable="video"/><mc-source angleID="L1" srcEnable="audio"/></mc-clip>
        <mc-clip ref="m1" offset="4s" start="3604s" duration="1s"><mc-source angleID="L1"/></mc-clip>
      </spine></sequence></project></fcpxml>
      """
    let found = try read(text)
    #expect(
      table(found) == [
        "empty -> 0/1..1/1", "right.mov 5/1..8/1 -> 1/1..4/1", "left.mov 4/1..5/1 -> 4/1..5/1",
      ])
    #expect(
      table(found, .audio) == ["left.mov 1/1..5/1 -> 0/1..4/1", "left.mov 4/1..5/1 -> 4/1..5/1"])
    let missing = text.replacing("angleID=\"R1\" srcEnable", with: "angleID=\"X\" srcEnable")
    #expect(throws: MediaError.self) { try read(missing) }
  }

  static let premiere = """
    <?xml version="1.0" encoding="UTF-8"?><!DOCTYPE xmeml>
    <xmeml version="4"><sequence id="sequence-1"><name>Cut &amp; run</name><duration>250</duration>
    <rate><timebase>25</timebase><ntsc>FALSE</ntsc></rate>
    <media><video><format/><track>
      <clipitem id="c1"><name>a</name><enabled>TRUE</enabled><start>0</start><end>50</end>
        <in>25</in><out>75</out><file id="f1"><name>a.mov</name>
        <pathurl>file://localhost/media/a%20b.mov</pathurl></file></clipitem>
      <clipitem id="c2"><name>slow</name><start>50</start><end>100</end><in>100</in><out>150</out>
        <file id="f1"/><filter><effect><name>Time Remap</name><effectid>timeremap</effectid>
        <parameter><parameterid>variablespeed</parameterid><value>0</value></parameter>
        <parameter><parameterid>speed</parameterid><value>50</value></parameter>
        <parameter><parameterid>reverse</parameterid><value>FALSE</value></parameter></effect></filter></clipitem>
      <clipitem id="c3"><name>back</name><start>100</start><end>125</end><in>25</in><out>50</out>
        <file id="f2"><name>c.mov</name><pathurl>file://localhost/C%3a/clips/c.mov</pathurl></file>
        <filter><effect><effectid>timeremap</effectid>
        <parameter><parameterid>speed</parameterid><value>200</value></parameter>
        <parameter><parameterid>reverse</parameterid><value>TRUE</value></parameter></effect></filter></clipitem>
      <clipitem id="c4"><name>off</name><enabled>FALSE</enabled><start>125</start><end>150</end>
        <in>0</in><out>25</out><file id="f1"/></clipitem>
    </track><track>
      <generatoritem><name>Title</name><start>0</start><end>25</end></generatoritem>
    </track></video><audio>
      <track><clipitem><name>a</name><start>0</start><end>50</end><in>25</in><out>75</out><file id="f1"/></clipitem></track>
      <track><clipitem><name>a</name><start>0</start><end>50</end><in>25</in><out>75</out><file id="f1"/></clipitem></track>
    </audio></media></sequence></xmeml>
    """

  @Test func `Reads clips and ranges and speeds of Final Cut 7 XML`() throws {
    let found = try read(Self.premiere)
    #expect(found.format == .finalCut7)
    #expect(found.name == "Cut & run")
    #expect(
      table(found) == [
        "/media/a b.mov 1/1..3/1 -> 0/1..2/1", "/media/a b.mov 2/1..3/1 -> 2/1..4/1",
        "c.mov reversed 96/1..98/1 -> 4/1..5/1",
      ])
    #expect(table(found, .audio) == ["/media/a b.mov 1/1..3/1 -> 0/1..2/1"])
    #expect(found.warnings.count == 1 && found.warnings[0].contains("Title"), "\(found.warnings)")
  }

  static let resolve = """
    <xmeml version="5"><sequence><name>Timeline 1</name><duration>60</duration>
    <rate><timebase>30</timebase><ntsc>TRUE</ntsc></rate><media><video><track>
      <clipitem id="a 0"><name>a.mov</name><duration>90</duration>
        <rate><timebase>30</timebase><ntsc>TRUE</ntsc></rate><start>0</start><end>-1</end><in>0</in><out>40</out>
        <file id="a 2"><pathurl>file:///media/a.mov</pathurl></file></clipitem>
      <transitionitem><start>25</start><end>35</end><alignment>center</alignment></transitionitem>
      <clipitem id="b 0"><name>nest</name><start>-1</start><end>60</end><in>10</in><out>45</out>
        <sequence><name>inner</name><rate><timebase>60</timebase><ntsc>TRUE</ntsc></rate><media><video><track>
          <clipitem><name>b</name><start>0</start><end>240</end><in>60</in><out>300</out>
          <file id="b 1"><pathurl>file:///media/b.mov</pathurl></file></clipitem>
        </track></video></media></sequence></clipitem>
    </track></video></media></sequence></xmeml>
    """

  @Test func `Reads transitions and nested sequences of Final Cut 7 XML`() throws {
    let found = try read(Self.resolve)
    func seconds(_ frames: Int) -> String {
      Rational(Int128(frames) * 1001, over: 30_000).description
    }
    #expect(
      table(found) == [
        "/media/a.mov 0/1..\(seconds(25)) -> 0/1..\(seconds(25))",
        "/media/b.mov \(seconds(40))..\(seconds(75)) -> \(seconds(25))..\(seconds(60))",
      ], "\(table(found))")
    #expect(found.warnings == ["transitions are played as cuts"])
  }

  @Test(arguments: [
    "<xmeml/>", "<xmeml><sequence><media/></sequence></xmeml>",
    "<xmeml><sequence><rate><timebase>0</timebase></rate><media/></sequence></xmeml>",
    """
    <xmeml><sequence><rate><timebase>25</timebase></rate><media><video><track><clipitem>
    <start>9</start><end>3</end></clipitem></track></video></media></sequence></xmeml>
    """,
    """
    <xmeml><sequence id="s"><rate><timebase>25</timebase></rate><media><video><track><clipitem>
    <start>0</start><end>3</end><sequence id="s"/></clipitem></track></video></media></sequence></xmeml>
    """,
  ])
  func `Damaged Final Cut 7 XML is refused`(text: String) {
    let error = #expect(throws: MediaError.self) { try read(text) }
    #expect(error?.code == .invalidProject)
  }
}
