// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// Compares a copy with its source by what another program, `ffmpeg`, decodes from both.
///
/// The judge knows nothing of packets: it compares the hash of each frame that is shown, and the
/// time from which on it is shown.
package enum CopyJudge {
  /// A frame as `ffmpeg` shows it.
  package struct Frame: Equatable, Sendable {
    /// When it is shown, in seconds after the first one.
    package let time: Rational
    /// The MD5 of its pixels.
    package let hash: String
  }

  /// A frame of the source that a copy is to show.
  package struct Expectation: Sendable {
    /// Its number in the source, in order of presentation.
    package let index: Int
    /// When the copy shows it, in seconds after its first frame.
    package let time: Rational

    package init(index: Int, time: Rational) {
      self.index = index
      self.time = time
    }
  }

  /// Judges a copy.
  ///
  /// - Parameters:
  ///   - copy: The path of the copy.
  ///   - source: The path of its source.
  ///   - expected: The frames that the copy is to show; nil for all of them at their own times.
  /// - Returns: What is wrong, one line each; none for a copy that is right.
  /// - Throws: `FFmpeg.Failure` when a file cannot be decoded.
  package static func complaints(
    about copy: String, of source: String, showing expected: [Expectation]? = nil
  ) async throws -> [String] {
    let sourceFrames = try await frames(of: source, countsHidden: true)
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

  /// The frames that `ffmpeg` decodes from a file.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - countsHidden: Whether frames count that are shown for one tick only, as copies hide what
  ///     others refer to.
  /// - Returns: The frames in order of presentation.
  /// - Throws: `FFmpeg.Failure` when it does not like the file.
  package static func frames(of path: String, countsHidden: Bool) async throws -> [Frame] {
    let bytes = try await FFmpeg.converted(
      path,
      [
        "-map", "0:v:0", "-fps_mode", "passthrough", "-enc_time_base", "-1", "-hash", "md5", "-f",
        "framehash",
      ], decoding: ["-noautorotate"])
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

  /// The end of the pictures, in ticks; nil where the file does not say.
  private static func endTicks(of path: String) async throws -> Int64? {
    let lines = try await FFmpeg.probe(path, "stream=start_pts,duration_ts", stream: "v:0")
    let numbers = lines.first?.split(separator: ",").compactMap { Int64($0) } ?? []
    return numbers.count == 2 ? numbers[0] + numbers[1] : nil
  }
}
