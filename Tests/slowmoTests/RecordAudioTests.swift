// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The command `slowmo record` with the option `--audio`.
struct RecordAudioTests {
  @Test func `The report of a take describes the audio track`() async throws {
    let scratch = try Scratch()
    let recorded = try await slowmo(
      "record", "synthetic:128x96@60?pace=max", "-o", scratch.file("a.mov"), "-t", "1", "--json")
    #expect(recorded.status == 0, "\(recorded.errors)")
    let audio = try #require(try recorded.document()["audio"] as? [String: Any])
    #expect(audio["device"] as? String == "synthetic:128x96@60?pace=max")
    #expect(audio["codec"] as? String == "aac" && audio["channels"] as? Int == 1)
    #expect(audio["sample_rate"] as? Int == 48_000 && audio["samples"] as? Int == 48_000)
    #expect(audio["start_offset_ns"] as? Int == 0 && audio["drift_ppm"] as? Double == 0)
    #expect(try #require(audio["max_sync_error_ns"] as? Int) <= 10_417)
    #expect((audio["gaps"] as? [Any])?.isEmpty == true)
    let pcm = try await slowmo(
      "record", "synthetic:128x96@60?pace=max", "-o", scratch.file("b.mov"), "-t", "1", "--json",
      "--audio-codec", "pcm")
    #expect((try pcm.document()["audio"] as? [String: Any])?["codec"] as? String == "pcm_s16le")
    let silent = try await slowmo(
      "record", "synthetic:128x96@60?pace=max", "-o", scratch.file("c.mov"), "-t", "1", "--json",
      "--audio", "none")
    let (silence, info) = (
      try silent.document(), try await slowmo("info", scratch.file("c.mov"), "--json").document()
    )
    #expect(silent.status == 0 && silence["audio"] is NSNull && info["audio"] is NSNull)
  }

  @Test func `An invalid microphone fails with exit code 69`() async throws {
    let scratch = try Scratch()
    for (name, code, word) in [
      ("hw:31,7", "device_not_found", "slowmo devices"),
      ("synthetic", "not_a_capture_device", "is not a microphone"),
    ] {
      let finished = try await slowmo(
        "record", "synthetic:128x96@60?pace=max", "-o", scratch.file("a.mov"), "-t", "1", "--audio",
        name,
        "--json")
      #expect(finished.status == 69)
      let error = try #require(try finished.document()["error"] as? [String: Any])
      #expect(error["code"] as? String == code, "\(error)")
      let plain = try await slowmo(
        "record", "synthetic:128x96@60?pace=max", "-o", scratch.file("a.mov"), "-t", "1", "--audio",
        name)
      #expect(plain.status == 69 && plain.errors.contains(word), "\(plain.errors)")
      #expect(plain.errors.split(separator: "\n").count == 1)
    }
    #expect(try scratch.names() == [])
  }

  @Test func `Progress events report the peak level of the audio`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", "synthetic:128x96@60", "-o", scratch.file("a.mov"), "-t", "2", "--progress", "json")
    #expect(finished.status == 0, "\(finished.errors)")
    let peaks = try finished.errors.split(separator: "\n").compactMap { line -> Double? in
      let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      guard event?["event"] as? String == "progress" else { return nil }
      return (event?["peak_dbfs"] as? [Double])?.first
    }
    // The tone has a level of -20 dBFS. The click at each whole second is louder.
    #expect(peaks.contains { $0 > -21 && $0 < 0 }, "\(peaks)")
  }
}
