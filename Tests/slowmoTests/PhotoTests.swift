// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankSimulatedCameras
import TestSupport
import Testing

/// The command `photo` in real time, with signals and triggers.
struct PhotoTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func number(_ name: String, _ options: [String] = []) async throws -> Int? {
    let gray = try await FFmpeg.converted(
      scratch.file(name), options + ["-frames:v", "1", "-pix_fmt", "gray", "-f", "rawvideo"])
    try #require(gray.count == 320 * 240)
    return FrameNumberPattern.read(width: 320, height: 240) { gray[$1 * 320 + $0] }
  }

  @Test func `The commands info and retime read a Live Photo pair`() async throws {
    let finished = try await slowmo(
      "photo", "synthetic:320x240@60?scene=pattern", "-o", "live.jpg", "--live", "--json",
      "--progress", "none", in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let files = try #require(try finished.document()["files"] as? [[String: Any]])
    #expect(files.count == 1 && files[0]["movie"] as? String == "live.mov")
    let photo = try #require(await number("live.jpg"))
    #expect(photo == files[0]["sequence"] as? Int)
    // The photo is of frame 89 or later, so the camera ran long enough for the part of the movie
    // before the photo. The time of the photo in the movie is not checked, since a busy machine may
    // lose the first frames.
    #expect(photo >= 89)
    for name in ["live.jpg", "live.mov"] {
      let info = try await slowmo("info", name, "--json", in: scratch.path).document()
      #expect(info["file"] as? String == name)
      let pair = try #require(info["live_photo"] as? [String: Any])
      #expect(pair["photo"] as? String == "live.jpg" && pair["movie"] as? String == "live.mov")
      #expect(pair["embedded"] as? Bool == false)
      let time = try #require(pair["photo_display_time_ns"] as? Int)
      let frame = try await slowmo(
        "frames", "live.mov", "--at", "\(time)ns", "-o", "still-\(name).png", in: scratch.path)
      #expect(frame.status == 0, "\(frame.errors)")
      #expect(try await number("still-\(name).png") == photo)
      #expect(time <= 1_500_000_000)
    }
    try FileManager.default.removeItem(atPath: scratch.file("live.mov"))
    let info = try await slowmo("info", "live.jpg", "--json", in: scratch.path).document()
    let pair = try #require(info["live_photo"] as? [String: Any])
    #expect(pair["embedded"] as? Bool == true && pair["movie"] is NSNull)
    let slow = try await slowmo(
      "retime", "live.jpg", "-o", "slow.mov", "--speed", "1/4", "--copy", "--json",
      in: scratch.path)
    #expect(slow.status == 0, "\(slow.errors)")
    let count = try #require((info["video"] as? [String: Any])?["frame_count"] as? Int)
    #expect(try slow.document()["frames_copied"] as? Int == count && count > 1)
    let project = try await slowmo(
      "retime", "live.jpg", "-o", "p.otio", "--speed", "1/4", in: scratch.path)
    #expect(project.status == 64)
    #expect(try Set(scratch.names()).isSuperset(of: ["live.jpg", "slow.mov"]))
  }

  @Test func `Each trigger takes a photo until standard input ends`() async throws {
    let script = """
      cd "$2"
      printf '\\n\\n\\n' | "$1" photo 'synthetic:320x240@60?scene=pattern' -o 'key_{n}.jpg' \
        --trigger key --repeat --json --progress none
      """
    let finished = try await bash(script, scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let files = try #require(try finished.document()["files"] as? [[String: Any]])
    #expect(files.count == 3)
    #expect(Set(files.compactMap { $0["id"] as? Int }).count == 3)
    #expect(try scratch.names() == ["key_1.jpg", "key_2.jpg", "key_3.jpg"])
    for file in files {
      #expect(try await number(file["file"] as? String ?? "") == file["sequence"] as? Int)
    }
  }

  @Test(arguments: ["INT", "TERM"])
  func `A signal ends a time lapse with intact photos`(signal: String) async throws {
    let script = """
      cd "$2"
      "$1" photo 'synthetic:320x240@60?scene=pattern' -o 'lapse_{n}.jpg' --every 50ms --json \
        --progress none &
      lapse=$!
      await '[ -s lapse_4.jpg ]' $lapse
      kill -\(signal) $lapse
      wait $lapse
      """
    let finished = try await bash(script, scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let files = try #require(try finished.document()["files"] as? [[String: Any]])
    #expect(files.count >= 4)
    let names = files.compactMap { $0["file"] as? String }
    #expect(try Set(scratch.names()) == Set(names))
    for file in files {
      #expect(try await number(file["file"] as? String ?? "") == file["sequence"] as? Int)
    }
  }

  @Test(
    .enabled(if: Program.isInstalled("exiftool"), "the exiftool command is not installed"))
  func `Frames exported as JPEG have the location tag of the movie`() async throws {
    let recorded = try await slowmo(
      "record", "synthetic:320x240@240?pace=max&scene=pattern", "-o", "take.mov", "-t", "2",
      "--tag", "make=Maker", "--location", "+46.5-007.25/", in: scratch.path)
    #expect(recorded.status == 0, "\(recorded.errors)")
    let finished = try await slowmo(
      "frames", "take.mov", "--at", "240f", "-o", "f.jpg", in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try await number("f.jpg") == 240)
    let validated = try await run(
      "bash",
      [
        "-c",
        "exiftool -validate -warning -a -s3 f.jpg; "
          + "exiftool -n -s3 -EXIF:Make -EXIF:GPSLatitude -EXIF:GPSLongitudeRef f.jpg",
      ],
      in: scratch.path)
    #expect(validated.output == "OK\nMaker\n46.5\nW\n", "\(validated.output)\(validated.errors)")
  }
}
