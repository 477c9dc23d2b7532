// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The JSON documents that the command prints, and their schemas.
struct DocumentTests {
  @Test func `The JSON output of all commands matches the schemas`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let commands: [[String]] = [
      ["devices"], ["controls", "synthetic"], ["controls", "synthetic", "gain=1"],
      ["controls", "/dev/video99"], ["modes", "synthetic"],
      ["modes", "synthetic", "--min-fps", "240", "--fourcc", "grey", "--probe", "100ms"],
      ["modes", "file:\(take)"], ["info", take],
      [
        "record", "synthetic:320x240@60?pace=max", "-o", "a.mov", "-t", "0.5", "--progress", "none",
      ],
      ["record", "synthetic:320x240@60?drop=100%&pace=max", "-o", "b.mov", "-t", "0.5"],
      ["record", "synthetic", "-o", "c.mov", "--dry-run"],
      [
        "record", "synthetic:320x240@60?pace=max", "-o", "t.mov", "--trigger", "audio:-30dBFS",
        "--post",
        "0.1",
      ],
      [
        "record", "synthetic:320x240@60?pace=max", "-o", "t{n}.mov", "--trigger", "audio:-30dBFS",
        "--post",
        "0.1",
        "--repeat", "-t", "0.5",
      ],
      [
        "record", "synthetic:320x240@60?pace=max", "-o", "u.mov", "--trigger", "signal", "-t",
        "0.1",
      ],
      ["photo", "synthetic:320x240@60?pace=max", "-o", "p{n}.jpg", "--burst", "3"],
      ["photo", "synthetic", "-o", "q.jpg", "--dry-run"],
      ["photo", "file:\(take)?pace=max", "-o", "r{n}.jpg", "--every", "1s", "--count", "100"],
      ["photo", "/dev/video99", "-o", "s.jpg"],
      ["retime", take, "-o", "d.mov", "--speed", "1/8", "--copy", "--pitch", "mute"],
      ["retime", take, "-o", "e.mov", "--range", "1..2", "--speed", "1/3", "--copy", "--dry-run"],
      ["retime", take, "-o", "h.mov", "--preset", "impact", "--at", "1", "--copy", "--dry-run"],
      ["retime", take, "-o", "i.mov", "--preset", "freeze", "--at", "1", "--copy", "--dry-run"],
      ["retime", take, "-o", "m.mov", "--trim", "1.5..2", "--copy", "--pitch", "mute"],
      ["retime", take, "-o", "j.otio", "--speed", "1/8"],
      ["edit", "j.otio", "-o", "k.mov", "--copy", "--pitch", "mute"],
      ["edit", "j.otio", "-o", "l.mov", "--copy", "--dry-run"],
      ["edit", "missing.otio", "-o", "l.mov"],
      ["check", take, "--expect-fps", "120", "--plot", "t.svg"],
      ["check", take, "--times-only"], ["check", "missing.mov"],
      ["frames", take, "--at", "1", "-o", "f.png", "--csv", "f.csv"],
      ["frames", take, "--csv", "g.csv", "--dry-run"],
      ["still", "sheet", take, "-o", "sheet.png", "--tiles", "4"],
      ["still", "finish", take, "-o", "finish.png", "--dry-run"],
      ["still", "trail", "missing.mov", "-o", "trail.png"],
      ["compare", take, take, "-o", "n.mp4", "--at", "1,1.5", "--fps", "10"],
      ["compare", take, take, "-o", "o.mp4", "--fps", "10", "--overlay", "--dry-run"],
      ["compare", take, "missing.mov", "-o", "p.mp4", "--fps", "10"],
      ["sync", take, take, "-o", "q.otio"], ["sync", take, "missing.mov"],
      ["sync", take, take, "--by", "flash"],
      [
        "track", take, "--at", "0.2", "--box", "176,103,32,32", "--until", "0.3", "--scale",
        "57.7=0.5m",
      ],
      ["track", take, "--at", "0.2", "--box", "0,0,1,1"],
      ["measure", take, "--at", "0.2", "--points", "0,0 3,4 3,0"],
      ["measure", take, "--at", "0.2", "--points", "0,0 3,4", "--scale", "5=1m", "--dry-run"],
      ["measure", take, "--at", "9", "--points", "0,0 3,4"],
      ["play", take, "--terminal", "--range", "0..0.2", "--audio", "none"],
      ["scan", take, "--range", "1..1.1"], ["scan", take, "--dry-run"], ["scan", "missing.mov"],
      ["scan", take, "--types", "faces"], ["scan", "file:\(take)?pace=max", "-t", "0.1"],
      ["play", "missing.mov", "--terminal"], ["preview", "/dev/video99", "--terminal"],
      ["bench", "capture", "synthetic:320x240@60?pace=max", "-t", "0.5"],
      ["bench", "writer", "-t", "0.1", "--runs", "1", "--baseline", "ffmpeg"],
      ["bench", "retime", "-t", "0.1", "--runs", "1"], ["bench", "pitch", "missing.mov"],
      ["recover", take], ["recover", "missing.mov"], ["doctor"], ["doctor", "synthetic"],
      ["doctor", "/dev/video99"],
      ["bench", "diff", "missing.json", "missing.json"], ["info", "missing.mov"],
      ["devices", "--nonsense"], ["nonsense"],
    ]
    var documents: [(text: String, verb: String)] = []
    for command in commands {
      let finished = try await run(slowmoPath, command + ["--json"], in: scratch.path)
      let schema = try #require(try finished.document()["schema"] as? String)
      let verb = try #require(schema.split(separator: ".").last?.split(separator: "/").first)
      documents.append((finished.output, String(verb)))
    }
    let misfits = try await misfits(documents, scratch)
    #expect(misfits.count == commands.count)
    for (command, misfit) in zip(commands, misfits) { #expect(misfit == nil, "\(command)") }
  }

