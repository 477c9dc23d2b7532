// SPDX-License-Identifier: Apache-2.0

import CSDL2
import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankPreview
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankDisplay
@testable import OvercrankPlayback

/// The pixels of a window that uses SDL's dummy video driver, which needs no display.
///
/// SDL has one event queue, so the tests run one after the other.
@Suite(.serialized)
struct PlayerWindowTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A movie at 240 fps whose frames carry their numbers, with a key frame every 24 frames.
  private func painted(
    _ count: Int64 = 240, name: String = "clip.mov",
    _ change: (inout MovieRecipe) -> Void = { _ in }
  ) throws -> Asset {
    var recipe = MovieRecipe.constant(240, count: count, timescale: 240_000)
      .h264(gop: 24, reordered: false)
    change(&recipe)
    return try recipe.asset(at: scratch.file(name))
  }

  @Test func `The window shows the exact frame after seek or step or play`() throws {
    let stage = try WindowStage([painted()])
    #expect(try stage.number() == 0)
    for (time, number) in [(100, 100), (239, 239), (23, 23), (24, 24), (0, 0)] as [(Int64, Int)] {
      stage.player.seek(to: MediaTime(time, over: 240))
      try stage.refresh()
      #expect(try stage.number() == number)
      #expect(stage.window.scene.status.hasPrefix("frame \(number)/240 · "))
    }
    for number in [1, 2, 3] {
      stage.player.step(by: 1)
      try stage.refresh()
      #expect(try stage.number() == number)
    }
    stage.player.step(by: -2)
    try stage.refresh()
    #expect(try stage.number() == 1)
    // From frame 1, a quarter of a second at half speed is 30 frames.
    try stage.player.setRate(Rational(1, over: 2))
    try stage.advance(by: 250_000_000)
    #expect(try stage.number() == 31)
    #expect(stage.window.scene.isPlaying)
    #expect(stage.window.scene.status == "frame 31/240 · 0.129167 s · 1/2")
  }

  @Test func `Scrubbing shows key frames and then the exact frame`() throws {
    let stage = try WindowStage([painted()])
    try stage.player.setRate(1)
    let line = stage.window.scene.layout.timeline
    /// The window point on the timeline at a frame.
    func point(_ frame: Int) -> Point {
      // One column is added, because the time of a column is rounded down.
      Point(x: Double(line.x) + Double(frame * line.width) / 240 + 1, y: Double(line.y + 2))
    }
    stage.window.post(.pressed(.left, point(100)))
    _ = stage.window.takeInput()
    try stage.window.present(at: stage.clock.now)
    #expect(stage.player.rate == .zero)
    stage.player.decodePending()
    // While the pointer moves, the nearest key frame is shown.
    stage.window.post(.moved(point(130)))
    _ = stage.window.takeInput()
    try stage.window.present(at: stage.clock.now)
    stage.player.decodePending()
    #expect(stage.player.frame(at: stage.clock.now)?.index == 120)
    try stage.refresh()
    #expect(try stage.number() == 130)
    stage.window.post(.released(.left))
    #expect(stage.window.takeInput().isEmpty)
    // Playback continues from the frame at which the drag ended, at the previous rate.
    stage.player.decodePending()
    #expect(stage.player.rate == 1)
    try stage.advance(by: 50_000_000)
    #expect((142...143).contains(try stage.number()))
  }

  @Test func `Two clips aligned at chosen frames play on one clock`() throws {
    let assets = try [painted(), painted(name: "other.mov")]
    // Frame 100 of the first clip and frame 40 of the second clip are shown together.
    let origins = [MediaTime(100, over: 240), MediaTime(40, over: 240)]
    let stage = try WindowStage(assets, origins: origins, width: 644)
    #expect(try stage.number(pane: 0) == 0)
    // The second clip has not begun, so its first frame stays.
    #expect(try stage.number(pane: 1) == 0)
    stage.player.seek(to: origins[0])
    try stage.refresh()
    #expect(try stage.number(pane: 0) == 100 && stage.number(pane: 1) == 40)
    for step in [1, 1, -3] {
      stage.player.step(by: step)
      try stage.refresh()
      #expect(try stage.number(pane: 1) == stage.number(pane: 0) - 60)
    }
    for rate in [Rational(1, over: 4), 1, -1, 2] {
      try stage.player.setRate(rate)
      for _ in 0..<6 {
        try stage.advance(by: 16_666_667)
        #expect(try stage.number(pane: 1) == stage.number(pane: 0) - 60)
      }
    }
    #expect(stage.players[1].ledger.late == 0 && stage.players[1].ledger.isBalanced)
    // At the end of the first clip, both clips stand still.
    try stage.advance(by: 2_000_000_000)
    #expect(try stage.number(pane: 0) == 239 && stage.number(pane: 1) == 179)
    // Commands to the second player, which follows the first, change nothing.
    stage.players[1].seek(to: .zero)
    try stage.refresh()
    #expect(try stage.number(pane: 1) == 179)
    // The second clip is moved against the first one, and stays with it.
    stage.players[1].shift(by: Rational(-2, over: 240))
    try stage.refresh()
    #expect(try stage.number(pane: 1) == 177)
    stage.player.step(by: -1)
    try stage.refresh()
    #expect(try stage.number(pane: 1) == 176)
  }

  @Test func `A zoomed frame shows its pixels as squares`() throws {
    let stage = try WindowStage([painted()])
    stage.player.seek(to: MediaTime(171, over: 240))
    try stage.refresh()
    stage.window.zoom(by: 2)
    try stage.refresh()
    let pane = stage.window.scene.layout.panes[0]
    let pixels = try stage.window.pixels()
    // Ten window pixels show one pixel of the movie. Half of the painted blocks are visible, four
    // on each side.
    let row = (0..<640).map { pixels.color($0, pane.height / 2)[1] > 120 }
    let bits = (0..<8).map { block in 171 >> (block + 4) & 1 == 1 }
    for (block, bit) in bits.enumerated() {
      #expect(row[(block * 80 + 2)..<(block * 80 + 78)].allSatisfy { $0 == bit }, "\(block)")
    }
    stage.window.resetZoom()
    try stage.refresh()
    #expect(try stage.number() == 171)
  }

  @Test(arguments: [0, 90, 180, 270])
  func `A rotated movie is shown upright`(_ degrees: Int) throws {
    let rotation = try #require(FrameRotation(clockwiseDegrees: degrees, isMirrored: false))
    let asset = try painted(24) {
      $0.displayMatrix = rotation.displayMatrix(
        width: PaintedBlocks.width, height: PaintedBlocks.height)
    }
    let stage = try WindowStage([asset], width: 400, height: 450)
    stage.player.seek(to: MediaTime(21, over: 240))
    try stage.refresh()
    let pixels = try stage.window.pixels()
    // The expected image is decoded and rotated by libav.
    let frame = try #require(stage.player.frame(at: stage.clock.now))
    var converter = FrameConverter(to: .rgb24, isFullRange: true)
    let upright = try converter.convert(frame.image).rotated(by: rotation)
    let pane = stage.window.scene.layout.panes[0]
    let size = VideoSize(width: upright.width, height: upright.height)
    let scale = ImageViewport().scale(of: size, in: pane)
    for index in 0..<16 {
      // The middle of each painted block, along the rotated image.
      let along = index * 8 + 4
      let (x, y) =
        degrees % 180 == 0
        ? (degrees == 0 ? along : 127 - along, 16) : (16, degrees == 90 ? along : 127 - along)
      let left = pane.middle.x + (Double(x) + 0.5 - Double(size.width) / 2) * scale
      let top = pane.middle.y + (Double(y) + 0.5 - Double(size.height) / 2) * scale
      let shown = pixels.color(Int(left), Int(top))
      let wanted = upright.color(x, y)
      #expect(zip(shown, wanted).allSatisfy { abs($0 - $1) <= 4 }, "block \(index)")
    }
  }

  @Test(
    arguments: [("bt709", "tv"), ("smpte170m", "tv"), ("bt470bg", "pc"), ("bt709", "pc")])
  func `Colors follow the matrix and range tags of the frame`(
    _ matrix: String, _ range: String
  ) async throws {
    let path = scratch.file("colors.mov")
    let made = try await run(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "smptebars=size=320x160:rate=24:duration=0.5", "-vf",
        "scale=out_color_matrix=\(matrix == "bt709" ? "bt709" : "bt601"):out_range=\(range)",
        "-pix_fmt", "yuv420p", "-c:v", "libx264", "-crf", "1", "-colorspace", matrix,
        "-color_range", range, path,
      ])
    try #require(made.status == 0, "\(made.errors)")
    let stage = try WindowStage([Asset(path: path)], width: 320, height: 210)
    let pixels = try stage.window.pixels()
    let frame = try #require(stage.player.frame(at: stage.clock.now))
    let wanted = try frame.pixelBuffer(as: PixelFormat(rawValue: "rgb24"))
    let bytesPerRow = wanted.planes[0].bytesPerRow
    for x in stride(from: 20, to: 320, by: 45) {
      let shown = pixels.color(x, 40)
      let bytes = (0..<3).map { Int(wanted.bytes[40 * bytesPerRow + x * 3 + $0]) }
      #expect(zip(shown, bytes).allSatisfy { abs($0 - $1) <= 3 }, "\(x): \(shown) for \(bytes)")
    }
  }

  @Test func `Each thumbnail shows the middle frame of its time span`() throws {
    let stage = try WindowStage([painted()], height: 320, showsThumbnails: true)
    while !stage.window.hasAllThumbnails {
      MonotonicClock.pause()
      try stage.refresh()
    }
    try stage.refresh()
    let slots = stage.window.scene.layout.thumbnailSlots(aspect: 4)
    #expect(slots.count == 3)
    let pixels = try stage.window.pixels()
    for (index, slot) in slots.enumerated() {
      let number = (0..<8).reduce(0) { number, block in
        let x = slot.x + slot.width * (block * 2 + 1) / 32
        return number | (pixels.color(x, slot.y + 20)[1] > 120 ? 1 << block : 0)
      }
      #expect(number == 240 * (2 * index + 1) / 6)
    }
  }

  @Test func `Replacing the composition updates the player timeline`() throws {
    let stage = try WindowStage([painted()])
    var slow = stage.player.composition
    try slow.setSpeed(
      Speed(1, over: 8), in: TimeRange(start: .zero, end: MediaTime(1, over: 2)))
    try stage.player.replaceComposition(slow)
    try stage.refresh()
    #expect(stage.window.scene.timeline.segments.map(\.label) == ["1/8", "1"])
    let line = stage.window.scene.layout.timeline
    let pixels = try stage.window.pixels()
    let slowColor = Color.slowSpeed
    #expect(
      pixels.color(line.x + line.width / 2, line.y + 2)
        == [Int(slowColor.red), Int(slowColor.green), Int(slowColor.blue)])
    #expect(stage.window.scene.status.hasSuffix(" · 0"))
    try stage.player.setRate(1)
    try stage.refresh()
    #expect(stage.window.scene.status.hasSuffix(" · 1/8"))
  }

  @Test func `SDL key events are translated to key names`() throws {
    let stage = try WindowStage([painted(24)])
    _ = stage.window.takeInput()
    func type(_ text: String) {
      var event = SDL_Event()
      event.type = SDL_TEXTINPUT.rawValue
      withUnsafeMutableBytes(of: &event.text.text) { $0.copyBytes(from: Array(text.utf8) + [0]) }
      SDL_PushEvent(&event)
    }
    func press(_ code: SDL_KeyCode, _ modifiers: SDL_Keymod = KMOD_NONE) {
      var event = SDL_Event()
      event.type = SDL_KEYDOWN.rawValue
      event.key.keysym.sym = SDL_Keycode(code.rawValue)
      event.key.keysym.mod = UInt16(modifiers.rawValue)
      SDL_PushEvent(&event)
    }
    type(" ")
    type("[")
    press(SDLK_PERIOD)
    type(".")
    press(SDLK_LEFT)
    press(SDLK_LEFT, KMOD_LALT)
    press(SDLK_EQUALS, KMOD_LALT)
    press(SDLK_s, KMOD_RCTRL)
    press(SDLK_BACKSPACE)
    press(SDLK_TAB, KMOD_LSHIFT)
    press(SDLK_F1)
    #expect(
      stage.window.takeInput()
        == [
          "space", "[", ".", "left", "alt+left", "alt++", "ctrl+s", "backspace", "shift+tab", "f1",
        ].map { .key($0) })
    var quit = SDL_Event()
    quit.type = SDL_QUIT.rawValue
    SDL_PushEvent(&quit)
    #expect(stage.window.takeInput() == [.closed])
  }

  /// Posts events, shows their effect, and returns the input that they gave.
  private func post(_ events: WindowEvent..., to stage: WindowStage) throws -> [WindowInput] {
    events.forEach(stage.window.post)
    let input = stage.window.takeInput()
    try stage.refresh()
    return input
  }

  private static let buttons = [
    ViewButton("space", "pause", "pause: space"), ViewButton(",", "step", "back: ,"),
    ViewButton("r", "reverse", "backward: r", isOn: true),
  ]

  @Test func `An idle window builds and presents nothing`() throws {
    let stage = try WindowStage([painted()])
    stage.window.buttons = Self.buttons
    _ = stage.window.takeInput()
    try stage.refresh()
    #expect(stage.window.isIdle)
    let count = stage.window.presentCount
    func wait(_ refreshes: Int) throws {
      for _ in 0..<refreshes { try stage.advance(by: 16_666_667) }
    }
    try wait(200)
    #expect(stage.window.presentCount == count)
    // The buttons appear, and disappear after three seconds.
    _ = try post(.moved(Point(x: 320, y: 100)), to: stage)
    #expect(!stage.window.isIdle)
    try wait(200)
    #expect(stage.window.isIdle && stage.window.presentCount == count + 2)
    try stage.player.setRate(1)
    try wait(2)
    #expect(!stage.window.isIdle && stage.window.presentCount > count + 2)
  }

  @Test func `A dropped file is reported once`() throws {
    let stage = try WindowStage([painted(24)])
    stage.window.post(.dropped("/other.mov"))
    #expect(stage.window.takeInput().contains(.dropped("/other.mov")))
    #expect(stage.window.takeDroppedFile() == "/other.mov")
    #expect(stage.window.takeDroppedFile() == nil)
  }

  @Test func `Steps of a script act as the pointer does`() throws {
    let stage = try WindowStage([painted()])
    stage.window.buttons = Self.buttons
    stage.window.clickKey = "space"
    _ = stage.window.takeInput()
    try stage.refresh()
    func input(_ step: ViewStep) throws -> [WindowInput] {
      #expect(stage.window.perform(step))
      let input = stage.window.takeInput()
      try stage.refresh()
      return input
    }
    #expect(try input(.click(.control("pause"))) == [.key("space")])
    #expect(try input(.click(.control(","))) == [.key(",")])
    #expect(try input(.click(.point(Point(x: 0.5, y: 0.1)))) == [.key("space")])
    #expect(try input(.key("m")) == [.key("m")])
    #expect(!stage.window.perform(.click(.control("nothing"))))
    let line = stage.window.scene.layout.timeline
    let y = (Double(line.y) + 2) / Double(stage.window.scene.size.height)
    _ = try input(
      .drag(.point(Point(x: 0.2, y: y)), to: .point(Point(x: 0.5, y: y)), isRight: false))
    try stage.refresh()
    #expect(try stage.number() == 120)
    _ = try input(.wheel(4, .point(Point(x: 0.5, y: 0.3))))
    #expect(stage.window.scene.panes[0].viewport != ImageViewport())
  }

  @Test func `Buttons appear with the pointer and report their keys`() throws {
    let stage = try WindowStage([painted()])
    stage.window.buttons = Self.buttons
    try stage.refresh()
    #expect(stage.window.scene.widgets.find("bar") == nil)
    let hidden = try stage.window.pixels()
    _ = try post(.moved(Point(x: 320, y: 20)), to: stage)
    let bar = try #require(stage.window.scene.widgets.find("bar"))
    let pane = stage.window.scene.layout.panes[0]
    #expect(bar.area.y >= pane.y && bar.area.bottom <= pane.bottom)
    let shown = try stage.window.pixels()
    let corner = (bar.area.x + 1, bar.area.y + 1)
    #expect(shown.color(corner.0, corner.1) != hidden.color(corner.0, corner.1))
    for button in bar.buttons {
      let input = try post(
        .moved(button.area.middle), .pressed(.left, button.area.middle), .released(.left),
        to: stage)
      #expect(input == [.key(button.name)])
      // The hint is above the bar and inside the window.
      let hint = try #require(stage.window.scene.widgets.find("hint text"))
      #expect(hint.text == Self.buttons.first { $0.key == button.name }?.hint)
      #expect(hint.area.bottom <= bar.area.y && hint.area.x >= 0 && hint.area.right <= 640)
    }
    // While the pointer rests on the bar, it stays.
    try stage.advance(by: 60_000_000_000)
    #expect(stage.window.scene.widgets.find("bar") != nil)
    _ = try post(.moved(Point(x: 320, y: 20)), to: stage)
    try stage.advance(by: 2_900_000_000)
    #expect(stage.window.scene.widgets.find("bar") != nil)
    try stage.advance(by: 200_000_000)
    #expect(stage.window.scene.widgets.find("bar") == nil)
    _ = try post(.moved(Point(x: 320, y: 20)), .pointerLeft, to: stage)
    #expect(stage.window.scene.widgets.find("bar") == nil)
  }

  @Test func `The keyboard alone reaches every button`() throws {
    let stage = try WindowStage([painted()])
    #expect(try post(.key("tab"), .key("return"), to: stage) == [.key("tab"), .key("return")])
    stage.window.buttons = Self.buttons
    try stage.refresh()
    for button in Self.buttons {
      #expect(try post(.key("tab"), to: stage).isEmpty)
      let focused = try #require(stage.window.scene.widgets.find(button.key))
      // A frame around the button shows the focus.
      let frame = try stage.window.pixels().color(focused.area.x - 2, Int(focused.area.middle.y))
      #expect(frame == [0xF2, 0xC9, 0x4C])
      #expect(try post(.key("return"), to: stage) == [.key(button.key)])
    }
    #expect(try post(.key("shift+tab"), .key("return"), to: stage) == [.key(",")])
    // The bar stays while it has the focus. Other keys are reported as before.
    try stage.advance(by: 60_000_000_000)
    #expect(stage.window.scene.widgets.find("bar") != nil)
    #expect(try post(.key("space"), .key("escape"), to: stage) == [.key("space")])
    #expect(stage.window.scene.widgets.find("bar") == nil)
    #expect(try post(.key("return"), to: stage) == [.key("return")])
  }

  @Test func `A click on the image reports its key and a drag does not`() throws {
    let stage = try WindowStage([painted()])
    let middle = stage.window.scene.layout.panes[0].middle
    let click = [WindowEvent.pressed(.left, middle), .released(.left)]
    #expect(try post(click[0], click[1], to: stage).isEmpty)
    (stage.window.clickKey, stage.window.doubleClickKey) = ("space", "f")
    #expect(try post(click[0], click[1], to: stage) == [.key("space")])
    #expect(
      try post(click[0], click[1], .doubleClicked(middle), to: stage) == [.key("space"), .key("f")])
    stage.window.zoom(by: 2)
    let before = stage.window.scene.panes[0].viewport.center.x
    #expect(
      try post(click[0], .moved(Point(x: middle.x - 64, y: middle.y)), click[1], to: stage)
        .isEmpty)
    // Ten window pixels show one pixel of the movie, which is 128 pixels wide.
    #expect(abs(stage.window.scene.panes[0].viewport.center.x - before - 6.4 / 128) < 1e-9)
  }

  @Test func `The window measures with the pointer and reads its pixel`() throws {
    let stage = try WindowStage([painted()])
    stage.window.isMeasuring = true
    (stage.window.clickKey, stage.window.doubleClickKey) = ("space", "f")
    let pane = stage.window.scene.layout.panes[0]
    // Five window pixels show one pixel of the movie.
    let top = Double(pane.y) + (Double(pane.height) - 160) / 2
    func point(_ x: Double, _ y: Double) -> Point { Point(x: x * 5, y: top + y * 5) }
    let input = try post(
      .pressed(.left, point(10, 20)), .moved(point(50, 20)), to: stage)
    #expect(input.isEmpty)
    #expect(stage.window.draftShape?.kind == .distance)
    #expect(stage.window.scene.status.hasPrefix("pixel 50,20 · frame 0/240 · "))
    #expect(try post(.released(.left), .doubleClicked(point(50, 20)), to: stage).isEmpty)
    let shapes = stage.window.takeShapes()
    let ends = try #require(shapes.first?.points)
    #expect(shapes.count == 1 && stage.window.takeShapes().isEmpty)
    #expect(abs(ends[0].x - 10) < 0.2 && abs(ends[1].x - 50) < 0.2 && abs(ends[1].y - 20) < 0.2)
    stage.window.shapes = shapes
    try stage.refresh()
    let pixels = try stage.window.pixels()
    let middle = point(30, 20)
    let bright = (Int(middle.y) - 4...Int(middle.y) + 4).contains {
      pixels.color(Int(middle.x), $0) == [0x56, 0xCC, 0xF2]
    }
    #expect(bright)
    // The buttons do not cover the image, but appear from the time line.
    stage.window.buttons = Self.buttons
    _ = try post(.moved(point(10, 20)), to: stage)
    #expect(stage.window.scene.widgets.find("bar") == nil)
    _ = try post(.moved(stage.window.scene.layout.status.middle), to: stage)
    #expect(stage.window.scene.widgets.find("bar") != nil)
    // Without measuring, the same press is a click again.
    stage.window.isMeasuring = false
    #expect(
      try post(.pressed(.left, point(10, 20)), .released(.left), to: stage) == [.key("space")])
  }

  @Test func `A click or escape ends the help`() throws {
    let stage = try WindowStage([painted()])
    stage.window.keyHelp = [KeyDescription("space", "pause"), KeyDescription(". ,", "step")]
    for event in [WindowEvent.key("escape"), .pressed(.left, Point(x: 5, y: 5))] {
      stage.window.showsHelp = true
      try stage.refresh()
      let help = try #require(stage.window.scene.widgets.find("help"))
      #expect(help.find(". ,")?.text == "step")
      #expect(try post(.key("r"), to: stage) == [.key("r")])
      #expect(try post(event, .released(.left), to: stage).isEmpty)
      #expect(stage.window.scene.widgets.find("help") == nil)
    }
  }

  @Test func `A window without a clip reports a dropped file`() throws {
    SDL_SetHint(SDL_HINT_VIDEODRIVER, "dummy")
    let lines = [KeyDescription("drop a file", "to play it")]
    let window = try FileDropWindow(title: "empty", lines: lines)
    _ = window.takeInput()
    #expect(window.widgets?.find("drop a file")?.text == "to play it")
    var event = SDL_Event()
    event.type = SDL_DROPFILE.rawValue
    event.drop.file = SDL_strdup("/clips/take 1.mov")
    SDL_PushEvent(&event)
    window.post(.key("x"))
    #expect(window.takeInput() == [.key("x"), .dropped("/clips/take 1.mov")])
  }

  @Test func `A resized window draws at its new size`() throws {
    let stage = try WindowStage([painted()])
    stage.window.zoom(by: 4)
    for (width, height) in [(320, 120), (900, 600), (200, 200)] {
      stage.window.resize(width: width, height: height)
      try stage.refresh()
      let pixels = try stage.window.pixels()
      #expect(pixels.width == width && pixels.height == height)
    }
  }

  @Test func `The window can be saved as PNG`() throws {
    let stage = try WindowStage([painted()])
    let data = try stage.window.pngData()
    #expect(data.starts(with: [0x89, 0x50, 0x4E, 0x47]))
    let pixels = try stage.window.pixels()
    let decoded = try data.withUnsafeBytes { bytes in
      try DecodedImage(
        decoding: bytes, codec: "png", width: 640, height: 258, bytesPerPixel: 3)
    }
    #expect(
      Array(decoded.bytes[(258 * 640 - 1) * 3..<258 * 640 * 3]).map(Int.init)
        == pixels.color(639, 257))
  }
}
