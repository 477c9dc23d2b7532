// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankSimulatedCameras
import TestSupport
import Testing

/// The sample programs and their output.
struct SampleTests {
  @Test func `The Swift code of the README equals a sample that runs`() async throws {
    let readme = try String(contentsOfFile: "\(checkout)/README.md", encoding: .utf8)
    let sample = try String(
      contentsOfFile: "\(checkout)/Samples/RecordAndSlow/main.swift", encoding: .utf8)
    #expect(readme.contains("```swift\n\(sample)```\n"))
    // The camera runs in real time. A busy machine may lose frames, which the output shows.
    let scratch = try Scratch()
    let finished = try await run(program("RecordAndSlow"), [], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let words = finished.output.split(separator: " ")
    let stored = try #require(words.count > 1 ? Int(words[1]) : nil)
    #expect(finished.output == "stored \(stored) of 480 frames\n" && stored > 0)
    let take = try await slowmo("info", scratch.file("take.mov"), "--json").document()
    #expect((take["video"] as? [String: Any])?["frame_count"] as? Int == stored)
    let length = try #require(take["duration_ns"] as? Int)
    let info = try await slowmo("info", scratch.file("slow.mov"), "--json").document()
    #expect(info["duration_ns"] as? Int == length + 7_000_000_000)
  }

  @Test func `The sample LiveCube is linked with EGL and OpenGL ES`() async throws {
    let dynamic = try await run("readelf", ["-d", program("LiveCube")])
    try #require(dynamic.status == 0)
    #expect(dynamic.output.contains("libEGL") && dynamic.output.contains("libGLES"))
  }

  @Test func `The sample FramesToPNG writes five frames as PNG files`() async throws {
    let scratch = try Scratch()
    let finished = try await run(program("FramesToPNG"), [], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let lines = finished.output.split(separator: "\n")
    #expect(lines.count == 5)
    for line in lines {
      let name = try #require(line.split(separator: ":").first.map(String.init))
      #expect(line.hasSuffix(": 640x480"))
      let gray = try await FFmpeg.converted(
        scratch.file(name), ["-pix_fmt", "gray", "-f", "rawvideo"])
      try #require(gray.count == 640 * 480)
      let number = FrameNumberPattern.read(width: 640, height: 480) { gray[$1 * 640 + $0] }
      #expect(name == "frame-\(number.map(String.init) ?? "none").png")
    }
  }

  @Test func `The sample SloPoke records and exports slow motion`() async throws {
    let scratch = try Scratch()
    let finished = try await run(
      program("SloPoke"), ["synthetic:320x240@240?pace=max"], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let words = finished.output.split { $0 == " " || $0 == "\n" }.map(String.init)
    // A busy machine may lose frames, which the output shows.
    let counts = words.compactMap { Int($0) }
    try #require(counts.count == 9)
    #expect(counts[0] + counts[1] == 720)
    let methods = ["low-quality", "time-domain", "spectral", "varispeed", "1/2", "1/4", "1/8"]
    for (method, count) in zip(methods, counts.dropFirst(2)) {
      #expect(finished.output.contains(" \(method)\n") && count > 0)
    }
    let take = try await slowmo("info", scratch.file("slopoke.mov"), "--json").document()
    let length = try #require(take["duration_ns"] as? Int) + 7_000_000_000
    let slots = Int((Double(length) * 30 / 1e9).rounded(.up))
    for (name, frames) in [("slopoke-passthrough.mov", counts[0]), ("slopoke-30fps.mp4", slots)] {
      let info = try await slowmo("info", scratch.file(name), "--json").document()
      let found = try #require(info["duration_ns"] as? Int)
      #expect((0..<33_333_334).contains(found - length), "\(name)")
      let counted = try await FFmpeg.probe(
        scratch.file(name), "stream=nb_frames", stream: "v:0")
      #expect(counted == ["\(frames)"], "\(name)")
    }
  }

  @Test func `The sample SlowCamera plays a 240 fps take in slow motion`() async throws {
    let scratch = try Scratch()
    let finished = try await run(
      program("SlowCamera"), ["synthetic:320x240@240", "1/4"], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let lines = finished.output.split(separator: "\n")
    try #require(lines.count == 2)
    let counts = lines[0].split(separator: " ").compactMap { Int($0) }
    try #require(counts.count == 2 && counts[0] <= counts[1])
    #expect(lines[0].contains("@240"))
    let info = try await slowmo("info", scratch.file("slow-camera.mov"), "--json").document()
    #expect((info["video"] as? [String: Any])?["frame_count"] as? Int == counts[0])
    // During one second, playback at 1/4 speed shows a quarter of a second of the movie.
    let played = lines[1].split(separator: " ").compactMap { Int($0) }.first ?? 0
    #expect((1...61).contains(played) && lines[1].hasSuffix("at 1/4"))
    let slow = try await run(program("SlowCamera"), ["synthetic:320x240@30"], in: scratch.path)
    #expect(slow.status == 0 && slow.output.hasSuffix("has no high frame rate\n"))
  }

  @Test func `The sample LiveAnalysis examines 240 frames`() async throws {
    let scratch = try Scratch()
    let finished = try await run(program("LiveAnalysis"), [], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let mean = finished.output.split(separator: " ").last.flatMap { Int($0.dropLast()) }
    #expect(finished.output.hasPrefix("the brightest of 240 frames has a mean of "))
    #expect((1..<255).contains(try #require(mean)))
    try checkLength("LiveAnalysis", atMost: 12)
  }

  @Test func `The sample LiveCube draws live video on a cube`() async throws {
    let scratch = try Scratch()
    let finished = try await run(program("LiveCube"), [], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    var images: [[UInt8]] = []
    for number in 1...4 {
      let gray = try await FFmpeg.converted(
        scratch.file("cube_\(number).png"), ["-pix_fmt", "gray", "-f", "rawvideo"])
      try #require(gray.count == 640 * 480)
      // The corners of the image are black. The middle shows a side of the cube.
      let corners = [0, 639, 640 * 479, 640 * 480 - 1]
      #expect(corners.allSatisfy { gray[$0] == 0 })
      let row = 240 * 640
      let middle = gray[(row + 310)..<(row + 330)]
      #expect(middle.contains { $0 > 0 })
      images.append(Array(gray))
    }
    #expect(Set(images).count == 4)
    #expect(finished.output.contains(" textures for 48 frames"))
  }

  @Test func `The sample ZoomCamera zooms and ramps and cancels a ramp`() async throws {
    let scratch = try Scratch()
    let finished = try await run(
      program("ZoomCamera"), ["synthetic:640x480@60?scene=pattern"], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let lines = finished.output.split(separator: "\n").map(String.init)
    let slider = ["zoom_1.png: factor 1.0", "zoom_2.png: factor 2.0", "zoom_3.png: factor 4.0"]
    #expect(Array(lines.prefix(3)) == slider)
    #expect(lines.count == 6 && lines[3].hasPrefix("zoom_4.png: factor "))
    #expect(Array(lines.suffix(2)) == ["cancelled", "the preview follows"])
    for number in 1...4 {
      let gray = try await FFmpeg.converted(
        scratch.file("zoom_\(number).png"), ["-pix_fmt", "gray", "-f", "rawvideo"])
      #expect(gray.count == 640 * 480)
    }
  }

  @Test func `The sample FaceCamera lists and draws each face once`() async throws {
    let scratch = try Scratch()
    let movie = scratch.file("faces.mov")
    try await FaceImages().writeMovie(movie, of: "2008_002506", count: 6, step: 2)
    let finished = try await run(
      program("FaceCamera"), ["file:\(movie)?pace=max"], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let lines = finished.output.split(separator: "\n").map(String.init)
    #expect(lines.count == 4 && lines[3] == "examined 6 of 6 frames", "\(lines)")
    #expect(Set(lines.prefix(3).map { $0.prefix(6) }) == ["face 1", "face 2", "face 3"])
    let svg = try String(contentsOfFile: scratch.file("faces.svg"), encoding: .utf8)
    #expect(svg.split(separator: "<rect ").count == 4)
    // All three heads are tilted, and two of them are turned.
    let outlines = svg.matches(of: /rotate\(-?\d+\.\d+\) scale\((1\.0|0\.7\d*) 1\)/)
    #expect(outlines.count == 3 && outlines.contains { $0.output.1.hasPrefix("0.7") }, "\(svg)")
    #expect(svg.contains("href=\"faces.jpg\""))
    let gray = try await FFmpeg.converted(
      scratch.file("faces.jpg"), ["-pix_fmt", "gray", "-f", "rawvideo"])
    #expect(!gray.isEmpty)
  }

  @Test func `The sample CodeCamera prints each code once`() async throws {
    let scratch = try Scratch()
    let movie = scratch.file("codes.mov")
    let set = try await CodeFrames("--only", "qr", #"lap\x1b\x5b2J5"#)
    try await set.writeMovie(movie, count: 12)
    let finished = try await run(program("CodeCamera"), ["file:\(movie)?pace=max"])
    #expect(finished.status == 0, "\(finished.errors)")
    let lines = finished.output.split(separator: "\n").map(String.init)
    #expect(lines.count == 2 && lines[1] == "examined 12 of 12 frames", "\(lines)")
    #expect(lines[0].firstMatch(of: /^qr "lap\\u\{1B\}\[2J5" at \d+,\d+$/) != nil, "\(lines)")
  }

  /// Runs AVCam with a script, and with SDL's video driver that needs no display.
  private func avCam(
    _ script: String, in scratch: Scratch, _ environment: [String] = [], _ devices: String...
  ) async throws -> [String] {
    _ = try scratch.write(Array(script.utf8), as: "script.txt")
    let finished = try await run(
      "env",
      ["SDL_VIDEODRIVER=dummy"] + environment + [program("AVCam"), "--script", "script.txt"]
        + devices, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    return finished.output.split(separator: "\n").map(String.init)
  }

  @Test func `The sample AVCam takes photos and movies with two cameras`() async throws {
    let scratch = try Scratch()
    let lines = try await avCam(
      """
      frames 5
      space
      wait photos
      l
      frames 30
      space
      wait photos
      frames 10
      png first.png
      m
      space
      wait recording
      frames 10
      space
      wait movie
      c
      frames 10
      m
      space
      wait photos
      frames 10
      png second.png
      q
      """, in: scratch, [], "synthetic:320x240@60?scene=pattern", "synthetic:160x120@60")
    #expect(
      lines == [
        "photo avcam_1.jpg", "live avcam_2.jpg with avcam_2.mov",
        "movie avcam_movie_1.mov: stopped", "camera synthetic:160x120@60",
        "live avcam_3.jpg with avcam_3.mov",
      ], "\(lines)")
    for (number, width) in [(1, "320"), (2, "320"), (3, "160")] {
      let size = try await FFmpeg.probe(
        scratch.file("avcam_\(number).jpg"), "stream=width", stream: "v:0")
      #expect(size == [width])
    }
    for name in ["avcam_2.mov", "avcam_movie_1.mov", "avcam_3.mov"] {
      let info = try await slowmo("info", scratch.file(name), "--json").document()
      let video = try #require(info["video"] as? [String: Any])
      #expect(try #require(video["frame_count"] as? Int) > 0, "\(name)")
    }
    for name in ["first.png", "second.png"] {
      let gray = try await FFmpeg.converted(
        scratch.file(name), ["-pix_fmt", "gray", "-f", "rawvideo"])
      try #require(gray.count == 640 * 480)
      // Checks the camera image below the middle, and the status text at the lower edge.
      #expect(Set(gray[(340 * 640)..<(341 * 640)]).count > 4, "\(name)")
      #expect(gray[(460 * 640)...].contains { $0 > 180 }, "\(name)")
    }
  }

  @Test func `The sample AVCam resumes after an interruption and focuses`() async throws {
    let scratch = try Scratch()
    let lines = try await avCam(
      """
      frames 3
      wait camera
      frames 3
      click 0.5 0.5
      space
      wait photos
      """, in: scratch,
      [
        "FAKEVIDEO=uvc-webcam unplug=60 replug=0.5",
        "LD_PRELOAD=\(try await FakeCameras.library())",
      ], "/dev/fakevideo0")
    #expect(
      lines == [
        "interrupted: device_gone", "resumed", "focus at 0.5, 0.5", "photo avcam_1.jpg",
      ], "\(lines)")
  }

  @Test func `The sample PhotoBooth counts down and takes four photos`() async throws {
    let scratch = try Scratch()
    let finished = try await run(
      program("PhotoBooth"), ["synthetic:320x240@60?scene=pattern"], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let lines = finished.output.split(separator: "\n").map(String.init)
    try #require(lines.count == 7 && lines.prefix(3) == ["3", "2", "1"])
    var numbers: [Int] = []
    for (index, line) in lines.dropFirst(3).enumerated() {
      let parts = line.components(separatedBy: ": frame ")
      #expect(parts.first == "booth_\(index + 1).jpg")
      let gray = try await FFmpeg.converted(
        scratch.file(parts[0]), ["-pix_fmt", "gray", "-f", "rawvideo"])
      try #require(gray.count == 320 * 240)
      let number = FrameNumberPattern.read(width: 320, height: 240) { gray[$1 * 320 + $0] }
      #expect(number == Int(parts[1]))
      numbers.append(number ?? 0)
    }
    // The countdown took three seconds of frames. A busy machine may lose frames, but keeps them in
    // order.
    #expect(numbers[0] >= 179 && numbers == numbers.sorted() && Set(numbers).count == 4)
  }

  @Test func `The sample TriggeredClip records a clip and slows it down`() async throws {
    let scratch = try Scratch()
    let finished = try await run(program("TriggeredClip"), [], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let clip = try await slowmo("info", scratch.file("clip.mov"), "--json").document()
    let slow = try await slowmo("info", scratch.file("slow.mov"), "--json").document()
    let length = try #require(clip["duration_ns"] as? Int)
    #expect(slow["duration_ns"] as? Int == 8 * length)
    let frames = (clip["video"] as? [String: Any])?["frame_count"] as? Int
    #expect((slow["video"] as? [String: Any])?["frame_count"] as? Int == frames)
    #expect(finished.output.hasPrefix("slow.mov: \(frames ?? 0) frames in "))
    try checkLength("TriggeredClip", atMost: 15)
  }

  @Test func `The sample ThreeClips edits and exports three clips`() async throws {
    let scratch = try Scratch()
    let names = ["a.mov", "b.mov", "c.mov"]
    for name in names {
      let take = try await slowmo(
        "record", "synthetic:320x240@240?pace=max", "-o", scratch.file(name), "-t", "1.5")
      #expect(take.status == 0, "\(take.errors)")
    }
    let finished = try await run(program("ThreeClips"), names, in: scratch.path)
    #expect(finished.output == "edit.mov: 5.5 s\n", "\(finished.errors)")
    // Each output frame shows the expected painted number. At first, 4 output frames show each
    // source frame of 1/60 s.
    let movie = try await slowmo("info", scratch.file("edit.mov"), "--json").document()
    #expect((movie["video"] as? [String: Any])?["frame_count"] as? Int == 330)
    let project = try String(contentsOfFile: scratch.file("edit.otio"), encoding: .utf8)
    for name in names { #expect(project.contains(name)) }
    let again = try await slowmo(
      "edit", scratch.file("edit.otio"), "-o", scratch.file("again.mov"), "--fps", "60")
    #expect(again.status == 0, "\(again.errors)")
    let other = try await slowmo("info", scratch.file("again.mov"), "--json").document()
    #expect(other["duration_ns"] as? Int == 5_500_000_000)
    try checkLength("ThreeClips", atMost: 12)
  }

  /// Counts the lines of a sample that are not empty and not comments.
  private func checkLength(_ name: String, atMost limit: Int) throws {
    let text = try String(
      contentsOfFile: checkout + "/Samples/\(name)/main.swift", encoding: .utf8)
    let lines = text.split(separator: "\n").filter { !$0.hasPrefix("//") }
    #expect(lines.count <= limit, "\(name) has \(lines.count) lines")
  }
}
