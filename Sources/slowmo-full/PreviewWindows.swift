// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankDisplay
import SlowmoCommands

/// Opens the windows of `preview` and `record --preview`.
struct PreviewWindows: PreviewWindowProvider {
  func checkDisplay() throws(MediaError) { try PreviewWindow.checkDisplay() }

  func open(title: String, width: Int, height: Int) throws(MediaError) -> any PreviewView {
    CameraWindow(try PreviewWindow(title: title, width: width, height: height))
  }
}

/// A preview window, adapted for the command line.
final class CameraWindow: PreviewView {
  private let window: PreviewWindow

  init(_ window: PreviewWindow) { self.window = window }

  var width: Int { Int(window.width) }
  var height: Int { Int(window.height) }
  var isReady: Bool { true }

  func takeInput() -> [PreviewInput]? {
    window.takeInput()?.compactMap { input in
      switch input {
      case .control: nil
      case .key(let name): .key(name)
      case .pressed(let point): .tap(point)
      case .wheel(let steps): .wheel(steps)
      }
    }
  }

  func present(_ content: PreviewContent) throws(MediaError) {
    var shown = PreviewWindowContent()
    shown.imageRect = content.imageRect
    shown.status = content.status
    shown.histogram = content.histogram
    shown.meters = content.meters
    shown.focusPoint = content.focusPoint
    shown.isBlinking = content.isBlinking
    shown.keyHelp = content.keyHelp
    shown.buttons = content.buttons
    shown.overlays = content.overlays
    shown.gauge = content.gauge
    try window.present(content.isNewImage ? content.image : nil, shown)
  }

  func perform(_ step: ViewStep) -> Bool { window.perform(step) }

  func pngData() throws(MediaError) -> [UInt8]? { try window.pngData() }
}
