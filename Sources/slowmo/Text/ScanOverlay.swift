// SPDX-License-Identifier: Apache-2.0

import Overcrank

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
