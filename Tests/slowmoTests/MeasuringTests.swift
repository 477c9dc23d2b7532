// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Measurements of the synthetic ball, whose position follows a formula.
struct MeasuringTests {
  /// The scale in rows per meter.
  ///
  /// The ground is at row 221, 173 rows are 1.5 m, and the ball's radius is 0.1 m.
  private static let perMeter = 173 / 1.5

  // Tracking by color ends before the dashed line, which has the color of the ball.
  @Test(arguments: [("patch", "0.2", 103, "0.8", 144), ("color", "0.1", 143, "0.28", 44)])
  func `Tracking measures the known position and speed of a ball`(
    method: String, start: String, top: Int, end: String, count: Int
  ) async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let csv = scratch.file("ball.csv")
    let finished = try await slowmo(
      "track", take, "--at", start, "--box", "176,\(top),32,32", "--until", end, "--by", method,
      "--scale", "57.7±0.5=0.5m", "--csv", csv, "--overlay", scratch.file("path.svg"), "--json")
    #expect(finished.status == 0, "\(finished.errors)")
    let document = try finished.document()
    #expect(document["frame_count"] as? Int == count && document["found_count"] as? Int == count)
    #expect((document["lost"] as? [Any])?.isEmpty == true)
    let lines = try String(contentsOfFile: csv, encoding: .utf8).split(separator: "\n")
    #expect(
      lines[0] == "index,pts_ns,x,y,score,x_m,y_m,speed_mps,speed_uncertainty_mps,object,seconds,"
        + "capture_ns,vx_mps,vy_mps")
    #expect(lines.count == count + 1)
    var (farthest, covered) = (0.0, 0)
    // The tracked patch is the ball in a box that is not exactly centered on it.
    var origin: Double?
    for line in lines.dropFirst() {
      let fields = line.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
      let (time, y) = (try #require(fields[1]) / 1e9, try #require(fields[3]))
      let expected = 221 - (1.226 * 4 * time * (1 - time) + 0.1) * Self.perMeter
      let shift = method == "patch" ? origin ?? y - expected : 0
      origin = shift
      farthest = max(farthest, abs(y - expected - shift))
      guard let speed = fields[7], let uncertainty = fields[8] else { continue }
      covered += abs(speed - abs(1.226 * 4 * (1 - 2 * time))) <= uncertainty ? 1 : 0
    }
    print(
      "track \(method): at most \(farthest) pixels,",
      "\(covered) of \(count - 2) speeds in the interval")
    #expect(farthest < 0.5)
    // Neighboring speeds share positions, so one inaccurate position can put several speeds outside
    // of their intervals.
    #expect(covered * 10 >= (count - 2) * 9)
    #expect(try String(contentsOfFile: scratch.file("path.svg"), encoding: .utf8).contains("<svg"))
  }

  @Test func `Several objects share a table with axes of the user`() async throws {
    let take = try await Takes.plain()
    let line = [
      "track", take, "--until", "0.3", "--at", "0.2", "--box", "176,103,32,32", "--at", "48f",
      "--box", "176,103,32,32", "--scale", "57.7=0.5m", "--json",
    ]
    let plain = try await run(slowmoPath, line).document()
    let objects = try #require(plain["objects"] as? [[String: Any]])
    #expect(objects.map { $0["object"] as? Int } == [1, 2])
    let points = try #require(objects[0]["points"] as? NSArray)
    #expect(points == plain["points"] as? NSArray && points == objects[1]["points"] as? NSArray)
    let turned = try await run(
      slowmoPath, line + ["--y-axis", "up", "--origin-point", "192,221"]
    ).document()
    func values(_ document: [String: Any], _ key: String) -> [Double?] {
      (document["points"] as? [[String: Any]] ?? []).map { $0[key] as? Double }
    }
    for (down, up) in zip(values(plain, "y"), values(turned, "y")) {
      #expect(abs((down ?? 0) + (up ?? 0) - 221) < 1e-6)
    }
    for (down, up) in zip(values(plain, "vy_mps"), values(turned, "vy_mps")) {
      // Both are printed in decimal.
      #expect((down == nil) == (up == nil) && abs((down ?? 0) + (up ?? 0)) < 1e-12)
    }
    #expect(values(plain, "seconds").first == 0.2)
    let rising = try #require(values(turned, "vy_mps")[5])
    #expect(abs(rising - 1.226 * 4 * (1 - 2 * (0.2 + 5 / 240.0))) < 0.1)
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `An object that is lost in all frames keeps its table`() async throws {
    let scratch = try Scratch()
    let clip = scratch.file("clip.mov")
    let box = "drawbox=x=20:y=20:w=20:h=14:color=white:t=fill:enable='eq(n,0)'"
    let made = try await run(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "color=gray:size=96x64:rate=60:d=0.1", "-vf", box,
        "-c:v", "mjpeg", "-q:v", "2", clip,
      ])
    try #require(made.status == 0, "\(made.errors)")
    let finished = try await slowmo(
      "track", clip, "--at", "0", "--box", "14,14,32,26", "--csv", scratch.file("a.csv"), "--json")
    let table = try String(contentsOfFile: scratch.file("a.csv"), encoding: .utf8)
    let document = try finished.document()
    #expect(document["found_count"] as? Int == 1)
    #expect(finished.status == 65, "\(finished.errors)")
    let error = try #require(document["error"] as? [String: Any])
    #expect(error["code"] as? String == "object_lost")
    #expect(document["frame_count"] as? Int == 6 && table.split(separator: "\n").count == 7)
  }

  @Test func `Two recordings are aligned by their audio and exported`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let late = scratch.file("late.mov")
    let made = try await slowmo(
      "retime", take, "-o", late, "--trim", "0.2..3", "--copy", "--boundary", "squeeze")
    #expect(made.status == 0, "\(made.errors)")
    let project = scratch.file("both.otio")
    let finished = try await slowmo(
      "sync", take, late, "--max-offset", "0.5", "-o", project, "--json")
    #expect(finished.status == 0, "\(finished.errors)")
    let pair = try #require((try finished.document()["pairs"] as? [[String: Any]])?.first)
    let offset = try #require(pair["offset_ns"] as? Int)
    #expect(abs(offset - 200_000_000) < 100_000, "\(pair)")
    #expect(pair["method"] as? String == "audio")
    let exported = try await slowmo(
      "edit", project, "-o", scratch.file("both.mov"), "--fps", "30", "--json")
    #expect(exported.status == 0, "\(exported.errors)")
    // The recording below is named, and both are shown side by side.
    #expect(exported.errors.contains("late.mov) is hidden by the track above"))
    let compared = try await slowmo(
      "compare", project, "-o", scratch.file("side.mp4"), "--fps", "10", "--json")
    #expect(compared.status == 0, "\(compared.errors)")
    let side = try compared.document()
    let clips = try #require(side["clips"] as? [[String: Any]])
    let names = clips.compactMap { $0["file"] as? String }.map { $0.split(separator: "/").last }
    #expect(names == ["plain.mov", "late.mov"])
    #expect(clips[0]["at_ns"] as? Int == offset && clips[1]["at_ns"] as? Int == 0)
    #expect(side["frame_count"] as? Int == 28 && side["width"] as? Int == 640)
    let refused = try await slowmo(
      "compare", project, "-o", scratch.file("x.mp4"), "--fps", "10", "--at", "1")
    #expect(refused.status == 64)
    let info = try await slowmo("info", scratch.file("both.mov"), "--json").document()
    let duration = try #require(info["duration_ns"] as? Int)
    #expect(abs(duration - 2_800_000_000) < 34_000_000)
  }

  @Test func `Distances and angles between points match geometry`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let csv = scratch.file("m.csv")
    let finished = try await slowmo(
      "measure", take, "--at", "0.2", "--points", "0,0 3,4 3,0", "--at", "120f", "--points",
      "10,10 110,10", "--scale", "100±1=2±0.01m", "--point-error", "0.5", "--csv", csv, "--json")
    #expect(finished.status == 0, "\(finished.errors)")
    let document = try finished.document()
    let lines = try #require(document["measurements"] as? [[String: Any]])
    #expect(lines.map { $0["index"] as? Int } == [48, 48, 48, 120])
    #expect(lines.map { $0["points"] as? [Int] } == [[1, 2], [2, 3], [1, 2, 3], [1, 2]])
    #expect(lines.map { $0["pixels"] as? Double } == [5, 4, nil, 100])
    let angle = try #require(lines[2]["degrees"] as? Double)
    #expect(abs(angle - 36.869_897_6) < 1e-6)
    #expect(lines[3]["meters"] as? Double == 2)
    // The uncertainty combines three parts: 0.5 px in each of two directions, 1 % of the ruler in
    // the image, and 0.5 % of its length.
    let error = try #require(lines[3]["meters_uncertainty"] as? Double)
    #expect(abs(error - 2 * (0.00005 + 0.0001 + 0.000_025).squareRoot()) < 1e-9)
    let table = try String(contentsOfFile: csv, encoding: .utf8).split(separator: "\n")
    #expect(table.count == 5)
    #expect(table[4].hasPrefix("120,500000000,1-2,100.000000,0.707107,2.000000,"))
  }

  @Test func `Each kind of invalid measurement has its error code`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let cases: [(line: [String], status: Int32, code: String)] = [
      (["sync", take], 64, "usage"), (["sync", take, take, "-o", "x.mov"], 64, "usage"),
      (["track", take, "--at", "9", "--box", "0,0,20,20"], 64, "outside_source"),
      (["track", take, "--at", "0", "--box", "310,0,20,20"], 64, "outside_source"),
      (["track", take, "--at", "0", "--box", "20,225,9,9"], 65, "ambiguous_match"),
      (["track", take, "--at", "0", "--box", "20,225,9"], 64, "usage"),
      (["track", take, "--box", "20,225,9,9"], 64, "usage"),
      (["track", take, "--at", "0", "--at", "1", "--box", "0,0,20,20"], 64, "usage"),
      (
        ["track", take, "--at", "0", "--box", "0,0,20,20", "--origin-point", "1"], 64, "usage"
      ),
      (
        ["track", take, "--at", "0", "--box", "0,0,20,20", "--scale", "0=1m"], 64, "usage"
      ),
      (["measure", take, "--at", "0", "--points", "0,0 321,0"], 64, "outside_source"),
      (["measure", take, "--at", "9", "--points", "0,0 3,4"], 64, "outside_source"),
      (["measure", take, "--at", "0", "--points", "0,0"], 64, "usage"),
      (["measure", take, "--at", "0", "--points", "0,0 3,x"], 64, "usage"),
      (["measure", take, "--at", "0", "--points", "0,0 nan,1"], 64, "usage"),
      (["measure", take, "--at", "0", "--points", "3,4 3,4"], 64, "usage"),
      (["measure", take, "--at", "0", "--at", "1", "--points", "0,0 3,4"], 64, "usage"),
      (["measure", take, "--at", "0", "--points", "0,0 3,4", "--point-error", "-1"], 64, "usage"),
      (["still", "sheet", take, "-o", "x.jpg"], 64, "usage"),
      (["still", "sheet", take, "-o", "x.png", "--column", "4"], 64, "usage"),
      (["still", "finish", take, "-o", "x.png", "--column", "320"], 64, "outside_source"),
      (["still", "strobe", take, "-o", "x.png", "--range", "8..9"], 64, "outside_source"),
      (["compare", take, take, "-o", "x.mov", "--fps", "30", "--at", "9,1"], 64, "outside_source"),
      (["compare", take, "-o", "x.mov", "--fps", "30"], 64, "usage"),
      (["compare", take, take, "-o", take, "--fps", "30", "-y"], 73, "output_is_input"),
    ]
    for (line, status, code) in cases {
      let finished = try await run(slowmoPath, line + ["--json"], in: scratch.path)
      #expect(finished.status == status, "\(line): \(finished.output)")
      let error = try finished.document()["error"] as? [String: Any]
      #expect(error?["code"] as? String == code, "\(line): \(finished.output)")
    }
    #expect(try scratch.names().isEmpty)
  }

  @Test func `An angle whose points coincide is null in JSON`() async throws {
    let take = try await Takes.plain()
    let arguments = ["measure", take, "--at", "0", "--points", "0,0 1e-170,0 1,1"]
    let table = try await run(slowmoPath, arguments)
    #expect(table.output.contains(",1-2,0.000000,1.414214,,,,,"), "\(table.output)")
    #expect(table.output.contains(",1-2-3,,,,,,,"), "\(table.output)")
    let document = try await run(slowmoPath, arguments + ["--json"]).document()
    let measured = try #require(document["measurements"] as? [[String: Any]])
    #expect(measured[0]["pixels"] as? Double == 0 && measured[2]["degrees"] is NSNull)
  }

  @Test func `SIGTERM ends the still command that waits for a named pipe`() async throws {
    let scratch = try Scratch()
    let script = """
      mkfifo pipe.png
      "$1" still sheet "$2" -o pipe.png -y --tiles 1 &
      still=$!
      # 7 is poll(2), here of no descriptor: the program waits for a reader.
      await 'grep -q "^7 0x0 0x0 " /proc/$2/syscall' $still
      kill -TERM $still
      wait $still
      """
    let finished = try await bash(script, try await Takes.plain(), in: scratch.path)
    #expect(finished.status == 143, "\(finished.errors)")
    #expect(try scratch.names() == ["pipe.png"])
  }
}
