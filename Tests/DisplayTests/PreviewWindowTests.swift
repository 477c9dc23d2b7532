// SPDX-License-Identifier: Apache-2.0

import CSDL2
import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankPreview
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankDisplay

extension PlayerWindowTests {
  /// The pixels of a preview's window.
  struct PreviewWindowTests {
    /// A BGRA image whose pixels depend on their position.
    private func image(width: Int, height: Int) throws -> PixelBuffer {
      let pool = try PixelBufferPool(format: .bgra, width: width, height: height)
      var image = try pool.makePixelBuffer()
      image.withUnsafeMutableBytes(ofPlane: 0) { bytes in
        for y in 0..<height {
          for x in 0..<width {
            let offset = (y * width + x) * 4
            bytes[offset] = UInt8(x * 255 / width)
            bytes[offset + 1] = UInt8(y * 255 / height)
            bytes[offset + 2] = 64
            bytes[offset + 3] = 255
          }
        }
      }
      return image
    }

    private func window(_ width: Int, _ height: Int) throws -> PreviewWindow {
      SDL_SetHint(SDL_HINT_VIDEODRIVER, "dummy")
      return try PreviewWindow(title: "preview", width: width, height: height)
    }

    private func color(_ pixels: MediaFrame, _ point: Point) throws -> [UInt8] {
      let data = try #require(pixels.planeData(0))
      let offset = Int(point.y) * pixels.bytesPerRow(0) + Int(point.x) * 3
      return (0..<3).map { data[offset + $0] }
    }

    @Test(arguments: ["rec 0.5 s", "走り幅跳び مرحبا"])
    func `The status text of a preview covers its pixels`(status: String) throws {
      let window = try window(640, 480)
      var content = PreviewWindowContent()
      content.status = status
      try window.present(image(width: 640, height: 480), content)
      let pixels = try window.pixels()
      let mask = InstalledFont.standard.mask(of: status, scale: 2)
      // The text is 6 pixels from the lower left corner.
      var (covered, bright) = (0, 0)
      mask.forEachPixel(x: 6, y: 480 - 6 - 14) { x, y, coverage in
        guard coverage == 255, y < 480,
          let color = try? color(pixels, Point(x: Double(x), y: Double(y)))
        else { return }
        covered += 1
        bright += color.allSatisfy { $0 > 200 } ? 1 : 0
      }
      #expect(covered > 20 && bright == covered)
    }

    @Test(arguments: PreviewGravity.allCases)
    func `Each point in a preview shows the image pixel it maps to`(
      gravity: PreviewGravity
    ) throws {
      let window = try window(640, 480)
      window.resize(width: 800, height: 500)
      let image = try image(width: 640, height: 480)
      let geometry = PreviewGeometry(
        imageWidth: 640, imageHeight: 480, viewWidth: window.width, viewHeight: window.height,
        gravity: gravity)
      var content = PreviewWindowContent()
      content.imageRect = geometry.imageRect
      try window.present(image, content)
      let pixels = try window.pixels()
      for point in [Point(x: 0.25, y: 0.2), .center, Point(x: 0.8, y: 0.4)] {
        let shown = try color(pixels, geometry.viewPoint(fromDevicePoint: point))
        let wanted = [64, UInt8(point.y * 255), UInt8(point.x * 255)]
        for (one, other) in zip(shown, wanted) {
          #expect(abs(Int(one) - Int(other)) <= 2, "\(gravity) \(point): \(shown) \(wanted)")
        }
      }
    }

    @Test func `The preview window draws its meters and overlays`() throws {
      let window = try window(640, 480)
      var content = PreviewWindowContent()
      content.imageRect = Rect(x: 0, y: 0, width: 640, height: 480)
      try window.present(try image(width: 640, height: 480), content)
      let bare = try window.pixels()
      content.status = "240.0 fps  lost 0"
      var meter = LevelMeterDisplay()
      meter.update(peakDBFS: -30, at: .zero)
      content.meters = [meter]
      content.focusPoint = Point(x: 320, y: 200)
      content.histogram = LumaHistogram(try image(width: 640, height: 480))
      try window.present(nil, content)
      let full = try window.pixels()
      // Checks the left half of the level meter, the histogram, and the upper side of the focus
      // square.
      let (level, side) = (Point(x: 100, y: 453), Point(x: 320, y: 177))
      #expect(try color(full, level) == [0x2F, 0x6F, 0xB0])
      #expect(try color(full, Point(x: 500, y: 453)) == [0x1A, 0x1D, 0x21])
      #expect(
        try color(full, side) == [0xF2, 0xC9, 0x4C] && color(bare, side) != color(full, side))
      #expect(window.width == 640 && window.height == 480)
      content.isBlinking = true
      try window.present(nil, content)
      #expect(try color(window.pixels(), Point(x: 40, y: 300)) == [0x0B, 0x0C, 0x0E])
      #expect(try window.pngData().starts(with: [0x89, 0x50]))
    }

    private func window(_ clock: VirtualClock) throws -> PreviewWindow {
      SDL_SetHint(SDL_HINT_VIDEODRIVER, "dummy")
      let window = try PreviewWindow(title: "preview", width: 640, height: 480, clock: clock)
      _ = window.takeInput()
      return window
    }

