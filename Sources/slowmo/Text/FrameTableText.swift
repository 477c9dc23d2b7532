// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank

/// The table of a movie's frames as CSV.
enum FrameTableText {
  /// Writes the table.
  ///
  /// A movie with codes or faces gets a column for each, and one with synthesized frames the last two.
  static func write(
    _ lines: [Asset.FrameTimingRow], of asset: Asset, to path: String, overwrites: Bool
  ) throws {
    func field(_ value: Int64?) -> String { value.map(String.init) ?? "" }
    let objects = StoredObject.objects(in: asset.timedMetadata())
    let synthesized = asset.synthesizedFrames
    var text = "index,pts_ns,capture_ns,sequence,duration_ns,lost_before,duplicate"
    let found = objects.values.joined()
    let hasCodes = found.contains { $0.faceId == nil }
    let hasFaces = found.contains { $0.faceId != nil }
    if hasCodes { text += ",codes" }
    if hasFaces { text += ",faces" }
    text += synthesized == nil ? "\n" : ",confidence,synthesized\n"
    for line in lines {
      // For files of other programs this is unknown, so the column is empty.
      let duplicate = line.isDuplicate.map { $0 ? "1" : "0" } ?? ""
      text +=
        "\(line.index),\(line.time.wholeNanoseconds),\(field(line.captureTime?.wholeNanoseconds)),"
        + "\(field(line.sequence)),\(line.duration.wholeNanoseconds),\(field(line.lostBefore)),"
        + "\(duplicate)"
      let shown = objects[Int64(line.index)] ?? []
      if hasCodes { text += ",\(codes(shown.filter { $0.faceId == nil }))" }
      if hasFaces { text += ",\(faces(shown))" }
      // The confidence of a synthesized frame is 0.0 to 0.9; a captured frame has none.
      if let synthesized {
        let tenths = synthesized.confidenceTenths(ofFrame: line.index)
        text += tenths.map { ",0.\($0),1" } ?? ",,0"
      }
      text += "\n"
    }
    try Files.write(path, Data(text.utf8), overwrites: overwrites)
  }

  /// The ids of the faces of a frame with their left and upper edge, width and height from 0 to 1, as
  /// one field: `"1:0.41 0.2 0.1 0.18; 2:0.7 0.25 0.1 0.18"`.
  private static func faces(_ objects: [StoredObject]) -> String {
    let faces = objects.compactMap { object in
      object.faceId.map { id in
        "\(id):" + object.bounds.map { decimal($0, 6) }.joined(separator: " ")
      }
    }
    return faces.isEmpty ? "" : "\"\(faces.joined(separator: "; "))\""
  }

  /// The codes of a frame as one field: `"qr:A7; ean13:4006381333931"`.
  ///
  /// Control characters become U+FFFD, so that a line of the table is one line.
  private static func codes(_ objects: [StoredObject]) -> String {
    guard !objects.isEmpty else { return "" }
    let text = objects.map { "\($0.type):\($0.text ?? "")" }.joined(separator: "; ")
    var field = ""
    for scalar in text.unicodeScalars {
      let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
      field.unicodeScalars.append(isControl ? "\u{FFFD}" : scalar)
      if scalar == "\"" { field += "\"" }
    }
    return "\"\(field)\""
  }
}

/// The note about frames whose stated times were replaced.
func correctedTimesLine(_ count: Int) -> String {
  "note: \(count) \(count == 1 ? "frame has a time" : "frames have times") that contradict"
    + "\(count == 1 ? "s" : "") the order of the frames; the times between the neighbors are used"
}
