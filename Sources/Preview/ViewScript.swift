// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
package import OvercrankRaster

/// A step of a script that operates a view.
package enum ViewStep: Hashable, Sendable {
  /// A place in a view: a control by its name or text, or a point as fractions of the view's width and
  /// height from 0 to 1.
  package enum Target: Hashable, Sendable {
    case control(String)
    case point(Point)
  }

  case key(String)
  case move(Target)
  case click(Target)
  /// Presses a control and holds it, until ``release``.
  case hold(Target)
  case release
  /// Presses at a place, and releases at another one.
  case drag(Target, to: Target, isRight: Bool)
  /// Turns the wheel by a number of steps.
  case wheel(Double, Target)
  /// Waits for an event that the program names.
  case wait(String)
  /// Waits until this number of further frames was shown.
  case frames(Int)
  /// Writes the view as a PNG file of this path.
  case image(String)
}

/// A script that operates a view, with one step in each line.
///
/// ```
/// 0.5 space                  presses a key, half a second after the start
/// move X,Y                   moves the pointer
/// click NAME|X,Y             clicks a control or a point
/// hold NAME|X,Y              presses a control, until a line `release`
/// drag X,Y X,Y [right]       drags with the left or right button
/// wheel STEPS X,Y            turns the wheel
/// wait EVENT                 waits for an event of the program
/// frames N                   waits until N more frames are shown
/// png FILE                   writes the view as an image
/// ```
///
/// A line may begin with its time in seconds. Without a time, it follows the line above. Empty lines,
/// and lines that begin with `#`, are ignored.
package struct ViewScript: Sendable {
  package struct Line: Sendable {
    /// The number of the line in the text, from 1.
    package let number: Int
    /// The time after the start; nil for a step that follows the line above.
    package let time: MediaTime?
    package let step: ViewStep
  }

  /// A mistake in a line.
  package struct Mistake: Error {
    package let line: Int
    package let text: String
  }

  package private(set) var lines: [Line] = []

  /// Reads a script.
  ///
  /// - Parameters:
  ///   - text: The lines.
  ///   - isKey: Whether a word is a key of the view.
  /// - Throws: The first mistake.
  package init(_ text: String, isKey: (Substring) -> Bool) throws(Mistake) {
    var last = MediaTime.zero
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .enumerated()
    {
      var parts = line.split(whereSeparator: \.isWhitespace)
      guard let first = parts.first, !first.hasPrefix("#") else { continue }
      func wrong(_ what: String) -> Mistake { Mistake(line: index + 1, text: what) }
      var time: MediaTime?
      if parts.count > 1, ViewStep(parts) == nil {
        time = Self.time(first)
        parts.removeFirst()
        guard isKey(parts.joined(separator: " ")[...]) || ViewStep(parts) != nil else {
          throw wrong("\(parts.joined(separator: " ")) is not a key")
        }
        guard let time else { throw wrong("\(first) is not a time") }
        guard time >= last else { throw wrong("\(first) is before the time of the line above") }
        last = time
      } else if parts.count == 1, first != "release", !isKey(first) {
        throw wrong("\(first) is not a key")
      }
      lines.append(
        Line(number: index + 1, time: time, step: ViewStep(parts) ?? .key(String(parts[0]))))
    }
  }

  /// The latest time of a line: thirty years.
  private static let latest = MediaTime(seconds: 1_000_000_000)

  /// Parses a time in seconds; nil if the text is none.
  private static func time(_ text: Substring) -> MediaTime? {
    guard text.first?.isNumber == true,
      let time = try? TimeExpression(parsing: String(text)).resolved(
        sourceDuration: latest, frameCount: 0,
        frameTime: { (_) throws(MediaError) in throw MediaError(.syntax, "a frame is not a time") })
    else { return nil }
    return time <= latest ? time : nil
  }
}

extension ViewStep {
  /// The greatest number of frames that a step waits for: a week of the fastest cameras.
  private static let maximumFrameCount = 1_000_000_000

  /// Reads the parts of a step that is no key; nil if they are none.
  fileprivate init?(_ parts: [Substring]) {
    let rest = parts.dropFirst().joined(separator: " ")
    switch (parts[0], parts.count) {
    case ("click", 2...): self = .click(Target(rest))
    case ("move", 2...): self = .move(Target(rest))
    case ("hold", 2...): self = .hold(Target(rest))
    case ("release", 1): self = .release
    case ("drag", 3...4):
      guard parts.count == 3 || parts[3] == "right" else { return nil }
      self = .drag(
        Target(String(parts[1])), to: Target(String(parts[2])), isRight: parts.count == 4)
    case ("wheel", 3):
      guard let steps = Double(parts[1]), steps.magnitude <= 100 else { return nil }
      self = .wheel(steps, Target(String(parts[2])))
    case ("wait", 2): self = .wait(rest)
    case ("frames", 2):
      guard let count = Int(rest), (1...Self.maximumFrameCount).contains(count) else { return nil }
      self = .frames(count)
    case ("png", 2...): self = .image(rest)
    default: return nil
    }
  }
}

extension ViewStep.Target {
  fileprivate init(_ text: String) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
    if parts.count == 2, let x = parts[0], let y = parts[1], (0...1).contains(x),
      (0...1).contains(y)
    {
      self = .point(Point(x: x, y: y))
    } else {
      self = .control(text)
    }
  }
}
