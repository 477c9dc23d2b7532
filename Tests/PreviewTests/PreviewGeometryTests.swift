// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankPreview
import OvercrankRaster
import TestSupport
import Testing

/// The position of a preview image in its view.
struct PreviewGeometryTests {
  /// The corners of the view at which the upper corners of the captured frame are shown, written by
  /// hand.
  private static let corners:
    [(angle: Int, isMirrored: Bool, upperLeft: String, upperRight: String)] = [
      (0, false, "TL", "TR"), (90, false, "TR", "BR"), (180, false, "BR", "BL"),
      (270, false, "BL", "TL"), (0, true, "TR", "TL"), (90, true, "TL", "BL"),
      (180, true, "BL", "BR"), (270, true, "BR", "TR"),
    ]
  /// The rectangles of a 640x480 image in a view of 1000x600, computed by hand.
  private static let rects: [(gravity: PreviewGravity, upright: Rect, rotated: Rect)] =
    [
      (
        .resizeAspect, Rect(x: 100, y: 0, width: 800, height: 600),
        Rect(x: 275, y: 0, width: 450, height: 600)
      ),
      (
        .resizeAspectFill, Rect(x: 0, y: -75, width: 1_000, height: 750),
        Rect(x: 0, y: -1_100.0 / 3, width: 1_000, height: 4_000.0 / 3)
      ),
      (
        .resize, Rect(x: 0, y: 0, width: 1_000, height: 600),
        Rect(x: 0, y: 0, width: 1_000, height: 600)
      ),
    ]

  private func geometry(
    _ gravity: PreviewGravity, _ angle: Int, _ isMirrored: Bool, zoom: Double = 1
  ) -> PreviewGeometry {
    PreviewGeometry(
      imageWidth: 640, imageHeight: 480, viewWidth: 1_000, viewHeight: 600, gravity: gravity,
      rotationAngle: angle, isMirrored: isMirrored, zoomFactor: zoom)
  }

  private func isNear(_ left: Rect, _ right: Rect) -> Bool {
    let pairs = [
      (left.x, right.x), (left.y, right.y), (left.width, right.width), (left.height, right.height),
    ]
    return pairs.allSatisfy { abs($0 - $1) < 1e-9 }
  }

  @Test func `Preview corners are exact for every video gravity and angle`() {
    for row in Self.rects {
      for corner in Self.corners {
        let geometry = geometry(row.gravity, corner.angle, corner.isMirrored)
        let rect = corner.angle % 180 == 0 ? row.upright : row.rotated
        #expect(isNear(geometry.imageRect, rect), "\(row.gravity) \(corner.angle)")
        func viewCorner(_ name: String) -> Point {
          Point(
            x: name.hasSuffix("L") ? rect.x : rect.x + rect.width,
            y: name.hasPrefix("T") ? rect.y : rect.y + rect.height)
        }
        for (x, name) in [(0.0, corner.upperLeft), (1.0, corner.upperRight)] {
          let found = geometry.viewPoint(fromDevicePoint: Point(x: x, y: 0))
          let wanted = viewCorner(name)
          #expect(abs(found.x - wanted.x) < 1e-9 && abs(found.y - wanted.y) < 1e-9, "\(corner)")
        }
        let whole = Rect(x: 0, y: 0, width: 1, height: 1)
        #expect(isNear(geometry.viewRect(fromDeviceRect: whole), rect))
      }
    }
  }

  @Test func `Converting a point to the view and back returns the point`() throws {
    var random = SeededGenerator(seed: 25)
    for _ in 0..<2_000 {
      let corner = try #require(Self.corners.randomElement(using: &random))
      let gravity = try #require(PreviewGravity.allCases.randomElement(using: &random))
      let geometry = PreviewGeometry(
        imageWidth: .random(in: 1...4_096, using: &random),
        imageHeight: .random(in: 1...4_096, using: &random),
        viewWidth: .random(in: 1...5_000, using: &random),
        viewHeight: .random(in: 1...5_000, using: &random), gravity: gravity,
        rotationAngle: corner.angle, isMirrored: corner.isMirrored,
        zoomFactor: .random(in: 1...16, using: &random))
      let point = Point(
        x: .random(in: 0...1, using: &random), y: .random(in: 0...1, using: &random))
      let back = try #require(
        geometry.devicePoint(fromViewPoint: geometry.viewPoint(fromDevicePoint: point)))
      #expect(abs(back.x - point.x) < 1e-9 && abs(back.y - point.y) < 1e-9, "\(geometry)")
      let rect = Rect(
        x: point.x / 2, y: point.y / 2, width: .random(in: 0...0.5, using: &random),
        height: .random(in: 0...0.5, using: &random))
      let whole = try #require(
        geometry.deviceRect(fromViewRect: geometry.viewRect(fromDeviceRect: rect)))
      #expect(isNear(whole, rect), "\(geometry)")
    }
  }

  @Test func `A zoomed preview image stays centered in its view`() {
    let zoomed = geometry(.resizeAspect, 90, false, zoom: 4)
    let middle = zoomed.viewPoint(fromDevicePoint: .center)
    #expect(abs(middle.x - 500) < 1e-9 && abs(middle.y - 300) < 1e-9)
    // A quarter of the frame fills the image, and the upper left corner of that part is at 3/8.
    let corner = zoomed.viewPoint(fromDevicePoint: Point(x: 0.375, y: 0.375))
    #expect(abs(corner.x - 725) < 1e-9 && abs(corner.y) < 1e-9)
    let flat = PreviewGeometry(imageWidth: 64, imageHeight: 48, viewWidth: 0, viewHeight: 100)
    #expect(flat.devicePoint(fromViewPoint: Point(x: 0, y: 50)) == nil)
    #expect(flat.deviceRect(fromViewRect: Rect(x: 0, y: 0, width: 1, height: 1)) == nil)
    #expect(
      PreviewGeometry(
        imageWidth: 4, imageHeight: 3, viewWidth: 4, viewHeight: 3,
        rotationAngle: -90
      ).rotationAngle == 270)
  }
}
