// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// Compares a passthrough export with its source by decoding both with `ffmpeg`.
///
/// The comparison does not use packets. It uses the pixel hash and presentation time of each frame.
package enum CopyJudge {
  /// A frame as decoded by `ffmpeg`.
  package struct Frame: Equatable, Sendable {
    /// The presentation time, in seconds since the first frame.
    package let time: Rational
    /// The MD5 of the pixels.
    package let hash: String
  }

  /// A source frame that the export must show.
  package struct Expectation: Sendable {
    /// The frame's index in the source, in presentation order.
    package let index: Int
    /// The presentation time in the export, in seconds since its first frame.
    package let time: Rational

    package init(index: Int, time: Rational) {
      self.index = index
      self.time = time
    }
  }

  /// Compares a copy with its source.
  ///
  /// - Parameters:
  ///   - copy: The path of the copy.
  ///   - source: The path of the source.
  ///   - sourceFrames: The frames of the source, counting hidden ones, if they are known already.
  ///   - expected: The expected frames; nil for all source frames at their own times.
  /// - Returns: One line for each difference; empty for a correct copy.
  /// - Throws: `FFmpeg.Failure` when a file cannot be decoded.
  package static func complaints(
    about copy: String, of source: String, sourceFrames: [Frame]? = nil,
    showing expected: [Expectation]? = nil
  ) async throws -> [String] {
    var sourceFrames = sourceFrames ?? []
    if sourceFrames.isEmpty { sourceFrames = try await frames(of: source, countsHidden: true) }
    let copyFrames = try await frames(of: copy, countsHidden: false)
    let expected =
      expected ?? sourceFrames.enumerated().map { Expectation(index: $0, time: $1.time) }
    var complaints: [String] = []
    if sourceFrames.isEmpty { complaints.append("the source shows no frame") }
    if copyFrames.count != expected.count {
      complaints.append("the copy shows \(copyFrames.count) frames, not \(expected.count)")
    }
    for (number, (shown, wanted)) in zip(copyFrames, expected).enumerated() {
      guard sourceFrames.indices.contains(wanted.index) else {
        complaints.append("the source has no frame \(wanted.index)")
        continue
      }
      if shown.hash != sourceFrames[wanted.index].hash {
        complaints.append("frame \(number) is not the source's frame \(wanted.index)")
      }
      if shown.time != wanted.time {
        complaints.append("frame \(number) is shown at \(shown.time) s, not \(wanted.time) s")
      }
    }
    return complaints
  }

  /// Decodes the frames of a file with `ffmpeg`.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - countsHidden: Whether to include frames that are shown for only one tick. An export hides
  ///     a frame that way if it is needed only to decode other frames.
  ///   - ignoresEdits: Whether to include frames that the edit list of a QuickTime or MP4 file leaves
  ///     out. An export may hide these frames for one tick, because other frames depend on them.
  /// - Returns: The frames in presentation order.
  /// - Throws: `FFmpeg.Failure` when `ffmpeg` fails.
  package static func frames(
    of path: String, countsHidden: Bool, ignoresEdits: Bool = false
  ) async throws -> [Frame] {
    let hasEdits = path.hasSuffix(".mov") || path.hasSuffix(".mp4")
    let bytes = try await FFmpeg.converted(
      path,
      [
        "-map", "0:v:0", "-fps_mode", "passthrough", "-enc_time_base", "-1", "-hash", "md5", "-f",
        "framehash",
      ],
      decoding: ["-noautorotate"] + (ignoresEdits && hasEdits ? ["-ignore_editlist", "1"] : []))
    var tick: Rational?
    var rows: [(ticks: Int64, hash: String)] = []
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      if line.hasPrefix("#tb 0: ") {
        let numbers = line.dropFirst(7).split(separator: "/").compactMap { Int128($0) }
        if numbers.count == 2 { tick = Rational(numbers[0], over: numbers[1]) }
      }
      guard !line.hasPrefix("#") else { continue }
      let fields = line.split(separator: ",").map { $0.trimmingPrefix { $0 == " " } }
      guard fields.count == 6, let ticks = Int64(fields[2]) else {
        throw FFmpeg.Failure(description: "ffmpeg wrote the line \(line)")
      }
      rows.append((ticks, String(fields[5])))
    }
    guard let tick, let first = rows.first?.ticks else { return [] }
    let end = try await endTicks(of: path)
    let shown = rows.indices.filter { index in
      let next = index + 1 < rows.count ? rows[index + 1].ticks : end
      return countsHidden || next.map { $0 - rows[index].ticks > 1 } ?? true
    }
    return shown.map { index in
      let time = Rational(rows[index].ticks - first) * tick
      return Frame(time: time, hash: rows[index].hash)
    }
  }

  /// The end of the video track in ticks; nil if the file does not state it.
  private static func endTicks(of path: String) async throws -> Int64? {
    let lines = try await FFmpeg.probe(path, "stream=start_pts,duration_ts", stream: "v:0")
    let numbers = lines.first?.split(separator: ",").compactMap { Int64($0) } ?? []
    return numbers.count == 2 ? numbers[0] + numbers[1] : nil
  }
}
