// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank

/// The table of a movie's frames as CSV.
enum FrameTableText {
  static func write(_ lines: [Asset.FrameTimingRow], to path: String, overwrites: Bool) throws {
    func field(_ value: Int64?) -> String { value.map(String.init) ?? "" }
    var text = "index,pts_ns,capture_ns,sequence,duration_ns,lost_before,duplicate\n"
    for line in lines {
      // Of files of other programs it is unknown, so the column is empty.
      let duplicate = line.isDuplicate.map { $0 ? "1" : "0" } ?? ""
      text +=
        "\(line.index),\(line.time.wholeNanoseconds),\(field(line.captureTime?.wholeNanoseconds)),"
        + "\(field(line.sequence)),\(line.duration.wholeNanoseconds),\(field(line.lostBefore)),"
        + "\(duplicate)\n"
    }
    try Files.write(path, Data(text.utf8), overwrites: overwrites)
  }
}
