// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// A view of a camera on a terminal.
///
/// After each image, the terminal is asked for the position of its cursor. The next image is only
/// written after the answer, so a slow connection never queues more than one image. A lost answer
/// delays the next image.
final class TerminalPreview: PreviewView {
  private let screen: TerminalScreen
  private let clock = MonotonicHostClock()
  private var canvas = HalfBlockCanvas()
  private var input = TerminalInput()
  /// The time at which the last image was written; nil before the first.
  private var drawn: MediaTime?
  private var isAnswered = true
  private var knowsRequest = false

  /// The shortest time between two images, in seconds.
  private static let period = Rational(1, over: 15)
  /// The seconds after which a terminal that has never answered gets the next image.
  ///
  /// A terminal that has answered before gets it after four times as long.
  private static let longestWait = Rational(3)

  init() throws {
    screen = try TerminalScreen()
    resize()
  }

  private func resize() {
    let size = screen.size
    canvas.resize(columns: size.columns, rows: size.rows)
  }

  func close() { screen.close() }

  var width: Int { canvas.pixelWidth }
  var height: Int { canvas.pixelHeight }

  var isReady: Bool {
    guard screen.flush() else { return false }
    guard let drawn else { return true }
    let elapsed = clock.now - drawn
    guard elapsed >= Self.period else { return false }
    return isAnswered || elapsed >= Self.longestWait * (knowsRequest ? 4 : 1)
  }

  func takeInput() -> [PreviewInput]? {
    if screen.suspendIfRequested() {
      canvas.forget()
      // After a suspension, the answer may have gone to another program, so it is not waited for.
      isAnswered = true
    }
    resize()
    return input.events(screen.read()).compactMap { event in
      switch event {
      case .key(let name): return .key(name)
      case .cursorPosition:
        (isAnswered, knowsRequest) = (true, true)
        return nil
      }
    }
  }

  func present(_ content: PreviewContent) {
    var parts = [content.status] + content.meters.map(TerminalBars.meter)
    if let histogram = content.histogram { parts.append(TerminalBars.histogram(histogram)) }
    let image = content.isBlinking ? nil : content.image
    screen.write(
      canvas.draw(
        image, in: content.imageRect, line: parts.filter { !$0.isEmpty }.joined(separator: "  "))
        + Array("\u{1B}[6n".utf8))
    drawn = clock.now
    isAnswered = false
  }

  func perform(_ step: ViewStep) -> Bool { false }

  func pngData() -> [UInt8]? { nil }
}

/// Bars of text, drawn with block characters in steps of an eighth.
enum TerminalBars {
  private static let rising: [Character] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
  private static let growing: [Character] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"]

  /// Returns a meter of ten cells, with a mark at the peak of the last 1.5 s and `!` for clipping.
  static func meter(_ meter: LevelMeterDisplay) -> String {
    let length = 10
    let eighths = Int((meter.levelPart * Double(length * 8)).rounded())
    var cells = (0..<length).map { growing[min(8, max(0, eighths - $0 * 8))] }
    let held = min(length - 1, Int(meter.heldPeakPart * Double(length)))
    if meter.heldPeakPart > 0, cells[held] == " " { cells[held] = "│" }
    return "[" + String(cells) + "]" + (meter.hasClipped ? "!" : "")
  }

  /// Returns a histogram of 16 cells, scaled to its highest cell.
  static func histogram(_ histogram: LumaHistogram) -> String {
    let width = LumaHistogram.binCount / 16
    let sums = (0..<16).map { cell in
      histogram.bins[(cell * width)..<((cell + 1) * width)].reduce(0, +)
    }
    let highest = max(1, sums.max() ?? 1)
    return String(sums.map { rising[$0 == 0 ? 0 : max(1, $0 * 8 / highest)] })
  }
}