    @Test func `Buttons of the preview report their keys and hide`() throws {
      let clock = VirtualClock()
      let window = try window(clock)
      var content = PreviewWindowContent()
      content.imageRect = Rect(x: 0, y: 0, width: 640, height: 480)
      content.buttons = [
        ViewButton("t", "torch", "switch the torch: t", isOn: false),
        ViewButton("q", "quit", "quit: q"),
      ]
      try window.present(try image(width: 640, height: 480), content)
      #expect(window.widgets.find("bar") == nil)
      window.post(.moved(Point(x: 10, y: 10)))
      #expect(window.takeInput() == [])
      try window.present(nil, content)
      let button = try #require(window.widgets.find("t")).area.middle
      window.post(.moved(button))
      window.post(.pressed(.left, button))
      window.post(.released(.left))
      window.post(.wheel(2, Point(x: 10, y: 10)))
      window.post(.pointerLeft)
      #expect(window.takeInput() == [.key("t"), .wheel(2)])
      try window.present(nil, content)
      #expect(window.widgets.find("bar") == nil)
      // The keyboard presses the same button.
      for key in ["tab", "tab", "return"] { window.post(.key(key)) }
      #expect(window.takeInput() == [.key("q")])
      // The table of keys covers the buttons.
      content.keyHelp = [KeyDescription("q", "quit")]
      try window.present(nil, content)
      window.post(.pressed(.left, button))
      #expect(window.takeInput() == [.pressed(button)])
      let count = window.presentCount
      for _ in 0..<10 { try window.present(nil, content) }
      #expect(window.presentCount == count)
    }

    @Test func `Controls stay visible and report to the program`() throws {
      let window = try window(VirtualClock())
      var content = PreviewWindowContent()
      content.controls = [
        ViewControl("record", "Record", .toggle(isOn: false)),
        ViewControl("zoom", "Zoom", .slider(value: 0.25)),
        ViewControl("in", "+", .hold),
        ViewControl("camera", "Camera", .list(["front", "back"], selected: 0)),
      ]
      try window.present(try image(width: 640, height: 480), content)
      func input(_ step: ViewStep) -> [PreviewWindow.Input]? {
        window.perform(step) ? window.takeInput() : nil
      }
      #expect(input(.click(.control("Record"))) == [.control("record", .pressed)])
      #expect(
        input(.click(.control("camera 1"))) == [.control("camera", .selected(1))])
      #expect(input(.hold(.control("in"))) == [.control("in", .held)])
      #expect(input(.release) == [.control("in", .released)])
      let track = try #require(window.widgets.find("zoom")).track
      window.post(.pressed(.left, track.middle))
      window.post(.released(.left))
      window.post(.pointerLeft)
      #expect(window.takeInput() == [.control("zoom", .changed(0.5))])
      // The value shows as the position of the knob.
      let knob = Point(x: Double(track.x + track.width / 4), y: track.middle.y)
      #expect(try color(window.pixels(), knob).allSatisfy { $0 > 200 })
    }

    @Test(arguments: [0, 128, 255] as [UInt8])
    func `An outline is visible on an image of any brightness`(gray: UInt8) throws {
      let window = try window(VirtualClock())
      let pool = try PixelBufferPool(format: .bgra, width: 64, height: 48)
      var image = try pool.makePixelBuffer()
      image.withUnsafeMutableBytes(ofPlane: 0) { bytes in
        for offset in bytes.indices { bytes[offset] = offset % 4 == 3 ? 255 : gray }
      }
      var content = PreviewWindowContent()
      content.imageRect = Rect(x: 0, y: 0, width: 640, height: 480)
      let corners = [(100.0, 100.0), (300, 100), (300, 250), (100, 250)]
      content.overlays = [
        ViewOverlay(
          corners.map { Point(x: $0.0, y: $0.1) }, isClosed: true, label: "face 3")
      ]
      content.gauge = ViewGauge(part: 0.5, label: "pre-roll")
      try window.present(image, content)
      let pixels = try window.pixels()
      // The line through the left side has a dark and a bright pixel, apart in luma by half of the
      // range.
      for x in [100, 300] {
        let row = try (x - 4...x + 4).map { column in
          try color(pixels, Point(x: Double(column), y: 180)).map(Int.init).reduce(0, +) / 3
        }
        #expect((row.max() ?? 0) - (row.min() ?? 0) >= 100, "\(row)")
      }
      #expect(try color(pixels, Point(x: 200, y: 180)) == [gray, gray, gray])
      // The right half of the ring is filled.
      let (right, left) = (Point(x: 616, y: 38), Point(x: 588, y: 38))
      #expect(try color(pixels, right).allSatisfy { $0 > 200 })
      #expect(try color(pixels, left).allSatisfy { $0 < 120 })
    }

    @Test func `The preview window reports keys and clicks and closing`() throws {
      let window = try window(640, 480)
      window.post(.key("p"))
      window.post(.pressed(.left, Point(x: 10, y: 20)))
      window.post(.pressed(.right, Point(x: 10, y: 20)))
      let input = window.takeInput()?.filter { $0 != .key("") }
      #expect(input == [.key("p"), .pressed(Point(x: 10, y: 20))])
      window.post(.closed)
      #expect(window.takeInput() == nil)
      let gray = PixelBuffer(format: .gray)
      #expect(throws: MediaError.self) { try window.present(gray, PreviewWindowContent()) }
    }
  }
}
