// SPDX-License-Identifier: Apache-2.0

/// Checks movies with other programs.
package enum MovieCheck {
  /// Returns the faults in the boxes of movies, according to `box-check.py`; empty for none.
  package static func boxes(_ paths: [String]) async throws -> String {
    let checked = try await run(
      "python3", ["\(checkout)/Tests/Tools/BoxCheck/box-check.py"] + paths)
    return checked.status == 0 ? "" : checked.output + checked.errors
  }

  /// Messages of ffprobe about properties of a movie that are no faults.
  private static let properties = [
    // FFmpeg has no decoder for timecodes (id 0) and telemetry (id 98314).
    "Unsupported codec with id 0 for input stream",
    "Unsupported codec with id 98314 for input stream",
    // Frames of one tick each follow longer ones, as they do at a cut that hides frames.
    "DTS discontinuity in stream",
  ]
  /// The message of FFmpeg when it looks for the format of some JPEG images.
  ///
  /// It skips the scan of the first image, and then misses its end, also in movies that it wrote
  /// itself. If the image lacks its end, the message comes back when the image is decoded.
  private static let skippedScan = "EOI missing, emulating"

  /// Returns the warnings of ffprobe, which reads all packets of a movie; empty for none.
  ///
  /// If it misses the end of the first JPEG image, it decodes all frames, too.
  package static func warnings(_ path: String) async throws -> String {
    let lines = try await probe(path, ["-count_packets"])
    let others = lines.filter { !$0.contains(skippedScan) }
    guard others.count < lines.count else { return others.joined(separator: "\n") }
    let decoded = try await probe(path, ["-count_frames", "-nofind_stream_info"])
    return (others + decoded).joined(separator: "\n")
  }

  /// The messages of ffprobe about faults, and its exit code unless it is zero.
  private static func probe(_ path: String, _ options: [String]) async throws -> [String] {
    let probed = try await run(
      "ffprobe",
      ["-v", "warning"] + options + ["-show_entries", "stream=nb_read_packets", "-i", path])
    let lines = probed.errors.split(separator: "\n").map(String.init)
      .filter { line in !properties.contains { line.contains($0) } }
    return probed.status == 0 ? lines : lines + ["ffprobe fails with \(probed.status)"]
  }
}
