// SPDX-License-Identifier: Apache-2.0

import CSDL2
import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankDisplay
@testable import OvercrankPlayback

/// Zoomed images in all renderers of SDL, without a screen.
struct RendererTests {
  /// SDL has one video driver per process, so this test has a process of its own.
  @Test func `Every renderer shows the right pixels at every zoom`() async throws {
    await #expect(processExitsWith: .success) {
      let scratch = try Scratch()
      let path = scratch.file("detail.mov")
      let made = try await run(
        "ffmpeg",
        [
          "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=24:duration=0.1",
          "-vf", "scale=out_color_matrix=bt709:out_range=tv", "-pix_fmt", "yuv420p",
          "-c:v", "libx264", "-crf", "1", "-colorspace", "bt709", "-color_range", "tv", path,
        ])
      try #require(made.status == 0, "\(made.errors)")
      let asset = try Asset(path: path)
      let software = try ZoomedWindow(asset, renderer: "software")
      for renderer in ["software", "opengl", "opengles2"] {
        guard let window = try? ZoomedWindow(asset, renderer: renderer) else {
          print("skipped: SDL has no renderer \(renderer) without a screen")
          continue
        }
        var random = SeededGenerator(seed: 67)
        // The zooms are from 0.1 to 32, each at another point of the image.
        let count = RunSize.cases(14, full: 50)
        for index in 0..<count {
          let scale = 0.1 * pow(320, Double(index) / Double(count - 1))
          let center = Point(
            x: Double.random(in: 0...1, using: &random), y: Double.random(in: 0...1, using: &random)
          )
          try window.look(at: center, scale: scale)
          let shown = window.stage.window.scene
          if shown.panes[0].viewport.showsPixels(
            of: window.size, in: shown.layout.panes[0])
          {
            let wrong = try window.wrongPixels()
            try #require(wrong.isEmpty, "\(renderer), scale \(scale): \(wrong.prefix(3))")
          } else {
            try software.look(at: center, scale: scale)
            let difference = try window.meanDifference(from: software)
            try #require(difference <= 2, "\(renderer), scale \(scale): \(difference)")
          }
        }
      }
    }
  }

  @Test func `A clip with another color matrix gets its own colors`() async throws {
    await #expect(processExitsWith: .success) {
      for renderer in ["software", "opengl", "opengles2"] {
        SDL_SetHint(SDL_HINT_VIDEODRIVER, "offscreen")
        SDL_SetHint(SDL_HINT_RENDER_DRIVER, renderer)
        guard let window = try? SDLWindow(title: "", size: VideoSize(width: 64, height: 64))
        else { continue }
        let image = try MediaFrame.video(width: 64, height: 64, pixelFormat: .yuv420p)
        for (plane, value) in [(0, 100), (1, 90), (2, 180)] as [(Int, UInt8)] {
          let rows = plane == 0 ? 64 : 32
          image.planeData(plane)?.update(
            repeating: value, count: image.bytesPerRow(plane) * rows)
        }
        // The red of this color is 181 with the matrix of BT.601, and 191 with that of BT.709.
        for (conversion, red) in [(TextureFormat.Conversion.bt601, 181), (.bt709, 191)] {
          try window.upload(image, as: .planar(conversion), to: .frame(pane: 0))
          let area = PixelRect(x: 0, y: 0, width: 64, height: 64)
          window.draw([
            .image(.frame(pane: 0), source: area, destination: area, rotation: 0, isSmooth: false)
          ])
          let shown = try window.pixels().color(32, 32)[0]
          window.present()
          try #require(abs(shown - red) <= 2, "\(renderer): \(shown) for \(red)")
        }
      }
    }
  }
}

/// A window of one renderer that shows the first frame of a clip at a chosen point and scale.
private final class ZoomedWindow {
  let stage: WindowStage
  let size: VideoSize
  private let image: MediaFrame

