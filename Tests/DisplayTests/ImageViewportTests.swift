// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster
import Testing

@testable import OvercrankDisplay

/// The part of an image that a pane shows, compared with tables made by hand.
struct ImageViewportTests {
  /// An image, a pane, and the rectangle in the window that the whole image fills.
  struct Fit: Sendable {
    let image: VideoSize
    let pane: PixelRect
    let destination: PixelRect
  }

  static let fits = [
    // The pane has the aspect ratio of the image. One image pixel fills one window pixel, two, or a
    // half.
    Fit(
      image: VideoSize(width: 640, height: 480),
      pane: PixelRect(x: 0, y: 0, width: 640, height: 480),
      destination: PixelRect(x: 0, y: 0, width: 640, height: 480)),
    Fit(
      image: VideoSize(width: 640, height: 480),
      pane: PixelRect(x: 0, y: 0, width: 1_280, height: 960),
      destination: PixelRect(x: 0, y: 0, width: 1_280, height: 960)),
    Fit(
      image: VideoSize(width: 1_280, height: 960),
      pane: PixelRect(x: 0, y: 0, width: 640, height: 480),
      destination: PixelRect(x: 0, y: 0, width: 640, height: 480)),
    // Black bars are at the sides, or above and below. One pane is not at the origin.
    Fit(
      image: VideoSize(width: 480, height: 480),
      pane: PixelRect(x: 0, y: 0, width: 640, height: 480),
      destination: PixelRect(x: 80, y: 0, width: 480, height: 480)),
    Fit(
      image: VideoSize(width: 640, height: 320),
      pane: PixelRect(x: 644, y: 10, width: 640, height: 480),
      destination: PixelRect(x: 644, y: 90, width: 640, height: 320)),
    // Video in portrait format.
    Fit(
      image: VideoSize(width: 720, height: 1_280),
      pane: PixelRect(x: 0, y: 0, width: 1_000, height: 640),
      destination: PixelRect(x: 320, y: 0, width: 360, height: 640)),
  ]

  @Test(arguments: fits.indices) func `An image fits its pane and keeps its aspect ratio`(
    _ index: Int
  ) {
    let fit = Self.fits[index]
    let parts = ImageViewport().parts(of: fit.image, in: fit.pane)
    let whole = PixelRect(x: 0, y: 0, width: fit.image.width, height: fit.image.height)
    #expect(
      parts == [ImageViewport.Part(source: whole, destination: fit.destination)])
  }

  private let image = VideoSize(width: 128, height: 32)
  private let pane = PixelRect(x: 0, y: 0, width: 640, height: 360)

  @Test func `A zoomed image shows pixels as squares of equal size`() {
    var viewport = ImageViewport()
    #expect(!viewport.showsPixels(of: image, in: pane))
    viewport.zoom(by: 2, around: pane.middle, of: image, in: pane)
    // The zoom doubles the scale from five to ten window pixels per image pixel, so 64 of 128
    // columns fit.
    #expect(viewport.scale(of: image, in: pane) == 10)
    #expect(viewport.showsPixels(of: image, in: pane))
    #expect(
      viewport.parts(of: image, in: pane) == [
        ImageViewport.Part(
          source: PixelRect(x: 32, y: 0, width: 64, height: 32),
          destination: PixelRect(x: 0, y: 20, width: 640, height: 320))
      ])
    // After a move by three window pixels, the columns at the edges are cut and the others keep
    // their size.
    viewport.pan(x: 3, y: 0, of: image, in: pane)
    let columns = viewport.parts(of: image, in: pane)
    #expect(columns.map(\.source.x) == [31, 32, 95])
    #expect(columns.map(\.source.width) == [1, 63, 1])
    #expect(columns.map(\.destination.x) == [0, 3, 633])
    #expect(columns.map(\.destination.width) == [3, 630, 7])
  }

  @Test func `Zooming keeps the image point under the pointer`() {
    let point = Point(x: 101, y: 150)
    var viewport = ImageViewport()
    for factor in [2.0, 2, 1.5, 0.5, 3] {
      let before = viewport.imagePoint(at: point, of: image, in: pane)
      viewport.zoom(by: factor, around: point, of: image, in: pane)
      let after = viewport.imagePoint(at: point, of: image, in: pane)
      // The image is placed at whole window pixels.
      let tolerance = 1 / viewport.scale(of: image, in: pane)
      #expect(abs(before.x - after.x) <= tolerance)
    }
  }

  @Test func `Zooming stops at 64x and panning at the image edge`() {
    var viewport = ImageViewport()
    viewport.zoom(by: 0.25, around: pane.middle, of: image, in: pane)
    #expect(viewport == ImageViewport())
    viewport.zoom(by: 1_000_000, around: pane.middle, of: image, in: pane)
    #expect(viewport.scale(of: image, in: pane) == 64)
    viewport.pan(x: 1e9, y: 1e9, of: image, in: pane)
    let corner = viewport.parts(of: image, in: pane)
    #expect(corner.first?.source.x == 0 && corner.first?.source.y == 0)
    #expect(corner.first?.destination.x == 0 && corner.first?.destination.y == 0)
  }

  @Test func `A rectangle of a rotated image maps back to the stored image`() {
    // A stored image of 4 by 2 is 2 by 4 on screen when rotated by 90 degrees. Its first column on
    // screen is its last row.
    let stored = VideoSize(width: 4, height: 2)
    let column = PixelRect(x: 0, y: 0, width: 1, height: 4)
    #expect(
      column.unrotated(by: 90, in: stored) == PixelRect(x: 0, y: 1, width: 4, height: 1))
    #expect(
      column.unrotated(by: 270, in: stored) == PixelRect(x: 0, y: 0, width: 4, height: 1))
    let corner = PixelRect(x: 0, y: 0, width: 1, height: 1)
    #expect(
      corner.unrotated(by: 180, in: stored) == PixelRect(x: 3, y: 1, width: 1, height: 1))
    #expect(corner.unrotated(by: 0, in: stored) == corner)
    // The corners on screen, clockwise from the upper left.
    let corners = [(0, 0), (1, 0), (1, 3), (0, 3)].map {
      PixelRect(x: $0.0, y: $0.1, width: 1, height: 1).unrotated(by: 90, in: stored)
    }
    #expect(corners.map(\.x) == [0, 0, 3, 3])
    #expect(corners.map(\.y) == [1, 0, 0, 1])
  }
}
