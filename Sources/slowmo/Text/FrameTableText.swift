// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank

/// The table of a movie's frames as CSV.
enum FrameTableText {
  /// Writes the table; a movie with synthesized frames gets a column for them.
  static func write(
    _ lines: [Asset.FrameTimingRow], _ synthesized: SynthesizedFrames?, to path: String,
    overwrites: Bool
  ) throws {
    func field(_ value: Int64?) -> String { value.map(String.init) ?? "" }
    var text = "index,pts_ns,capture_ns,sequence,duration_ns,lost_before,duplicate"
    text += synthesized == nil ? "\n" : ",synthesized\n"
    for line in lines {
      // Only recordings of this program have sequence numbers. They never contain a frame twice, so
      // `duplicate` is 0. For other files this is unknown, so the column is empty.
      let duplicate = line.sequence == nil ? "" : "0"
      text +=
        "\(line.index),\(line.time.wholeNanoseconds),\(field(line.captureTime?.wholeNanoseconds)),"
        + "\(field(line.sequence)),\(line.duration.wholeNanoseconds),\(field(line.lostBefore)),"
        + "\(duplicate)"
      // The confidence of a synthesized frame, from 0.0 to 0.9; empty for a captured frame.
      if let synthesized {
        let tenths = synthesized.confidenceTenths(ofFrame: line.index)
        text += "," + (tenths.map { "0.\($0)" } ?? "")
      }
      text += "\n"
    }
    try Files.write(path, Data(text.utf8), overwrites: overwrites)
  }
}
