// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Settings of a fake camera's controls by the command.
struct CameraSettingsTests {
  /// Runs the command with a preloaded library that simulates cameras.
  private func slowmo(on cameras: String, _ arguments: String...) async throws -> Finished {
    let library = try await FakeCameras.library()
    return try await run(
      "env", ["FAKEVIDEO=\(cameras)", "LD_PRELOAD=\(library)", slowmoPath] + arguments)
  }

  private func controls(_ finished: Finished) throws -> [String: [String: Any]] {
    let list = try finished.document()["controls"] as? [[String: Any]] ?? []
    return Dictionary(uniqueKeysWithValues: list.map { ($0["name"] as? String ?? "", $0) })
  }

  @Test func `The controls of a camera are listed with their units`() async throws {
    let listed = try await slowmo(on: "uvc-webcam", "controls", "/dev/fakevideo0", "--json")
    #expect(listed.status == 0, "\(listed.errors)")
    let misfit = try await DocumentTests().misfit(
      listed.output, verb: "controls", try Scratch())
    #expect(misfit == nil)
    let controls = try controls(listed)
    let exposure = try #require(controls["exposure_time_absolute"])
    #expect(exposure["unit"] as? String == "100 µs" && exposure["value_ns"] as? Int == 25_000_000)
    #expect(exposure["flags"] as? [String] == ["inactive"])
    #expect(
      controls["region_of_interest_rectangle"] != nil && controls["white_balance_once"] != nil)
    let text = try await slowmo(on: "uvc-webcam", "controls", "/dev/fakevideo0")
    #expect(text.output.contains("gain (int)  0..255  default 64  value 64\n"), "\(text.output)")
    #expect(text.output.contains("    1: Manual Mode\n"))
  }

  @Test func `A recording stores the control values in its metadata`() async throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let taken = try await slowmo(
      on: "hfr-usb", "record", "/dev/fakevideo0", "-o", path, "-t", "0.3", "--mode",
      "640x360@120", "--json")
    #expect(taken.status == 0, "\(taken.errors)")
    let tag = try await recordingTag(path)
    let controls = try #require(tag["controls"] as? [String: String])
    #expect(controls["gain"] == "64" && controls["exposure_time_absolute"] != nil)
    // The frame rate lock sets this control only during the take.
    #expect(controls["exposure_dynamic_framerate"] == "0")
  }

  @Test func `Recording bypasses libv4l2 if no plugin handles the camera`() async throws {
    let scratch = try Scratch()
    let log = scratch.file("libv4l2.log")
    let library = try await FakeCameras.library()
    let taken = try await run(
      "env",
      [
        "LIBV4L2_LOG_FILENAME=\(log)", "FAKEVIDEO=hfr-usb", "LD_PRELOAD=\(library)", slowmoPath,
        "record", "/dev/fakevideo0", "-o", scratch.file("take.mov"), "-t", "0.1", "--mode",
        "640x360@120",
      ])
    #expect(taken.status == 0, "\(taken.errors)")
    let written = try String(contentsOfFile: log, encoding: .utf8)
    // libv4l2 opens the device, but does not see the requests.
    #expect(written.contains("libv4l2: open: ") && !written.contains("VIDIOC_DQBUF"), "\(written)")
  }

  @Test(arguments: ["INT", "TERM", "HUP"])
  func `Camera controls are restored after any signal ends a take`(signal: String) async throws {
    let scratch = try Scratch()
    let script = """
      export FAKEVIDEO=hfr-usb
      FAKEVIDEO_TRUTH=before LD_PRELOAD=$2 "$1" controls /dev/fakevideo0 >/dev/null
      FAKEVIDEO_TRUTH=after LD_PRELOAD=$2 "$1" record /dev/fakevideo0 -o take.mov \\
        --mode 640x360@120 >/dev/null &
      take=$!
      await '[ "$(size take.mov)" -gt 500000 ]' $take
      kill -\(signal) $take
      wait $take
      """
    let library = try await FakeCameras.library()
    let finished = try await bash(script, library, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    // The log of the driver has the control values at the last close.
    let before = try document(scratch.file("before"))
    let after = try document(scratch.file("after"))
    #expect(try #require(after["dequeued"] as? Int) > 0)
    let settings = try #require(before["controls"] as? [String: Int])
    #expect(after["controls"] as? [String: Int] == settings)
    let tag = try await recordingTag(scratch.file("take.mov"))
    let during = try #require(tag["controls"] as? [String: String])
    #expect(settings["Exposure, Dynamic Framerate"] == 1)
    #expect(during["exposure_dynamic_framerate"] == "0")
  }

  /// The JSON tag about the take that a recording stores in its metadata.
  private func recordingTag(_ path: String) async throws -> [String: Any] {
    let info = try await run(slowmoPath, ["info", path, "--json"]).document()
    let metadata = try #require(info["metadata"] as? [String: String])
    let tag = try #require(metadata["com.overcrank.recording"])
    return try #require(JSONSerialization.jsonObject(with: Data(tag.utf8)) as? [String: Any])
  }

  @Test func `Several camera controls are set at once and read back`() async throws {
    let set = try await slowmo(
      on: "hfr-usb", "controls", "/dev/fakevideo0", "exposure_time_absolute=4ms", "gain=10",
      "auto_exposure=manual mode", "--json")
    #expect(set.status == 0, "\(set.errors)")
    let controls = try controls(set)
    #expect(controls["exposure_time_absolute"]?["value"] as? Int == 40)
    #expect(controls["gain"]?["value"] as? Int == 10)
    #expect(controls["auto_exposure"]?["value"] as? Int == 1)
    #expect(
      try set.document()["set"] as? [String]
        == ["exposure_time_absolute", "gain", "auto_exposure"])
    let text = try await slowmo(on: "hfr-usb", "controls", "/dev/fakevideo0", "gain=10")
    #expect(text.output == "gain (int)  0..255  default 64  value 10\n")
  }

  @Test(arguments: [
    ("gain=256", "choose 0 to 255"), ("gian=1", "did you mean gain"),
    ("exposure_time_absolute=4ms", "auto_exposure=1 (Manual Mode)"),
    ("privacy=1", "can only be read"),
  ])
  func `The error for a rejected control value names valid values`(
    assignment: String, message: String
  ) async throws {
    let refused = try await slowmo(on: "hfr-usb", "controls", "/dev/fakevideo0", assignment)
    #expect(refused.status == 64 && refused.output == "")
    #expect(refused.errors.contains(message), "\(refused.errors)")
    #expect(refused.errors.split(separator: "\n").count == 1)
  }
}
