// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankPreview
import OvercrankRaster
import OvercrankRecording
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras
@testable import SlowmoCommands

/// `slowmo preview` in a window and in a terminal, and `record --preview`.
struct PreviewTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Runs the command with SDL's dummy video driver, so that its window needs no display.
  private func windowed(_ arguments: String...) async throws -> Finished {
    try await run("env", ["SDL_VIDEODRIVER=dummy", slowmoPath] + arguments, in: scratch.path)
  }

  private func events(_ finished: Finished, _ type: String) throws -> [String] {
    let events = try #require(try finished.document()["events"] as? [[String: Any]])
    return events.filter { $0["type"] as? String == type }.compactMap { $0["detail"] as? String }
  }

  private func ledger(_ finished: Finished) throws -> [String: Int] {
    try #require(try finished.document()["ledger"] as? [String: Int])
  }

  @Test func `A key script of preview takes a photo and a screenshot`() async throws {
    let keys = "0.3 h\n0.35 p\n0.4 g\n0.5 tap:0.5,0.5\n0.6 s\n0.8 ctrl+s\n1 q\n"
    _ = try scratch.write(Array(keys.utf8), as: "keys.txt")
    let finished = try await windowed(
      "preview", "synthetic:320x240@60?scene=pattern", "--script", "keys.txt", "--json")
    try #require(finished.status == 0, "\(finished.errors)")
    #expect(finished.errors.isEmpty)
    #expect(try events(finished, "key") == ["h", "p", "g", "s", "ctrl+s", "q"])
    #expect(try events(finished, "tap") == ["0.5000,0.5000"])
    #expect(try events(finished, "photo") == ["preview-0001.jpg"])
    #expect(try events(finished, "screenshot") == ["preview-window-0001.png"])
    let counts = try ledger(finished)
    let shown = try #require(try finished.document()["shown"] as? Int)
    #expect(shown > 0 && shown == counts["delivered"])
    let document = try finished.document()
    #expect((document["measured_fps"] as? String)?.contains("/") == true, "\(document)")
    #expect(document["measured_fps_value"] is Double)
    let rest = ["delivered", "waiting", "frame_was_late", "out_of_buffers", "corrupt"]
    #expect(counts["offered"] == rest.compactMap { counts[$0] }.reduce(0, +))
    #expect(try await DocumentTests().misfit(finished.output, verb: "preview", scratch) == nil)
    let gray = try await FFmpeg.converted(
      scratch.file("preview-0001.jpg"), ["-pix_fmt", "gray", "-f", "rawvideo"])
    #expect(gray.count == 320 * 240)
    #expect(FrameNumberPattern.read(width: 320, height: 240) { gray[$1 * 320 + $0] } != nil)
    let png = try bytes(of: scratch.file("preview-window-0001.png"))
    #expect(png.starts(with: [0x89, 0x50, 0x4E, 0x47]))
  }

  @Test func `A mode that cannot be shown is refused with the reason`() async throws {
    let clip = try await run(
      slowmoPath,
      ["record", "synthetic:128x96@60?pace=max", "-o", "clip.mov", "-t", "0.2", "--codec", "h264"],
      in: scratch.path)
    try #require(clip.status == 0, "\(clip.errors)")
    for arguments in [
      ["preview", "file:clip.mov", "--delay", "1s"],
      ["preview", "file:clip.mov", "--delay", "1s", "--mode", "128x96"],
      ["photo", "file:clip.mov", "-o", "p.dng", "--mode", "128x96"],
    ] {
      let refused = try await run(
        "env", ["SDL_VIDEODRIVER=dummy", slowmoPath] + arguments + ["--json"], in: scratch.path)
      let error = try #require(try refused.document()["error"] as? [String: String])
      #expect(error["code"] == "no_matching_format")
      #expect(error["message"]?.contains("depend on others") == true, "\(arguments): \(error)")
    }
  }

  @Test func `Keys change the delay and the speed of a running preview`() async throws {
    _ = try scratch.write(Array("0.2 up\n0.3 up\n0.4 down\n0.5 [\n0.9 q\n".utf8), as: "keys.txt")
    let finished = try await windowed(
      "preview", "synthetic:320x240@60", "--script", "keys.txt", "--json")
    try #require(finished.status == 0, "\(finished.errors)")
    let document = try finished.document()
    #expect(document["delay_ns"] as? Int == 1_000_000_000 && document["speed"] as? String == "1/2")
    #expect(try await DocumentTests().misfit(finished.output, verb: "preview", scratch) == nil)
  }

  @Test func `Frames shown before a preview delay is set stay counted`() async throws {
    _ = try scratch.write(Array("1 up\n1.1 q\n".utf8), as: "keys.txt")
    let finished = try await windowed(
      "preview", "synthetic:320x240@60", "--script", "keys.txt", "--json")
    try #require(finished.status == 0, "\(finished.errors)")
    let counts = try ledger(finished)
    #expect(try #require(counts["delivered"]) > 0, "\(counts)")
    let rest = ["delivered", "waiting", "frame_was_late", "out_of_buffers", "corrupt"]
    #expect(counts["offered"] == rest.compactMap { counts[$0] }.reduce(0, +))
  }

  @Test func `A failed write ends the preview and lists the saved files`() async throws {
    _ = try scratch.write(Array("0.5 ctrl+s\n0.6 s\n0.7 q\n".utf8), as: "keys.txt")
    // At first the window is black, so its screenshot is a small file.
    let rows: [(limit: Int, screenshots: [String]?)] = [
      (0, nil), (4_000, ["preview-window-0001.png"]),
    ]
    for row in rows {
      let finished = try await run(
        "env",
        [
          "SDL_VIDEODRIVER=dummy", "prlimit", "--fsize=\(row.limit)", slowmoPath, "preview",
          "synthetic:320x240@60", "--delay", "30s", "--script", "keys.txt", "--json",
        ], in: scratch.path)
      #expect(finished.status == 74, "\(finished.errors)")
      let document = try finished.document()
      let error = try #require(document["error"] as? [String: Any])
      #expect(error["code"] as? String == "disk_full")
      #expect((document["events"] == nil) == (row.screenshots == nil))
      if let screenshots = row.screenshots {
        #expect(try events(finished, "screenshot") == screenshots)
        #expect(try events(finished, "failed").count == 1)
      }
      #expect(try await DocumentTests().misfit(finished.output, verb: "preview", scratch) == nil)
    }
  }

  @Test func `Waiting for the end of a session returns its runtime error`() async throws {
    let lost = MediaError(.deviceLost, "the camera failed")
    let device = try CaptureDevice.named("synthetic")
    let rows: [(events: [SessionEvent], error: MediaError?)] = [
      ([.didStartRunning, .runtimeError(lost), .didStopRunning], lost),
      ([.wasInterrupted(device, .deviceGone), .didStopRunning, .runtimeError(lost)], lost),
      ([.didStartRunning, .didStopRunning], nil),
    ]
    for row in rows {
      let (events, continuation) = AsyncStream.makeStream(of: SessionEvent.self)
      let failure = SessionFailure(events)
      for event in row.events { continuation.yield(event) }
      let error = await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          continuation.resume(returning: failure.waitForEnd(limit: .seconds(86_400)))
        }
      }
      #expect(error == row.error)
    }
  }

  @Test func `A new preview output adds the frame counts of the old one`() {
    var before = DataOutputLedger()
    (before.offered, before.delivered, before.waiting) = (10, 7, 1)
    before.dropped = [.frameWasLate: 2]
    var after = DataOutputLedger()
    (after.offered, after.delivered, after.waiting) = (5, 3, 1)
    after.dropped = [.corrupt: 1]
    let sum = after.adding(before.replaced)
    #expect(sum.offered == 15 && sum.delivered == 10 && sum.waiting == 1)
    #expect(sum.dropped == [.frameWasLate: 3, .corrupt: 1] && sum.isBalanced)
  }

  /// A view that returns scripted inputs, and then is closed.
  private final class ScriptedView: PreviewView {
    let (width, height, isReady) = (320, 240, true)
    private var inputs: [[PreviewInput]]
    /// Whether the next input waits, by the content on screen.
    private let waits: (PreviewContent) -> Bool
    private(set) var contents: [PreviewContent] = []

    init(_ inputs: [[PreviewInput]], while waits: @escaping (PreviewContent) -> Bool) {
      (self.inputs, self.waits) = (inputs, waits)
    }

    func takeInput() -> [PreviewInput]? {
      guard let last = contents.last, !waits(last) else { return [] }
      contents = []
      return inputs.isEmpty ? nil : inputs.removeFirst()
    }

    func present(_ content: PreviewContent) { contents.append(content) }
    func perform(_ step: ViewStep) -> Bool { false }
    func pngData() -> [UInt8]? { nil }
  }

  private struct ScriptedWindows: PreviewWindowProvider {
    nonisolated(unsafe) let view: ScriptedView
    func checkDisplay() {}
    func open(title: String, width: Int, height: Int) -> any PreviewView { view }
  }

  @Test func `The preview zooms and rotates and says what it cannot do`() throws {
    let device = try CaptureDevice.named("synthetic:320x240@60")
    let input = try DeviceInput(device: device, format: try device.format(matching: .any))
    let session = CaptureSession(input)
    let source = try PreviewSource(
      session, delay: .zero, speed: .normal, isMirrored: false, gravity: .resizeAspect)
    var wanted = ["", "zoom 2.00", "zoom 1.00", "rotated by 90", "torch", "slowmo-full", "clips"]
    var seen: [PreviewContent] = []
    let keys = ["", "+", "0", "r", "t", "f", "space"]
    var inputs: [[PreviewInput]] = [[.wheel(4)]]
    inputs += keys.dropFirst(2).map { [.key($0)] }
    let view = ScriptedView(inputs) { content in
      if wanted.isEmpty { return false }
      guard content.image != nil, wanted[0].isEmpty || content.status.contains(wanted[0]) else {
        return true
      }
      seen.append(content)
      wanted.removeFirst()
      return false
    }
    try session.startRunning()
    defer { session.stopRunning() }
    try PreviewRun(
      source, in: session, of: input, view: view, settings: PreviewRun.Settings()
    ).show()
    #expect(wanted.isEmpty, "\(wanted)")
    #expect(input.videoZoomFactor == 1)
    let rotated = try #require(seen.last)
    #expect(rotated.imageRect.width < rotated.imageRect.height)
    #expect(rotated.buttons.contains { $0.key == "t" && $0.isOn == false })
    #expect(!rotated.buttons.contains { $0.key == "space" })
  }

  @Test func `A closed window ends a triggered recording in true words`() throws {
    let device = try CaptureDevice.named("synthetic:320x240@60")
    let input = try DeviceInput(device: device, format: try device.format(matching: .any))
    let session = CaptureSession(input)
    let movie = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: scratch.file("clip.mov")))
    var triggers = try TriggerOptions.parse([
      "--trigger", "key", "--pre", "300ms", "--arm-when-full",
    ])
    triggers.post = .zero
    var labels: [String] = []
    let view = ScriptedView([]) { content in
      if let label = content.gauge?.label { labels.append(label) }
      return content.gauge?.part != 1
    }
    let window = try RecordPreview(
      movie, in: session, of: input, ScriptedWindows(view: view), triggers: triggers)
    let report = try window.show {
      try movie.record(on: triggers.settings()) { event in
        if case .preRoll(let time, let isFull) = event { window.notePreRoll(time, isFull: isFull) }
      }
    }
    #expect(window.wasClosed && report.triggerCount == 0)
    let filling = PreviewStatus.PreRoll(
      held: MediaTime(microseconds: 120_000), wanted: MediaTime(microseconds: 300_000),
      armsWhenFull: true
    ).gauge
    #expect(filling.label == "not armed: pre-roll 0.1 of 0.3 s" && filling.part == 0.4)
    #expect(labels.last == "ready: the pre-roll is full")
    let command = try RecordCommand.parse(["synthetic", "-o", "clip.mov", "--trigger", "key"])
    let problem = try #require(command.problem(report, windowWasClosed: true))
    #expect(problem.status == .gaveUpWaiting && problem.code == "no_trigger")
    #expect(problem.message.contains("the window was closed before a trigger arrived"))
  }

  @Test func `A button in the window of a recording triggers a clip`() async throws {
    _ = try scratch.write(Array("frames 3\nclick trigger\nframes 60\n".utf8), as: "keys.txt")
    let finished = try await windowed(
      "record", "synthetic:320x240@60", "-o", "clip.mov", "--pre", "50ms", "--post", "200ms",
      "--trigger", "key", "--preview", "--script", "keys.txt", "--json")
    try #require(finished.status == 0, "\(finished.errors)\(finished.output)")
    let mark = try #require(try finished.document()["trigger"] as? [String: Any])
    #expect(mark["source"] as? String == "key")
    _ = try scratch.write(Array("frames 10\n".utf8), as: "keys.txt")
    let closed = try await windowed(
      "record", "synthetic:320x240@60", "-o", "all.mov", "--preview", "--script", "keys.txt",
      "--json")
    #expect(closed.status == 0, "\(closed.errors)")
    #expect(try closed.document()["stopped_by"] as? String == "stopped")
    #expect(closed.errors.contains("the script ended, so the recording ended"), "\(closed.errors)")
    let alone = try await windowed("record", "synthetic", "-o", "a.mov", "--script", "keys.txt")
    #expect(alone.status == 64 && alone.errors.contains("--script needs --preview"))
  }

  @Test func `A script clicks a button of the preview`() async throws {
    let keys = "click mirror\nframes 3\npng mirrored.png\nclick m\nclick quit\nframes 1000000\n"
    _ = try scratch.write(Array(keys.utf8), as: "keys.txt")
    let finished = try await windowed(
      "preview", "synthetic:320x240@60", "--script", "keys.txt", "--json")
    try #require(finished.status == 0, "\(finished.errors)\(finished.output)")
    #expect(try events(finished, "key") == ["m", "m", "q"])
    #expect(try events(finished, "screenshot") == ["mirrored.png"])
    _ = try scratch.write(Array("click nothing\n".utf8), as: "keys.txt")
    let refused = try await windowed("preview", "synthetic:320x240@60", "--script", "keys.txt")
    #expect(refused.status == 65 && refused.errors.contains("does not have the control"))
    // A click in the last line is handled, too.
    _ = try scratch.write(Array("frames 2\nclick mirror\n".utf8), as: "keys.txt")
    let last = try await windowed(
      "preview", "synthetic:320x240@60", "--script", "keys.txt", "--json")
    #expect(try events(last, "key") == ["m"])
    _ = try scratch.write(Array("frames \(Int.max)\n".utf8), as: "keys.txt")
    let endless = try await windowed("preview", "synthetic:320x240@60", "--script", "keys.txt")
    #expect(endless.status == 65, "\(endless.errors)")
  }

  @Test func `A script that fails ends the recording`() async throws {
    _ = try scratch.write(Array("frames 3\nclick nothing\n".utf8), as: "keys.txt")
    let failed = try await windowed(
      "record", "synthetic:320x240@60", "-o", "a.mov", "--preview", "--script", "keys.txt")
    #expect(failed.status == 65 && failed.errors.contains("does not have the control"))
  }

  @Test func `A recording with a preview window stores all frames`() async throws {
    let finished = try await windowed(
      "record", "synthetic:320x240@240?pace=max", "--mode", "/mjpg", "-o", "a.mov", "--frames",
      "240", "--preview", "--progress", "none", "--json")
    try #require(finished.status == 0, "\(finished.errors)")
    let counts = try #require(try finished.document()["ledger"] as? [String: Int])
    #expect(counts["stored"] == 240 && counts["expected"] == 240)
  }

  @Test(
    arguments: [
      ("quit", [], 0), ("escape", [], 0), ("signal", [], 0), ("signal", ["-t", "10m"], 130),
      ("suspend", [], 0),
    ] as [(String, [String], Int)])
  func `A slow terminal gets one preview image at a time`(
    mode: String, options: [String], status: Int
  ) async throws {
    let finished = try await run(
      "python3",
      [
        "\(checkout)/Tests/Tools/PreviewTerminal/preview-terminal.py", mode, slowmoPath, "preview",
        "synthetic:320x240@60", "--terminal",
      ] + options, in: scratch.path)
    try #require(finished.status == 0, "\(finished.errors)")
    let seen = try finished.document()
    #expect(seen["started"] as? Bool == true && seen["raw"] as? Bool == true, "\(seen)")
    #expect(seen["most_unanswered"] as? Int == 1, "\(seen)")
    #expect(seen["restored"] as? Bool == true && seen["status"] as? Int == status, "\(seen)")
    let images = try #require(seen["images"] as? Int)
    #expect(images >= 8 && seen["synchronized"] as? Int == images, "\(seen)")
    #expect(try #require(seen["blocks"] as? Int) > 1_000)
    if mode == "suspend" {
      for key in ["suspended", "continued", "whole"] {
        #expect(seen[key] as? Bool == true, "\(seen)")
      }
    }
  }

  @Test func `A photo that cannot be stored does not end the preview`() async throws {
    let finished = try await run(
      "python3",
      [
        "\(checkout)/Tests/Tools/PreviewTerminal/preview-terminal.py", "photo", "prlimit",
        "--fsize=0", slowmoPath, "preview", "synthetic:320x240@60", "--terminal",
      ], in: scratch.path)
    try #require(finished.status == 0, "\(finished.errors)")
    let seen = try finished.document()
    #expect(seen["status"] as? Int == 0, "\(seen)")
    #expect((seen["text"] as? String)?.contains("preview-0001.jpg") == true, "\(seen)")
  }

  @Test func `The command preview without a display suggests --terminal`() async throws {
    let alone = scratch.file("slowmo")
    try FileManager.default.copyItem(atPath: slowmoPath, toPath: alone)
    let rows: [(program: String, arguments: [String], code: String, hint: String)] = [
      (alone, ["preview", "synthetic"], "missing_component", "use --terminal"),
      (
        alone, ["record", "synthetic", "-o", "b.mov", "--preview"], "missing_component", "--preview"
      ),
      (slowmoPath, ["preview", "synthetic"], "no_display", "use --terminal"),
      (slowmoPath, ["record", "synthetic", "-o", "b.mov", "--preview"], "no_display", "--preview"),
      (slowmoPath, ["preview", "synthetic", "--terminal"], "no_terminal", "leave out --terminal"),
    ]
    for row in rows {
      let finished = try await run(
        "setsid",
        ["--wait", "env", "-u", "DISPLAY", "-u", "WAYLAND_DISPLAY", "-u", "SDL_VIDEODRIVER"]
          + [row.program] + row.arguments + ["--json"], in: scratch.path)
      #expect(finished.status == 69, "\(row): \(finished.errors)")
      let error = try #require(try finished.document()["error"] as? [String: Any])
      #expect(error["code"] as? String == row.code, "\(row)")
      #expect((error["hint"] as? String)?.contains(row.hint) == true, "\(row): \(error)")
    }
  }

  @Test(arguments: [
    ["--speed", "2", "--delay", "1"], ["--speed", "1/2"], ["--speed", "1/40", "--delay", "1"],
    ["--delay", "2h"], ["--gravity", "fill"],
  ])
  func `Invalid option combinations of preview are rejected`(options: [String]) async throws {
    let finished = try await run(slowmoPath, ["preview", "synthetic"] + options)
    #expect(finished.status == 64, "\(finished.errors)")
  }

  @Test func `The terminal preview rewrites only cells that change`() throws {
    var canvas = HalfBlockCanvas()
    canvas.resize(columns: 2, rows: 2)
    #expect(canvas.pixelWidth == 2 && canvas.pixelHeight == 2)
    let pool = try PixelBufferPool(format: .bgra, width: 2, height: 2)
    var image = try pool.makePixelBuffer()
    image.withUnsafeMutableBytes(ofPlane: 0) { bytes in
      for index in bytes.indices { bytes[index] = index % 8 < 4 ? 255 : 0 }
    }
    let area = Rect(x: 0, y: 0, width: 2, height: 2)
    func drawn(_ line: String) -> String {
      String(decoding: canvas.draw(image, in: area, line: line), as: UTF8.self)
        .replacing("\u{1B}", with: "~")
    }
    #expect(
      drawn("ab")
        == "~[?2026h~[0m~[2J~[1;1H~[38;2;255;255;255m~[48;2;255;255;255m▀~[38;2;0;0;0m"
        + "~[48;2;0;0;0m▀~[0m~[2;1Hab~[K~[0m~[?2026l")
    #expect(drawn("ab") == "~[?2026h~[0m~[?2026l")
    image.withUnsafeMutableBytes(ofPlane: 0) { $0[6] = 9 }
    #expect(
      drawn("abc")
        == "~[?2026h~[1;2H~[38;2;8;0;0m~[48;2;0;0;0m▀~[0m~[?2026l")
    canvas.forget()
    #expect(drawn("").contains("~[2J"))
  }

  @Test func `Splitting terminal input into chunks does not change keys`() {
    let bytes = Array("q\u{1B}[A \u{1B}[12;34Rz\u{1B}[B\u{1B}OCx\u{1B}xp\u{7F}\u{1}".utf8)
    let wanted: [TerminalInput.Event] = [
      .key("q"), .key("up"), .key("space"), .cursorPosition, .key("z"), .key("down"),
      .key("right"), .key("x"), .key("p"), .key("backspace"),
    ]
    var whole = TerminalInput()
    #expect(whole.events(bytes) == wanted)
    var single = TerminalInput()
    #expect(bytes.flatMap { single.events([$0]) } == wanted)
    var escape = TerminalInput()
    #expect(escape.events([0x1B]).isEmpty)
    #expect(escape.events(Array("\u{1B}[1;1R".utf8)) == [.key("escape"), .cursorPosition])
  }

  @Test func `The status line of the preview shows only known values`() {
    var status = PreviewStatus()
    #expect(status.text == "- fps  lost 0")
    status.frameRate = 239.96
    status.recording = PreviewStatus.Recording(
      stored: 480, missing: 1, bytes: 0, queueFill: 0.123)
    status.bytesPerSecond = 24_000_000
    status.peakDBFS = -.infinity
    status.delay = MediaTime(12, over: 1)
    status.speed = Speed(1, over: 2)
    status.exposureDuration = MediaTime(microseconds: 4_000)
    #expect(
      status.text
        == "240.0 fps  lost 1  stored 480  queue 12 %  disk 24.0 MB/s  -60 dBFS  "
        + "exposure 4.00 ms  delay 12.0 s  speed 1/2")
  }
}
