// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankPlayback
import OvercrankRaster
import Testing

@testable import OvercrankDisplay

/// The list of drawing commands, which needs no window.
struct PlayerSceneTests {
  private static func composition() throws -> Composition {
    let source = try MediaSource(path: "clip.mov", duration: MediaTime(seconds: 4))
    var composition = Composition(source)
    func second(_ start: Int64) throws -> TimeRange {
      try TimeRange(start: MediaTime(seconds: start), duration: MediaTime(seconds: 1))
    }
    try composition.setSpeedRamp(
      SpeedRamp(from: .normal, to: Speed(1, over: 4)), in: second(3))
    try composition.setSpeed(Speed(2), in: second(2))
    try composition.setSpeed(Speed(1, over: 8), in: second(1))
    return composition
  }

  private static func scene() throws -> PlayerScene {
    var scene = PlayerScene(
      size: VideoSize(width: 1_280, height: 720), panes: [PlayerScene.Pane()],
      timeline: TimelineContent(try composition()))
    scene.panes[0].frame = PlayerScene.Frame(
      path: "clip.mov", index: 7, stored: VideoSize(width: 640, height: 304), rotation: 0)
    return scene
  }

  private static func texts(_ list: [DrawingCommand]) -> [String] {
    list.compactMap { if case .text(let text, _, _, _, _) = $0 { text } else { nil } }
  }

  @Test func `The timeline of the player shows the speed of each segment`() throws {
    let content = TimelineContent(try Self.composition())
    #expect(content.segments.map(\.label) == ["1", "1/8", "2", "1..1/4"])
    #expect(content.segments.map(\.kind) == [.normal, .slow, .fast, .slow])
    #expect(content.segments.map(\.start) == [0, 1, 9, Rational(19, over: 2)])
    // One second of a ramp from speed 1 to 1/4 lasts 1.6 s.
    #expect(content.duration == Rational(111, over: 10))
    let labels = Self.texts(try Self.scene().drawing)
    #expect(["1", "1/8", "2", "1..1/4"].allSatisfy(labels.contains))
    // In a narrow window, only the longest segment has space for its label.
    var narrow = try Self.scene()
    narrow.size.width = 120
    let shown = Self.texts(narrow.drawing)
    #expect(content.segments.map(\.label).filter(shown.contains) == ["1/8"])
  }

  @Test func `A freeze frame is a separate segment in the player timeline`() throws {
    let source = try MediaSource(path: "clip.mov", duration: MediaTime(seconds: 4))
    var composition = Composition(source)
    try composition.freezeFrame(at: MediaTime(seconds: 2), for: MediaTime(seconds: 1))
    let kinds = TimelineContent(composition).segments.map(\.kind)
    #expect(kinds == [.normal, .frozen, .normal])
  }

  @Test func `The player draws its text and panels over the video image`() throws {
    var scene = try Self.scene()
    scene.status = "frame 7/960 · 0.029167 s · 1/8"
    let list = scene.drawing
    #expect(list.first == .fill(PixelRect(x: 0, y: 0, width: 1_280, height: 720), .background))
    #expect(
      list.dropFirst().first
        == .image(
          .frame(pane: 0), source: PixelRect(x: 0, y: 0, width: 640, height: 304),
          destination: PixelRect(x: 0, y: 0, width: 1_280, height: 608), rotation: 0,
          isSmooth: true))
    let texts = Self.texts(list)
    #expect(texts.contains(scene.status) && texts.contains("0.000 / 11.100 s"))
    // A message takes the place of the position, and covers no pixel of the image.
    let bottom = scene.layout.panes[0].bottom
    scene.message = "muted"
    let message = try #require(
      scene.drawing.compactMap { command -> Int? in
        if case .text("muted", _, let y, _, _) = command { y } else { nil }
      }.first)
    #expect(message >= bottom && !Self.texts(scene.drawing).contains(scene.status))
    #expect(scene.drawing.prefix(2) == list.prefix(2))
  }

  @Test func `Loop range and mark and playhead are drawn at their times`() throws {
    var scene = try Self.scene()
    scene.timeline = TimelineContent(
      Composition(try MediaSource(path: "clip.mov", duration: MediaTime(seconds: 1_256))))
    scene.position = 100
    scene.marks = [200]
    scene.loop = try TimeRange(start: MediaTime(seconds: 300), end: MediaTime(seconds: 400))
    func columns(_ color: Color) -> [ClosedRange<Int>] {
      scene.drawing.compactMap {
        guard case .fill(let area, color) = $0 else { return nil }
        return area.x...area.right
      }
    }
    #expect(columns(.playhead) == [111...113, 108...116])
    #expect(columns(.mark) == [211...213, 208...216])
    #expect(columns(.loop) == [312...412, 312...412])
    #expect(columns(.outside) == [12...312, 412...1_268])
  }

  @Test func `The ends of the range are drawn as brackets`() throws {
    var scene = try Self.scene()
    scene.timeline = TimelineContent(
      Composition(try MediaSource(path: "clip.mov", duration: MediaTime(seconds: 1_256))))
    func columns() -> [ClosedRange<Int>] {
      scene.drawing.compactMap {
        guard case .fill(let area, .range) = $0 else { return nil }
        return area.x...area.right
      }
    }
    #expect(columns().isEmpty)
    scene.rangeStart = 300
    #expect(columns() == [310...314, 310...324, 310...324])
    #expect(Self.texts(scene.drawing).contains("range 300.000.."))
    scene.rangeEnd = 400
    // The bracket at the end opens to the left.
    #expect(columns().dropFirst(3) == [410...414, 400...414, 400...414])
    #expect(Self.texts(scene.drawing).contains("range 300.000..400.000"))
  }

  @Test func `Equal player scenes give the same draw commands`() throws {
    var scene = try Self.scene()
    #expect(scene.drawing == (try Self.scene().drawing))
    scene.position = 5
    #expect(scene.drawing != (try Self.scene().drawing))
  }

  @Test func `A window of one pixel can be drawn`() throws {
    for size in [VideoSize(width: 1, height: 1), VideoSize(width: 30, height: 2_000)] {
      var scene = try Self.scene()
      scene.size = size
      scene.message = "a long message"
      #expect(!scene.drawing.isEmpty)
    }
  }

  @Test func `A long title of another script is shortened to its pane`() throws {
    var scene = try Self.scene()
    scene.panes[0].title = String(repeating: "走り幅跳び", count: 40)
    let shown = try #require(Self.texts(scene.drawing).first { $0.hasPrefix("走") })
    #expect(shown.hasSuffix("..") && shown.count < 200)
    #expect(InstalledFont.standard.width(of: shown, scale: 1) <= 1_280 - 36)
  }
}
