// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank

/// Writes the table of a movie's frames as CSV.
enum FrameTableText {
  /// Writes the table of some or all frames of a movie, in the order of `lines`.
  ///
  /// One column is added for a movie with codes, and one for a movie with faces. For a movie with
  /// synthesized frames, two columns are added at the end. The columns do not depend on the selection.
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
      // The column `duplicate` is empty for files of other programs, where it is unknown whether a
      // frame repeats another.
      let duplicate = line.isDuplicate.map { $0 ? "1" : "0" } ?? ""
      text +=
        "\(line.index),\(line.time.wholeNanoseconds),\(field(line.captureTime?.wholeNanoseconds)),"
        + "\(field(line.sequence)),\(line.duration.wholeNanoseconds),\(field(line.lostBefore)),"
        + "\(duplicate)"
      let shown = objects[Int64(line.index)] ?? []
      if hasCodes { text += ",\(codes(shown.filter { $0.faceId == nil }))" }
      if hasFaces { text += ",\(faces(shown))" }
      // The column `confidence` has a value from 0.0 to 0.9 for a synthesized frame, and is empty
      // for a captured frame.
      if let synthesized {
        let tenths = synthesized.confidenceTenths(ofFrame: line.index)
        text += tenths.map { ",0.\($0),1" } ?? ",,0"
      }
      text += "\n"
    }
    try Files.write(path, Data(text.utf8), overwrites: overwrites)
  }

  /// Returns the faces of a frame as one field: the id of each face, then its left edge, upper
  /// edge, width and height from 0 to 1, as in `"1:0.41 0.2 0.1 0.18; 2:0.7 0.25 0.1 0.18"`.
  private static func faces(_ objects: [StoredObject]) -> String {
    let faces = objects.compactMap { object in
      object.faceId.map { id in
        "\(id):" + object.bounds.map { decimal($0, 6) }.joined(separator: " ")
      }
    }
    return faces.isEmpty ? "" : "\"\(faces.joined(separator: "; "))\""
  }

  /// Returns the codes of a frame as one field: `"qr:A7; ean13:4006381333931"`.
  ///
  /// Control characters become U+FFFD, so that no line break occurs inside a field.
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

/// Returns the note about frames whose stored times were corrected.
func correctedTimesLine(_ count: Int) -> String {
  "note: \(count) \(count == 1 ? "frame has a time" : "frames have times") that contradict"
    + "\(count == 1 ? "s" : "") the order of the frames; the times between the neighbors are used"
}
