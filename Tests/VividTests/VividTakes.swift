// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankLinuxSystem
import TestSupport
import Testing

/// Recordings from vivid.
extension Vivid {
  /// Records a take and returns its JSON document.
  static func record(_ options: [String], file: String) async throws -> [String: Any] {
    try? FileManager.default.removeItem(atPath: file)
    let finished = try await run(
      slowmoPath, ["record", node ?? "", "-o", file, "--json", "--progress", "none"] + options)
    try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
    return try finished.document()
  }

  /// Records a take, sets a control of vivid while it runs, and ends the take a little later.
  ///
  /// A take that has ended by then is not ended again.
  ///
  /// - Returns: The exit status and the JSON document.
  static func record(
    _ options: [String], file: String, meanwhile control: String
  ) async throws -> (status: Int32, document: [String: Any]) {
    try? FileManager.default.removeItem(atPath: file)
    // A progress line shows that frames are stored. The script waits for more lines after the
    // control is set, so that the take has frames from after that on any machine.
    let script = """
      "$1" record "$2" -o "$3" --json --progress json $5 >"$3.json" 2>"$3.log" &
      recording=$!
      until grep -qs '"progress"' "$3.log" || ! kill -0 $recording 2>/dev/null; do sleep 0.1; done
      v4l2-ctl -d "$2" -c "$4" >&2 || echo "v4l2-ctl failed" >&2
      reported=$(grep -c '"progress"' "$3.log")
      until [ $(grep -cs '"progress"' "$3.log") -gt $((reported + 2)) ] ||
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

  /// Waits until this process has the device closed.
  ///
  /// A search that was begun keeps its frame, and a frame keeps the device open, also after its session.
  static func waitUntilClosed() async throws {
    guard let device = SystemFiles.resolved(node ?? "") else { return }
    while SystemFiles.entries(in: "/proc/self/fd").contains(where: {
      SystemFiles.linkTarget("/proc/self/fd/\($0)") == device
    }) {
      try await Task.sleep(for: .milliseconds(20))
    }
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

  /// Counts the frames that can be decoded, and fails if a frame cannot.
  static func frameCount(_ file: String) async throws -> Int64? {
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

  /// Checks that the ledger is balanced and that every stored frame can be decoded.
  static func expectWhole(_ take: [String: Any], file: String, stoppedBy reason: String)
    async throws
  {
    let ledger = try ledger(take)
    expectSum(ledger)
    #expect(take["playable"] as? Bool == true)
    #expect(take["stopped_by"] as? String == reason)
    #expect(try await frameCount(file) == ledger["stored"])
  }
}
