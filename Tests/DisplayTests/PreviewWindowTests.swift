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
      #expect(try color(window.pixels(), Point(x: 20, y: 20)) == [0x0B, 0x0C, 0x0E])
      #expect(try window.pngData().starts(with: [0x89, 0x50]))
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
