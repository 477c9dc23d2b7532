// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Two commands that write the same file.
///
/// One of them is rejected.
struct SameNameTests {
  /// A command that writes `t.mov`.
  private enum Writer: CaseIterable {
    /// Takes of a camera at maximum pace, and of a camera in real time.
    case fastTake, pacedTake
    /// A take whose file is rewritten when it ends.
    case faststartTake
    /// A take whose size limit is too small for a single frame.
    case emptyTake
    case retime

    /// The arguments of the command, whose file is identified by the width of its frames.
    func line(width: Int) -> [String] {
      let take = ["record", "-o", "t.mov", "-y", "--json", "--progress", "none", "--frames"]
      switch self {
      case .fastTake: return take + ["24", "synthetic:\(width)x120@240?pace=max"]
      case .pacedTake: return take + ["120", "synthetic:\(width)x120@240"]
      case .faststartTake:
        return take + ["24", "synthetic:\(width)x120@240?pace=max", "--faststart"]
      case .emptyTake: return take + ["24", "synthetic:\(width)x120@240", "--max-size", "1k"]
      case .retime:
        return [
          "retime", "\(width).mov", "-o", "t.mov", "-y", "--speed", "1/8", "--copy", "--json",
          "--progress", "none",
        ]
      }
    }
  }

  /// The frame width and frame count of a movie.
  private struct MovieSummary: Hashable {
    let width: Int
    let count: Int
  }

  private static let widths = [160, 176]

  /// Describes a movie and decodes all its frames; nil if it cannot be played.
  private func summary(_ path: String) async throws -> MovieSummary? {
    let info = try await slowmo("info", path, "--json")
    guard info.status == 0,
      let video = try info.document()["video"] as? [String: Any],
      let width = video["width"] as? Int, let count = video["frame_count"] as? Int
    else { return nil }
    let decoded = try await run("ffmpeg", ["-v", "error", "-i", path, "-f", "null", "-"])
    guard decoded.status == 0, decoded.errors.isEmpty else { return nil }
    return MovieSummary(width: width, count: count)
  }

  /// The movie that a successful command reports.
  private func claimed(_ finished: Finished, width: Int) throws -> MovieSummary {
    let document = try finished.document()
    let count =
      (document["ledger"] as? [String: Int])?["stored"] ?? document["frames_copied"] as? Int
    return MovieSummary(width: width, count: try #require(count))
  }

  @Test func `If two commands write one file the successful movie stays`() async throws {
    var random = SystemRandomNumberGenerator()
    let pairs = RunSize.cases(6, full: 200)
    let sources = try Scratch()
    for width in Self.widths {
      let made = try await slowmo(
        "record", "synthetic:\(width)x120@240?pace=max", "-o", "\(width).mov", "--frames", "30",
        in: sources.path)
      try #require(made.status == 0, "\(made.errors)")
    }
    for number in 0..<pairs {
      // The first pairs are takes, which once overwrote each other's files.
      let writers =
        number < 2
        ? [.pacedTake, number == 0 ? .pacedTake : .faststartTake]
        : [Writer.allCases.randomElement(using: &random), .allCases.randomElement(using: &random)]
          .compactMap { $0 }
      let hasOld = Bool.random(using: &random)
      let delays = [0, Double.random(in: 0...0.3, using: &random)].shuffled(using: &random)
      try await write(writers, after: delays, over: hasOld, sources)
    }
  }

  private func write(
    _ writers: [Writer], after delays: [Double], over hasOld: Bool, _ sources: Scratch
  ) async throws {
    let scratch = try Scratch()
    let old = Data("what was there".utf8)
    for width in Self.widths {
      try FileManager.default.copyItem(
        atPath: sources.file("\(width).mov"), toPath: scratch.file("\(width).mov"))
    }
    let path = scratch.file("t.mov")
    if hasOld { try old.write(to: URL(fileURLWithPath: path)) }
    let before = try scratch.names()
    let lines = zip(writers, Self.widths).map { $0.line(width: $1) }
    let finished = try await withThrowingTaskGroup(of: (Int, Finished).self) { group in
      for (index, line) in lines.enumerated() {
        let delay = delays[index]
        group.addTask {
          (
            index,
            try await run(
              "bash", ["-c", "sleep \(delay); exec \"$@\"", "bash", slowmoPath] + line,
              in: scratch.path)
          )
        }
      }
      var finished = [Finished?](repeating: nil, count: lines.count)
      for try await (index, one) in group { finished[index] = one }
      return finished.compactMap { $0 }
    }
    let trial = Comment(
      rawValue: "\(writers) after \(delays), \(hasOld ? "over a file" : "new"): "
        + "\(finished.map { "\($0.status) \($0.output.suffix(300)) \($0.errors)" })")
    var claims = Set<MovieSummary>()
    for (index, one) in finished.enumerated() {
      if one.status == 0 {
        claims.insert(try claimed(one, width: Self.widths[index]))
        continue
      }
      let error = try #require(try one.document()["error"] as? [String: String], trial)
      if one.status == 73 {
        #expect(error["code"] == "output_busy", trial)
        #expect(error["message"]?.contains("t.mov") == true && error["hint"] != "", trial)
      } else {
        #expect(writers[index] == .emptyTake && error["code"] == "nothing_stored", trial)
      }
    }
    if claims.isEmpty {
      #expect(writers.contains(.emptyTake), trial)
      #expect(hasOld ? try Data(contentsOf: URL(fileURLWithPath: path)) == old : true, trial)
      #expect(try scratch.names() == before, trial)
    } else {
      let left = try await summary(path)
      #expect(left.map(claims.contains) == true, trial)
      #expect(try Set(scratch.names()) == Set(before + ["t.mov"]), trial)
    }
  }

  /// Starts a take, runs some lines of bash once it has stored frames, and ends the take.
  private func take(
    _ scratch: Scratch, _ options: String = "", then lines: String
  ) async throws -> Finished {
    try await bash(
      """
      mkfifo lines
      exec 3<>lines
      echo >&3  # The trigger of takes with `--trigger key`.
      "$1" record synthetic:320x240@240 -o take.mov --json --progress none \(options) \
        <lines >report.json 2>errors &
      take=$!
      await '[ "$(size take.mov)" -gt 500000 ]' $take
      \(lines)
      kill -INT $take
      wait $take
      status=$?
      cat report.json; cat errors >&2
      rm report.json errors lines
      exit $status
      """, in: scratch.path)
  }

  @Test func `Other commands cannot write to a file that is being recorded`() async throws {
    let scratch = try Scratch()
    try FileManager.default.copyItem(
      atPath: try await Takes.plain(), toPath: scratch.file("plain.mov"))
    let finished = try await take(
      scratch,
      then: """
        "$1" record 'synthetic:160x120@240?pace=max' -o take.mov -y --frames 9 --json >record
        echo $? >>record
        "$1" retime plain.mov -o take.mov -y --speed 1/8 --copy --json >retime; echo $? >>retime
        "$1" frames plain.mov --csv take.mov -y --json >frames; echo $? >>frames
        "$1" recover take.mov --json >recover; echo $? >>recover
        """)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    #expect(report["playable"] as? Bool == true)
    let stored = try #require((report["ledger"] as? [String: Int])?["stored"])
    #expect(try await summary(scratch.file("take.mov")) == MovieSummary(width: 320, count: stored))
    for (name, status, code) in [
      ("record", "73", "output_busy"), ("retime", "73", "output_busy"),
      ("frames", "73", "output_busy"), ("recover", "69", "being_recorded"),
    ] {
      let said = try String(contentsOfFile: scratch.file(name), encoding: .utf8)
      #expect(said.contains("\"\(code)\"") && said.contains("take.mov"), "\(said)")
      #expect(said.hasSuffix("\n\(status)\n"), "\(name): \(said)")
    }
    #expect(
      try scratch.names() == ["frames", "plain.mov", "record", "recover", "retime", "take.mov"])
  }