  /// Throws if SDL does not offer the renderer.
  init(_ asset: Asset, renderer: String) throws {
    SDL_SetHint(SDL_HINT_RENDER_DRIVER, renderer)
    // The driver's surface keeps the size of the new window, so only smaller windows are complete.
    stage = try WindowStage([asset], width: 640, height: 480, videoDriver: "offscreen")
    image = try #require(stage.player.frame(at: stage.clock.now)).image
    size = VideoSize(width: image.width, height: image.height)
    // If a renderer fails, SDL takes another one. Windows are numbered from 1.
    var info = SDL_RendererInfo()
    let last = (1...16).last { SDL_GetWindowFromID($0) != nil }
    SDL_GetRendererInfo(SDL_GetRenderer(SDL_GetWindowFromID(last ?? 1)), &info)
    try #require(String(cString: info.name) == renderer)
  }

  /// Shows a part of the image; `center` is in fractions of the image.
  ///
  /// A scale below 1 is reached by a smaller window, and a larger one by zooming in.
  func look(at center: Point, scale: Double) throws {
    let width = scale < 1 ? max(64, Int(640 * scale)) : 480
    stage.window.resetZoom()
    // The panel below the image has less than 66 pixels.
    stage.window.resize(width: width, height: max(140, width * 9 / 16 + 66))
    try stage.refresh()
    guard scale >= 1 else { return }
    let pane = stage.window.scene.layout.panes[0]
    let fit = stage.window.scene.panes[0].viewport.scale(of: size, in: pane)
    stage.window.zoom(by: scale / fit)
    let range = scale * 640 / Double(width)
    stage.window.pan(x: (0.5 - center.x) * range, y: (0.5 - center.y) * range)
    try stage.refresh()
  }

  /// The color of a pixel of the clip, by the equations of BT.709 with limited range.
  private func source(_ x: Int, _ y: Int) -> [Int] {
    guard x >= 0, y >= 0, x < size.width, y < size.height, let luma = image.planeData(0),
      let blue = image.planeData(1), let red = image.planeData(2)
    else { return [] }
    let light = 1.1644 * (Double(luma[y * image.bytesPerRow(0) + x]) - 16)
    let cb = Double(blue[y / 2 * image.bytesPerRow(1) + x / 2]) - 128
    let cr = Double(red[y / 2 * image.bytesPerRow(2) + x / 2]) - 128
    return [light + 1.7927 * cr, light - 0.2132 * cb - 0.5329 * cr, light + 2.1124 * cb]
      .map { Int(min(max($0.rounded(), 0), 255)) }
  }

  /// Returns the points of the window whose color is not that of the clip's pixel there.
  ///
  /// At a point between two pixels of the clip, both are right.
  func wrongPixels() throws -> [String] {
    let scene = stage.window.scene
    let pane = scene.layout.panes[0]
    let pixels = try stage.window.pixels()
    var wrong: [String] = []
    for y in stride(from: pane.y, to: pane.bottom, by: 7) {
      for x in stride(from: pane.x, to: pane.right, by: 7) {
        /// The column and row of the clip at a distance from the point.
        func index(_ distance: Double) -> (x: Int, y: Int) {
          let point = scene.panes[0].viewport.imagePoint(
            at: Point(x: Double(x) + 0.5 + distance, y: Double(y) + 0.5 + distance), of: size,
            in: pane)
          return (Int(point.x.rounded(.down)), Int(point.y.rounded(.down)))
        }
        let (first, last) = (index(-1), index(1))
        let shown = pixels.color(x, y)
        let candidates = (first.y...last.y).flatMap { row in
          (first.x...last.x).map { source($0, row) }
        }
        // Black bars show no pixel of the clip.
        if candidates.contains([]) { continue }
        let isRight = candidates.contains { zip($0, shown).allSatisfy { abs($0 - $1) <= 6 } }
        if !isRight { wrong.append("\(x),\(y): \(shown), not \(candidates)") }
      }
    }
    return wrong
  }

  /// Returns the mean difference of the image from that in another window, in levels.
  func meanDifference(from other: ZoomedWindow) throws -> Double {
    let pane = stage.window.scene.layout.panes[0]
    let (mine, theirs) = (try stage.window.pixels(), try other.stage.window.pixels())
    var (sum, count) = (0, 0)
    for y in pane.y..<pane.bottom {
      for x in stride(from: pane.x, to: pane.right, by: 3) {
        sum += zip(mine.color(x, y), theirs.color(x, y)).reduce(0) { $0 + abs($1.0 - $1.1) }
        count += 3
      }
    }
    return Double(sum) / Double(max(1, count))
  }
}