  @Test func `Schema validation detects a missing key`() async throws {
    let scratch = try Scratch()
    let whole = try await slowmo("devices", "--json").output
    #expect(try await misfit(whole, verb: "devices", scratch) == nil)
    let broken = whole.replacingOccurrences(of: "\"path\"", with: "\"way\"")
    #expect(try await misfit(broken, verb: "devices", scratch) != nil)
  }

  @Test func `A report file of record matches its JSON schema`() async throws {
    let take = try await Takes.lossy()
    let text = try String(contentsOfFile: take + ".json", encoding: .utf8)
    try await validate(text, verb: "record", try Scratch())
  }

  @Test func `JSON progress is one event per line from start to end`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", "synthetic:320x240@240?drop=5%&seed=7", "-o", scratch.file("a.mov"), "-t", "1",
      "--progress", "json")
    let events = try finished.errors.split(separator: "\n").map { line in
      let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return try #require(event?["event"] as? String)
    }
    #expect(events.first == "start")
    #expect(events.last == "end")
    #expect(events.contains("drop") && events.contains("progress") && events.contains("file"))
  }

  private func validate(_ text: String, verb: String, _ scratch: Scratch) async throws {
    let misfit = try await misfit(text, verb: verb, scratch)
    #expect(misfit == nil, "\(verb): \(text)")
  }

  /// The schema error of a document; nil if it is valid.
  func misfit(_ text: String, verb: String, _ scratch: Scratch) async throws -> String? {
    try await misfits([(text, verb)], scratch)[0]
  }

  /// The errors of Debian's JSON Schema validator (python3-jsonschema); nil for valid documents.
  ///
  /// All documents are validated by one process, since its start takes longer than its work.
  private func misfits(
    _ documents: [(text: String, verb: String)], _ scratch: Scratch
  ) async throws -> [String?] {
    var arguments: [String] = []
    for (text, verb) in documents {
      let path = scratch.file("\(UUID().uuidString).json")
      try text.write(toFile: path, atomically: false, encoding: .utf8)
      arguments += ["\(checkout)/Sources/slowmo/Schemas/\(verb).schema.json", path]
    }
    let script = """
      import json, jsonschema, sys
      misfits = []
      for name, path in zip(sys.argv[1::2], sys.argv[2::2]):
          schema = json.load(open(name))
          jsonschema.Draft202012Validator.check_schema(schema)
          try:
              jsonschema.Draft202012Validator(schema).validate(json.load(open(path)))
              misfits.append(None)
          except (jsonschema.ValidationError, ValueError) as error:
              misfits.append(str(error))
      json.dump(misfits, sys.stdout)
      """
    let finished = try await run("/usr/bin/python3", ["-c", script] + arguments)
    try #require(finished.status == 0, "\(finished.errors)")
    let misfits = try JSONSerialization.jsonObject(with: Data(finished.output.utf8)) as? [Any]
    return try #require(misfits).map { $0 as? String }
  }
}
