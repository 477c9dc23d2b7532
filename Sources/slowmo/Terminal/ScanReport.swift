// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Overcrank
import OvercrankLinuxSystem
import Synchronization

/// Prints the objects that `scan` finds, and writes overlays.
final class ScanReport {
  private let command: ScanCommand
  private let (width, height): (Int, Int)
  private var objects: [ScannedObject] = []
  private var overlays: [String] = []
  private var start: MediaTime?
  private let notes: [String]
  private var (examinedCount, searchedCount): (Int64, Int64) = (0, 0)

  init(_ command: ScanCommand, width: Int, height: Int, notes: [String] = []) {
    (self.command, self.notes) = (command, notes)
    (self.width, self.height) = (width, height)
  }

  /// Creates the directory of the overlays if it does not exist.
  static func makeDirectory(_ path: String) throws {
    guard mkdir(path.systemPath, 0o777) != 0, errno != EEXIST else { return }
    throw CommandError(
      .cannotCreate, code: "cannot_create",
      "could not create the directory \(path): \(String(cString: strerror(errno)))",
      hint: "choose another directory")
  }

  /// Reports the objects that another thread has found in frames.
  func add(taking found: borrowing Mutex<[[RecognizedObject]]>) throws {
    let frames = found.withLock { found in
      defer { found = [] }
      return found
    }
    for frame in frames { try add(frame) }
  }

  /// Reports the objects of one frame.
  func add(_ found: [RecognizedObject]) throws {
    guard let first = found.first else { return }
    // For a camera, times are counted from its first frame, also after an interruption.
    let start = start ?? first.streamStart
    self.start = start
    for object in found {
      let scanned = ScannedObject(object, since: start)
      if command.common.json {
        objects.append(scanned)
      } else if !Output.verbatim(try scanned.line()) {
        throw Output.ReaderIsGone()
      }
    }
    guard let directory = command.overlay else { return }
    let number = String(first.frameIndex)
    let path =
      "\(directory)/frame_\(String(repeating: "0", count: max(0, 6 - number.count)))\(number).svg"
    let svg = ScanOverlay.svg(found, width: width, height: height)
    try Files.refuseExisting(path, overwrites: command.writing.overwrite)
    try Files.write(path, Data(svg.utf8), overwrites: command.writing.overwrite)
    overlays.append(path)
  }

  /// Sets the counts of the frames that were searched, and of those that were searched as a whole.
  func count(examined: Int64, searched: Int64) {
    (examinedCount, searchedCount) = (examined, searched)
  }

  /// Prints the document, or how many frames were searched if these are not all.
  func finish(frameCount: Int64) throws {
    guard command.common.json else {
      if searchedCount < frameCount {
        Output.note(
          "\(searchedCount) of \(frameCount) frames were searched as a whole for each type, "
            + "\(examinedCount - searchedCount) in part or around known objects")
      }
      return
    }
    try Output.document(
      ScanDocument(
        source: command.source, frameCount: frameCount, examinedCount: examinedCount,
        searchedCount: searchedCount, objects: objects, overlays: overlays, notes: notes,
        dryRun: false))
  }
}

/// Draws the objects of a frame as an SVG image of the frame's size.
enum ScanOverlay {
  static func svg(_ objects: [RecognizedObject], width: Int, height: Int) -> String {
    var text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(height)\" "
      + "viewBox=\"0 0 \(width) \(height)\">\n"
    for object in objects {
      let points = object.corners.map {
        "\(decimal($0.x * Double(width), 2)),\(decimal($0.y * Double(height), 2))"
      }
      text +=
        "<polygon points=\"\(points.joined(separator: " "))\" fill=\"none\" stroke=\"#00c853\" "
        + "stroke-width=\"3\"\(rotation(of: object, width, height))/>\n"
      let (x, y) = (object.bounds.x * Double(width), object.bounds.y * Double(height))
      text +=
        "<text x=\"\(decimal(x, 2))\" y=\"\(decimal(y - 6, 2))\" font-family=\"sans-serif\" "
        + "font-size=\"20\" fill=\"#00c853\">\(escaped(label(of: object)))</text>\n"
    }
    return text + "</svg>\n"
  }

  /// Returns the SVG attribute that rotates the outline of a face by its roll.
  private static func rotation(of object: RecognizedObject, _ width: Int, _ height: Int) -> String {
    guard let roll = object.rollDegrees else { return "" }
    let x = (object.bounds.x + object.bounds.width / 2) * Double(width)
    let y = (object.bounds.y + object.bounds.height / 2) * Double(height)
    return " transform=\"rotate(\(decimal(roll, 1)) \(decimal(x, 2)) \(decimal(y, 2)))\""
  }

  private static func label(of object: RecognizedObject) -> String {
    "\(object.type) \(object.faceID.map { String($0) } ?? object.text ?? "")"
  }

  /// Returns a text for XML: control characters are replaced, and long texts are cut off.
  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars.prefix(80) {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value),
        "\u{FFFE}", "\u{FFFF}":
        result += "\u{FFFD}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
