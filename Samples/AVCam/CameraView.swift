// SPDX-License-Identifier: Apache-2.0

import Glibc
import Overcrank
import OvercrankDisplay

/// The window of the camera.
final class CameraView {
  private let app: CameraApp
  private var script: Script?
  private let window: PreviewWindow
  private var content = PreviewWindowContent()
  private var geometry: PreviewGeometry?
  private var shownCount = 0
  /// The frame numbers up to which a focus mark and a blink are shown.
  private var (markEnd, blinkEnd) = (0, 0)

  init(_ app: CameraApp, _ script: Script?) throws {
    (self.app, self.script) = (app, script)
    window = try PreviewWindow(title: "AVCam", width: 640, height: 480)
  }

  /// Shows the camera until the window is closed or the script ends.
  func run() throws {
    while let inputs = window.takeInput() {
      for input in inputs {
        switch input {
        case .key("q"), .key("escape"): return app.close()
        case .key(let key): try press(key)
        case .pressed(let point): click(point)
        case .wheel, .control: break
        }
      }
      app.update()
      try show()
      switch script?.next(app, shownCount: shownCount) {
      case .key(let key): try press(key)
      case .click(let x, let y): click(Point(x: x * window.width, y: y * window.height))
      case .image(let path): try Script.write(window.pngData(), to: path)
      case .end: return app.close()
      case nil: usleep(1_000)
      }
    }
    app.close()
  }

  private func press(_ key: String) throws {
    if key == "space", !app.isMovieMode { blinkEnd = shownCount + 8 }
    try app.press(key)
  }

  private func click(_ point: Point) {
    guard let target = geometry?.devicePoint(fromViewPoint: point) else { return }
    app.focus(at: target)
    content.focusPoint = point
    markEnd = shownCount + 60
  }

  private func show() throws {
    geometry = app.preview.geometry(viewWidth: window.width, viewHeight: window.height)
    content.imageRect = geometry?.imageRect ?? content.imageRect
    let frame = try wholeFrame()
    if frame != nil { shownCount += 1 }
    content.isBlinking = shownCount < blinkEnd
    if shownCount >= markEnd { content.focusPoint = nil }
    content.status = app.status
    try window.present(frame?.image, content)
  }

  /// The newest frame; nil if no frame has arrived, or if the newest one is damaged.
  private func wholeFrame() throws(MediaError) -> PreviewFrame? {
    do throws(MediaError) { return try app.preview.nextFrame(as: .bgra) } catch {
      if error.code == .invalidData { return nil }
      throw error
    }
  }
}
