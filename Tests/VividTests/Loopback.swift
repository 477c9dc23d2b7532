// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The kernel's loopback audio card: its device 1 records the samples played on its device 0.
enum Loopback {
  /// The number of the loopback card; nil if it is not loaded.
  static let card: Int? = (0..<8).first { number in
    let id = try? String(contentsOfFile: "/sys/class/sound/card\(number)/id", encoding: .utf8)
    return id?.hasPrefix("Loopback") == true
  }

  static var playback: String { "hw:\(card ?? 0),0" }
  static var capture: String { "hw:\(card ?? 0),1" }

  static let whyNot: Comment =
    "no loopback audio card here: load it with sudo modprobe snd-aloop"

  /// Writes a sine in two channels, with 16 bits and 48000 samples per second.
  static func writeTone(_ path: String, dBFS: Double, hertz: Double, seconds: Int) throws {
    let (rate, amplitude) = (48_000, pow(10, dBFS / 20) * 32_768)
    var samples: [Int16] = []
    for sample in 0..<seconds * rate {
      let value = amplitude * sin(2 * Double.pi * hertz * Double(sample) / Double(rate))
      samples += [Int16(value.rounded()), Int16(value.rounded())]
    }
    try samples.withUnsafeBytes { Data($0) }.write(to: URL(fileURLWithPath: path))
  }

  /// Plays a file of raw samples into the loopback card, up to its end.
  static func play(_ path: String) async throws {
    let played = try await run(
      "aplay",
      ["-q", "-D", playback, "-t", "raw", "-f", "S16_LE", "-r", "48000", "-c", "2", path])
    try #require(played.status == 0, "\(played.errors)")
  }

  /// The kernel's position in the recorded stream: the number of samples since the start, and the
  /// time of that position.
  static func recorded() throws -> (samples: Int64, nanoseconds: Int64) {
    let status = try status(ofStream: "pcm1c")
    let samples = try #require(status.firstMatch(of: /hw_ptr *: (\d+)/)).1
    let time = try #require(status.firstMatch(of: /tstamp *: (\d+)\.(\d{9})/))
    return (
      try #require(Int64(samples)),
      try #require(Int64(time.1)) * 1_000_000_000 + (try #require(Int64(time.2)))
    )
  }

  private static func status(ofStream name: String) throws -> String {
    // Files of /proc report a length of 0, so Foundation cannot read them by name.
    let path = "/proc/asound/card\(card ?? 0)/\(name)/sub0/status"
    let handle = try #require(FileHandle(forReadingAtPath: path), "cannot read \(path)")
    defer { try? handle.close() }
    return String(decoding: try handle.readToEnd() ?? Data(), as: UTF8.self)
  }

  /// A shell script that stops a process for 1.5 seconds.
  ///
  /// It writes the times of the stop and of the continuation into a file.
  static func pause(process: String, into file: String) -> String {
    """
    read before rest </proc/uptime
    kill -STOP \(process)
    sleep 1.5
    read after rest </proc/uptime
    kill -CONT \(process)
    echo "$before $after" >\(file)
    """
  }

  /// The minimum number of samples that a process lost, given the file that `pause` wrote.
  ///
  /// Half a second may wait in the card's buffer, and a tenth of a second in its periods.
  static func minimumLost(_ file: String) throws -> Int64 {
    let times = try String(contentsOfFile: file, encoding: .utf8)
      .split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
    try #require(times.count == 2)
    #expect(times[1] - times[0] >= 1.4)
    return Int64((times[1] - times[0] - 0.6) * 48_000)
  }
}
