// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A script of keys, with one step in each line.
///
///     KEY              presses a key
///     click X Y        clicks at a part of the window, from 0 to 1
///     frames N         waits until N more frames are shown
///     wait photos      waits until no photo is in progress
///     wait recording   waits until a movie is being recorded
///     wait movie       waits until a movie is finished
///     wait camera      waits until an interruption began and ended
///     png FILE         writes the window as an image
struct Script {
  /// The action of one script step.
  enum Step {
    case key(String)
    case click(Double, Double)
    case image(String)
    case end
  }

  private var lines: [[String]]
  /// The number of shown frames at which a waiting step ends.
  private var wantedCount: Int?
  private var movieCount = 0

  init(path: String) throws {
    guard let file = fopen(path, "r") else { throw ScriptError(path: path) }
    defer { fclose(file) }
    lines = []
    var buffer = [CChar](repeating: 0, count: 256)
    while fgets(&buffer, Int32(buffer.count), file) != nil {
      let text = String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
      let words = text.split { $0 == " " || $0 == "\n" }.map(String.init)
      if !words.isEmpty { lines.append(words) }
    }
  }

  /// The next step; nil while a step waits.
  mutating func next(_ app: CameraApp, shownCount: Int) -> Step? {
    guard let words = lines.first else { return .end }
    switch words[0] {
    case "frames":
      let wanted = wantedCount ?? shownCount + (Int(words.last ?? "") ?? 1)
      wantedCount = wanted
      if shownCount < wanted { return nil }
      wantedCount = nil
    case "wait":
      guard isOver(words.last ?? "", app) else { return nil }
    default: break
    }
    lines.removeFirst()
    switch words[0] {
    case "frames", "wait": return nil
    case "click" where words.count == 3: return .click(Double(words[1]) ?? 0, Double(words[2]) ?? 0)
    case "png" where words.count == 2: return .image(words[1])
    default: return .key(words[0])
    }
  }

  private mutating func isOver(_ event: String, _ app: CameraApp) -> Bool {
    switch event {
    case "movie":
      guard app.finishedMovieCount > movieCount else { return false }
      movieCount = app.finishedMovieCount
      return true
    case "camera": return app.endedInterruptionCount > 0
    case "recording": return app.isRecording
    default: return app.pendingPhotoCount == 0
    }
  }

  static func write(_ bytes: [UInt8], to path: String) throws {
    guard let file = fopen(path, "wb") else { throw ScriptError(path: path) }
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
  }
}

/// The error for a script file that cannot be opened.
struct ScriptError: Error, CustomStringConvertible {
  let path: String
  var description: String { "cannot open \(path)" }
}
