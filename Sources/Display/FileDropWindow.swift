// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
package import OvercrankPreview
import OvercrankRaster

/// A window without a clip, which waits for a file that the user drops on it.
///
/// Only the thread that created the window may use it, which should be the main thread.
package final class FileDropWindow {
  private let window: SDLWindow
  private let lines: [KeyDescription]
  private var shown: VideoSize?
  private var mustDraw = true
  private var waiting: [WindowEvent] = []

  /// Opens a window that shows a table.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  package init(title: String, lines: [KeyDescription]) throws(MediaError) {
    self.lines = lines
    window = try SDLWindow(title: title, size: VideoSize(width: 960, height: 540))
  }

  /// Draws the window, and returns the input since the last call.
  package func takeInput() -> [WindowInput] {
    var input: [WindowInput] = []
    for event in waiting + window.events() {
      switch event {
      case .key(let name): input.append(.key(name))
      case .closed: input.append(.closed)
      case .dropped(let path): input.append(.dropped(path))
      case .exposed, .resized: mustDraw = true
      case .pressed, .moved, .released, .doubleClicked, .pointerLeft, .wheel, .keyUp: break
      }
    }
    waiting = []
    window.present(window.size, instead: &shown, if: &mustDraw) { _ in drawing }
    return input
  }

  /// Waits until input arrives, but not longer than a number of milliseconds.
  package func waitForInput(milliseconds: Int) {
    if waiting.isEmpty { window.waitForEvent(milliseconds: milliseconds) }
  }

  /// The number of times the window was drawn.
  var presentCount: Int { window.presentCount }

  /// Adds an event, as if the window system had reported it.
  func post(_ event: WindowEvent) { waiting.append(event) }

  /// The table; nil if the window is too small for it.
  var widgets: Widget? {
    Widget.help(lines, over: area, density: window.textDensity)
  }

  private var area: PixelRect {
    PixelRect(x: 0, y: 0, width: window.size.width, height: window.size.height)
  }

  private var drawing: [DrawingCommand] {
    [.fill(area, .background)] + (widgets?.drawing(WidgetFocus()) ?? [])
  }
}