  @Test(arguments: [
    "", "--faststart", "--trigger key --pre 1s --post 1000s --exec 'touch {path}.ran'",
  ])
  func `A file moved over the movie of a running take is unchanged`(options: String) async throws {
    let scratch = try Scratch()
    let other = try Data(contentsOf: URL(fileURLWithPath: try await Takes.plain()))
    try other.write(to: URL(fileURLWithPath: scratch.file("other.mov")))
    let replaced = try await take(scratch, options, then: "mv -f other.mov take.mov")
    #expect(replaced.status == 74, "\(replaced.errors)")
    let document = try replaced.document()
    let error = try #require(document["error"] as? [String: String])
    #expect(error["code"] == "output_replaced")
    #expect(error["message"]?.contains("take.mov") == true && error["hint"] != "")
    #expect(document["playable"] as? Bool == false)
    #expect(try Data(contentsOf: URL(fileURLWithPath: scratch.file("take.mov"))) == other)
    #expect(try scratch.names() == ["take.mov"])
  }

  @Test func `A take whose file was moved reports the new path`() async throws {
    let scratch = try Scratch()
    let moved = try await take(scratch, then: "mv take.mov moved.mov")
    #expect(moved.status == 74, "\(moved.errors)")
    let error = try #require(try moved.document()["error"] as? [String: String])
    #expect(error["code"] == "output_replaced")
    #expect(error["hint"]?.contains("moved.mov") == true, "\(error)")
    let ledger = try #require(try moved.document()["ledger"] as? [String: Int])
    #expect(
      try await summary(scratch.file("moved.mov"))
        == MovieSummary(width: 320, count: try #require(ledger["stored"])))
    #expect(try scratch.names() == ["moved.mov"])
    let removed = try await take(scratch, then: "rm take.mov")
    #expect(removed.status == 74, "\(removed.errors)")
    #expect(removed.output.contains("output_replaced") && removed.output.contains("removed"))
    #expect(try scratch.names() == ["moved.mov"])
  }

  @Test func `A take truncated by another program is reported as failed`() async throws {
    let scratch = try Scratch()
    let damaged = try await take(
      scratch,
      then: """
        truncate -s 200000 take.mov
        await '[ "$(size take.mov)" -gt 1000000 ]' $take
        """)
    #expect(damaged.status == 74, "\(damaged.output)")
    let document = try damaged.document()
    #expect(document["playable"] as? Bool == false || document["error"] != nil)
  }
}
