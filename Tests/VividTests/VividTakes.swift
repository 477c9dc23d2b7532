// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// What tests on vivid do with takes.
extension Vivid {
  /// Records, and gives the document of a take that succeeded.
  static func record(_ options: [String], file: String) async throws -> [String: Any] {
    try? FileManager.default.removeItem(atPath: file)
    let finished = try await run(
      slowmoPath, ["record", node ?? "", "-o", file, "--json", "--progress", "none"] + options)
    try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
    return try finished.document()
  }

  /// Records, sets a control once the take is under way, and ends the take a little later unless it
  /// has ended by itself; gives the exit status, too.
  static func record(
    _ options: [String], file: String, meanwhile control: String
  ) async throws -> (status: Int32, document: [String: Any]) {
    try? FileManager.default.removeItem(atPath: file)
    // Progress tells that frames are stored. However slow the machine is, some come after the
    // control was set. Whatever is waited for comes, or the recording ends.
    let script = """
      "$1" record "$2" -o "$3" --json --progress json $5 >"$3.json" 2>"$3.log" &
      recording=$!
      until grep -qs '"progress"' "$3.log" || ! kill -0 $recording 2>/dev/null; do sleep 0.1; done
      v4l2-ctl -d "$2" -c "$4" >&2 || echo "v4l2-ctl failed" >&2
      told=$(grep -c '"progress"' "$3.log")
      until [ $(grep -cs '"progress"' "$3.log") -gt $((told + 2)) ] ||
        ! kill -0 $recording 2>/dev/null; do
        sleep 0.1
      done
      kill -TERM $recording 2>/dev/null
      wait $recording
      status=$?
      cat "$3.json"
      exit $status
      """
    let finished = try await run(
      "sh",
      ["-c", script, "sh", slowmoPath, node ?? "", file, control, options.joined(separator: " ")])
    #expect(!finished.errors.contains("failed"), "\(finished.errors)")
    return (finished.status, try finished.document())
  }

  static func set(_ control: String, to value: Int) async throws {
    let finished = try await run("v4l2-ctl", ["-d", node ?? "", "-c", "\(control)=\(value)"])
    try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
  }

  static func ledger(_ take: [String: Any]) throws -> [String: Int64] {
    try #require(take["ledger"] as? [String: Any]).compactMapValues { value in
      (value as? Int).map(Int64.init)
    }
  }

  static func expectSum(_ ledger: [String: Int64]) {
    let sum = ledger.filter { $0.key != "expected" }.values.reduce(0, +)
    #expect(ledger["expected"] == sum, "\(ledger)")
  }

  /// The pictures that can be decoded; what cannot is a failure.
  static func pictureCount(_ file: String) async throws -> Int64? {
    let finished = try await run(
      "ffprobe",
      [
        "-v", "error", "-select_streams", "v:0", "-count_frames", "-show_entries",
        "stream=nb_read_frames", "-of", "csv=p=0", file,
      ])
    #expect(finished.errors == "")
    try #require(finished.status == 0, "\(finished.errors)")
    return Int64(finished.output.trimmingCharacters(in: .whitespacesAndNewlines))
  }

  /// Whether a take is whole: a ledger that adds up, a file that plays all that is in it.
  static func expectWhole(_ take: [String: Any], file: String, stoppedBy reason: String)
    async throws
  {
    let ledger = try ledger(take)
    expectSum(ledger)
    #expect(take["playable"] as? Bool == true)
    #expect(take["stopped_by"] as? String == reason)
    #expect(try await pictureCount(file) == ledger["stored"])
  }
}
