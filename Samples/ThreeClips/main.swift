// SPDX-License-Identifier: Apache-2.0

// Joins the first second of each of three clips, the first one at 1/4 speed and the last one at
// double speed. Writes the edit as an OpenTimelineIO project and as a movie.
//
//   ThreeClips A B C
import Foundation
import Overcrank

var edit = Composition()
for path in CommandLine.arguments.dropFirst() {
  try edit.append(Asset(path: path), range: TimeRange(duration: MediaTime(seconds: 1)))
}
try edit.setSpeed(Speed(2), in: TimeRange(start: 2, end: 3))
try edit.setSpeed(Speed(1, over: 4), in: TimeRange(start: 0, end: 1))
try OpenTimelineDocument(edit).text().write(toFile: "edit.otio", atomically: true, encoding: .utf8)
let report = try ExportSession(edit).export(
  ExportSettings(path: "edit.mov", mode: .constant(60)))
print("\(report.path): \(report.duration.displayText) s")
