// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankSimulatedCameras
import TestSupport
import Testing

/// `slowmo play` in a window, with SDL's dummy video driver instead of a display.
struct PlayWindowTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Runs the command with the given environment variables.
  private func play(_ environment: [String], _ arguments: [String]) async throws -> Finished {
    try await run(
      "env", environment + [slowmoPath, "play"] + arguments, in: scratch.path)
  }

  private func pressed(_ keys: String, _ arguments: String...) async throws -> Finished {
    _ = try scratch.write(Array(keys.utf8), as: "keys.txt")
    return try await play(
      ["SDL_VIDEODRIVER=dummy"],
      [try await Takes.plain(), "--window", "--script", "keys.txt", "--audio", "none", "--json"]
        + arguments)
  }

  private func events(_ finished: Finished, _ type: String) throws -> [String] {
    let events = try #require(try finished.document()["events"] as? [[String: Any]])
    return events.filter { $0["type"] as? String == type }.compactMap { $0["detail"] as? String }
  }

  @Test func `The player window saves the frame and the window as images`() async throws {
    let keys = """
      0 space
      0.1 home
      0.2 .
      0.3 .
      0.4 s
      0.5 ctrl+s
      0.6 alt++
      0.7 ctrl+s
      """
    let finished = try await pressed(keys)
    try #require(finished.status == 0, "\(finished.errors)")
    #expect(finished.errors.isEmpty)
    let names = ["plain-shot0001.png", "plain-shot0002.png", "plain-shot0003.png"]
    #expect(try events(finished, "screenshot") == names)
    // The frame screenshot has the size of the movie, and shows the third frame.
    let frame = try bytes(of: scratch.file(names[0]))
    let image = try frame.withUnsafeBytes {
      try DecodedImage(decoding: $0, codec: "png", width: 320, height: 240, bytesPerPixel: 3)
    }
    let number = FrameNumberPattern.read(width: 320, height: 240) {
      image.bytes[($1 * 320 + $0) * 3 + 1]
    }
    #expect(number == 2)
    // The window first shows the frame at twice its size above the panel, and then larger.
    let whole = try bytes(of: scratch.file(names[1]))
    let window = try whole.withUnsafeBytes {
      try DecodedImage(
        decoding: $0, codec: "png", width: 640, height: 480 + 98, bytesPerPixel: 3)
    }
    #expect(
      FrameNumberPattern.read(width: 320, height: 240) {
        window.bytes[($1 * 2 * 640 + $0 * 2) * 3 + 1]
      } == 2)
    #expect(try bytes(of: scratch.file(names[2])) != whole)
  }

  @Test func `A script can press every key that help lists`() async throws {
    let page = try await run(slowmoPath, ["help", "play"]).output.split(separator: "\n")
    var keys: [Substring] = []
    // Two tables list the keys: `Keys:`, and further keys of the window.
    for start in page.indices
    where page[start] == "Keys:" || page[start].hasSuffix("of the window:") {
      for line in page[(start + 1)...].prefix(while: { $0.hasPrefix("  ") }) {
        let columns = line.split(separator: " ", omittingEmptySubsequences: false)
        keys += columns.dropFirst(2).prefix { !$0.isEmpty }
      }
    }
    #expect(keys.contains("backspace") && keys.contains("alt+down") && keys.contains("?"))
    // These words are no keys of a script: a range of digits, and keys of the buttons.
    let lines = keys.filter { !["to", "tab", "return", "q"].contains($0) }.map { "0 \($0)" }
    let finished = try await pressed(lines.joined(separator: "\n"), "-o", "edited.otio")
    #expect(finished.status == 0, "\(finished.errors)\(finished.output)")
  }

  @Test func `A script clicks buttons and drags in the window of play`() async throws {
    let keys = """
      0 space
      0.1 home
      wait idle
      click step >
      wait idle
      move 0.5,0.5
      frames 2
      png bar.png
      click range start
      drag 0.02,0.9 0.5,0.9
      wait idle
      click range end
      click measure
      drag 0.2,0.2 0.4,0.2
      frames 2
      png measure.png
      """
    let finished = try await pressed(keys)
    try #require(finished.status == 0, "\(finished.errors)\(finished.output)")
    #expect(try events(finished, "key") == ["space", "home", ".", "i", "o", "d"])
    #expect(try events(finished, "screenshot") == ["bar.png", "measure.png"])
    let images = try ["bar.png", "measure.png"].map { try bytes(of: scratch.file($0)) }
    #expect(images[0] != images[1])
    let loop = "0 a\n0.1 .\n0.1 b\n0.2 space\nwait idle"
    let wrong = [
      "wait for", "frames 0", "click nothing here", "0.5 png", "drag 1,1", "1e18 space",
      "99999999999 space", loop,
    ]
    for line in wrong {
      #expect(try await pressed(line).status == 65, "\(line)")
    }
  }

  @Test func `The window shows the keys over the image`() async throws {
    let keys = "0 space\n0 home\n0.1 ctrl+s\n0.2 ?\n0.2 ctrl+s\n0.3 f1\n0.3 ctrl+s\n"
    let finished = try await pressed(keys)
    try #require(finished.status == 0, "\(finished.errors)")
    let images = try (1...3).map { try bytes(of: scratch.file("plain-shot000\($0).png")) }
    #expect(images[0] != images[1])
    #expect(images[0] == images[2])
  }

  private static let hasWeston = ["weston", "Xvfb"].allSatisfy {
    FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)")
  }

  // SDL 2.26 crashes on a compositor without input devices, such as weston's headless backend. So
  // weston runs in a virtual X11 screen, which has them.
  @Test(
    .enabled(if: hasWeston, "weston or Xvfb is not installed"),
    arguments: [("software", 1), ("opengl", 2)])
  func `The window is sharp on Wayland at any density`(renderer: String, density: Int) async throws
  {
    let take = try await Takes.plain()
    _ = try scratch.write(
      Array("0 space\n0.1 home\nwait idle\npng window.png\n".utf8), as: "keys.txt")
    let finished = try await bash(
      """
      chmod 700 .
      Xvfb -displayfd 3 -screen 0 1400x1000x24 3>display 2>/dev/null &
      screen=$!
      await '[ -s display ]' $screen
      export XDG_RUNTIME_DIR=$PWD
      DISPLAY=:$(cat display) weston --backend=x11-backend.so --socket=wayland --no-config \
        --idle-time=0 --width=1300 --height=900 --use-pixman --scale=\(density) 2>weston.log &
      compositor=$!
      await '[ -S wayland ]' $compositor
      env -u DISPLAY WAYLAND_DISPLAY=wayland SDL_VIDEODRIVER=wayland SDL_RENDER_DRIVER=\(renderer) \
        "$1" play '\(take)' --window --script keys.txt --audio none >out 2>errors
      status=$?
      kill $compositor $screen
      wait
      cat errors >&2
      exit $status
      """, in: scratch.path)
    try #require(finished.status == 0, "\(finished.errors)")
    let (width, height) = (640 * density, (480 + 98) * density)
    let window = try bytes(of: scratch.file("window.png")).withUnsafeBytes {
      try DecodedImage(
        decoding: $0, codec: "png", width: width, height: height, bytesPerPixel: 3)
    }
    #expect(window.bytes.contains { $0 > 200 })
  }

  @Test func `The command play shows two clips side by side`() async throws {
    let take = try await Takes.plain()
    // A screenshot waits until the frame of its refresh is decoded, even on a busy machine.
    let finished = try await pressed(
      "0 space\n0.1 home\n0.1 s\n0.2 .\n0.2 s\n0.4 q\n", "--beside", take, "--origin", "0.5",
      "--beside-origin", "120f")
    try #require(finished.status == 0, "\(finished.errors)")
    let beside = try #require(try finished.document()["beside"] as? [String: Any])
    #expect(beside["file"] as? String == take)
    #expect(try #require(beside["due"] as? Int) >= 2)
    #expect(try await DocumentTests().misfit(finished.output, verb: "play", scratch) == nil)
  }

  @Test func `The command play without a display suggests --terminal`() async throws {
    let finished = try await play(
      ["-u", "DISPLAY", "-u", "WAYLAND_DISPLAY", "-u", "SDL_VIDEODRIVER"],
      [try await Takes.plain(), "--json"])
    #expect(finished.status == 69)
    let error = try #require(try finished.document()["error"] as? [String: Any])
    #expect(error["code"] as? String == "no_display")
    #expect((error["hint"] as? String)?.contains("--terminal") == true)
    #expect(finished.errors.isEmpty)
  }

  @Test(arguments: [[], ["--terminal"], ["--script", "keys.txt"], ["--json"]])
  func `The command play needs a file if it cannot open a window`(
    _ options: [String]
  ) async throws {
    let screen = options.isEmpty ? [] : ["DISPLAY=:99"]
    let finished = try await play(
      ["-u", "DISPLAY", "-u", "WAYLAND_DISPLAY", "-u", "SDL_VIDEODRIVER"] + screen, options)
    #expect(finished.status == 64)
    #expect((finished.output + finished.errors).contains("missing expected argument '<file>'"))
  }

  @Test func `Playback begins at the time of --start`() async throws {
    let finished = try await pressed("0 space\n0 s\n", "--start", "0.5", "--speed", "1/32")
    try #require(finished.status == 0, "\(finished.errors)")
    let position = try finished.document()["position_ns"] as? Int
    #expect(try #require(position) >= 500_000_000)
    for time in ["4.5", "nonsense"] {
      let refused = try await pressed("0 q\n", "--start", time, "--range", "0..1")
      #expect(refused.status != 0, "\(time)")
    }
    let outside = try await pressed("0 q\n", "--start", "1.5", "--range", "0..1")
    let error = try outside.document()["error"] as? [String: Any]
    #expect(error?["code"] as? String == "outside_source" && outside.status == 64)
  }

  @Test func `The error for a missing slowmo-full says how to install it`() async throws {
    let alone = scratch.file("slowmo")
    try FileManager.default.copyItem(atPath: slowmoPath, toPath: alone)
    let finished = try await run(alone, ["play", try await Takes.plain()], in: scratch.path)
    #expect(finished.status == 69)
    #expect(finished.errors.split(separator: "\n").count == 1)
    for part in ["needs slowmo-full", "sudo apt install", "overcrank-full", "--terminal"] {
      #expect(finished.errors.contains(part), "\(finished.errors)")
    }
    let document = try await run(
      alone, ["play", try await Takes.plain(), "--json"], in: scratch.path
    ).document()
    #expect((document["error"] as? [String: Any])?["code"] as? String == "missing_component")
    let photo = try await run(
      alone, ["photo", "synthetic", "-o", "photo.heic", "--json"], in: scratch.path)
    #expect(photo.status == 69)
    let missing = try photo.document()["error"] as? [String: Any]
    #expect(missing?["code"] as? String == "missing_component")
    // Playback in the terminal works without slowmo-full.
    let played = try await run(
      alone,
      ["play", try await Takes.plain(), "--terminal", "--range", "0..0.1", "--audio", "none"],
      in: scratch.path)
    #expect(played.status == 0, "\(played.errors)")
  }

  @Test func `The screenshots in the articles are up to date`() async throws {
    let finished = try await run(
      "env",
      [
        "SLOWMO=\(slowmoPath)", "\(checkout)/Samples/window-screenshots.sh", "--check",
        "\(checkout)/Sources/Overcrank/Overcrank.docc/Resources",
      ])
    #expect(finished.status == 0, "\(finished.output)\(finished.errors)")
  }

  @Test func `Only slowmo-full links SDL and libheif`() async throws {
    for (program, links) in [(slowmoPath, false), (slowmoPath + "-full", true)] {
      let dynamic = try await run("readelf", ["-d", program])
      try #require(dynamic.status == 0)
      #expect(dynamic.output.contains("libSDL2") == links, "\(program)")
      #expect(dynamic.output.contains("libheif") == links, "\(program)")
    }
  }

  @Test(
    arguments: [
      ["--window", "--terminal"], ["--terminal", "--beside", "take.mov"],
      ["--script", "keys.txt", "--beside", "take.mov"], ["--origin", "1"],
    ])
  func `Mutually exclusive options of play are rejected`(_ options: [String]) async throws {
    let finished = try await run(slowmoPath, ["play", "take.mov"] + options, in: scratch.path)
    #expect(finished.status == 64, "\(finished.errors)")
  }
}
