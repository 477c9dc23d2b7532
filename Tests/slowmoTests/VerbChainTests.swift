// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// A judge of the times of the capture: chains of verbs over takes in several files, with losses.
///
/// The synthetic camera paints the number of its slot into each frame, so that the image itself says
/// when it was captured. ``TimeMapChainTests`` judges longer chains of the library's exports.
struct VerbChainTests {
  /// The frame rate of the camera, in frames per second.
  private static let rate = 240
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A verb, and the options that make it one link of a chain.
  enum Link: CaseIterable {
    case edited, sharded, batched, compared, reversed, trimmed, ramped, rendered, copied
  }

  /// The capture time of each painted number in nanoseconds, and the number that was stored before it.
  private struct Truth {
    var times: [Int: Int] = [:]
    var previous: [Int: Int] = [:]
  }

  /// Records a take in three files.
  private func take(_ seed: UInt64) async throws -> (files: [String], truth: Truth) {
    let name = "take-\(seed)"
    let finished = try await run(
      slowmoPath,
      [
        "record", "synthetic:160x120@\(Self.rate)?drop=5%&seed=\(seed)&pace=max", "-o",
        "\(name)-{n}.mov", "-t", "0.75", "--segment", "250ms", "--audio", "none", "--progress",
        "none",
      ], in: scratch.path)
    try #require(finished.status == 0, "\(finished.errors)")
    let files = (1...3).map { scratch.file("\(name)-\($0).mov") }
    var truth = Truth()
    var origin: (number: Int, time: Int)?
    for file in files {
      let numbers = try paintedNumbers(Asset(path: file)).map { try #require($0) }
      let rows = try await rows(file)
      try #require(rows.count == numbers.count)
      for (index, number) in numbers.enumerated() {
        let time = try #require(rows[index].time)
        let first = origin ?? (number, time)
        origin = first
        // The camera's clock is exact, and drivers count microseconds.
        let exact = (number - first.number) * 1_000_000_000 / Self.rate
        #expect(abs(time - first.time - exact) <= 1_000, "frame \(index) of \(file)")
        truth.times[number] = time
        if index > 0 { truth.previous[number] = numbers[index - 1] }
      }
    }
    return (files, truth)
  }

  /// A row of the table of frames.
  private struct Row {
    let time: Int?
    let lost: Int?
    let isDuplicate: Bool?
  }

  private func rows(_ path: String) async throws -> [Row] {
    let finished = try await slowmo("frames", path, "--csv", "-")
    try #require(finished.status == 0, "\(finished.errors)")
    return finished.output.split(separator: "\n").dropFirst().map {
      let fields = $0.split(separator: ",", omittingEmptySubsequences: false)
      return Row(
        time: Int(fields[2]), lost: Int(fields[5]), isDuplicate: Int(fields[6]).map { $0 == 1 })
    }
  }

  /// Runs a verb over the movies, and returns the movies that it makes; nil if it refuses to cut them.
  private func made(
    _ link: Link, from files: [String], as name: String, _ random: inout SeededGenerator
  ) async throws -> [String]? {
    // In milliseconds.
    let length = try files.map { try Int(Asset(path: $0).duration.doubleValue * 1_000) }.min() ?? 0
    let first = Int.random(in: length / 12...length / 3, using: &random)
    let start = "\(first)ms"
    let end = "\(first + length / 2)ms"
    let range = "\(start)..\(end)"
    let output = scratch.file("\(name).mov")
    let still = ["--pitch", "mute", "--progress", "none", "-y"]
    let rendered = ["--fps", ["30", "60", "240"].randomElement(using: &random) ?? "30", "--codec"]
    let one = files[Int.random(in: files.indices, using: &random)]
    var commands: [[String]]
    switch link {
    case .copied: commands = [["retime", one, "--range", range, "--speed", "1/8", "--copy"]]
    case .rendered:
      commands = [["retime", one, "--range", range, "--speed", "1/4"] + rendered + ["mjpeg"]]
    case .ramped:
      commands = [
        ["retime", one, "--ramp", "\(start)=1 \(end)=1/4"] + rendered + ["mjpeg"]
      ]
    case .reversed: commands = [["retime", one, "--speed", "-1/2"] + rendered + ["mjpeg"]]
    case .trimmed: commands = [["retime", one, "--trim", range, "--copy"]]
    case .edited:
      let project = try project(
        of: files.shuffled(using: &random), from: first, lasting: length / 2, as: name)
      commands = [["edit", project, "--copy"]]
    case .sharded:
      // Each shard has whole groups of two seconds.
      let options = ["retime", one, "--speed", "1/50", "--fps", "60", "--codec", "h264"]
      commands = ["--shard 1/2", "--shard 2/2", "--join"].map {
        options + $0.split(separator: " ").map(String.init)
      }
    case .batched:
      commands = [["retime"] + files + ["--speed", "1/2", "--copy", "--jobs", "2"]]
    case .compared:
      commands = [
        ["compare", files[0], files[files.count - 1], "--fps", "60", "--speed", "1/4"]
          + ["--at", "\(start),\(start)"]
      ]
    }
    for command in commands {
      var words = command
      switch link {
      case .batched: words += still + ["-o", scratch.file(name + "-{n}.mov")]
      case .compared: words += ["-y", "-o", scratch.file(name + ".mp4")]
      default: words += still + ["-o", output]
      }
      let finished = try await run(slowmoPath, words, in: scratch.path)
      // Copies are limited in speed, and shards in number.
      if finished.status == 65, link != .batched { return nil }
      try #require(finished.status == 0, "\(words) \(finished.errors)")
    }
    switch link {
    case .batched: return files.indices.map { scratch.file(name + "-\($0 + 1).mov") }
    case .compared: return [scratch.file(name + ".mp4")]
    default: return [output]
    }
  }

  /// A project that plays a part of all movies in turn, in milliseconds.
  private func project(
    of files: [String], from start: Int, lasting duration: Int, as name: String
  ) throws -> String {
    func time(_ value: Int) -> [String: Any] {
      ["OTIO_SCHEMA": "RationalTime.1", "rate": 1_000, "value": value]
    }
    let clips: [[String: Any]] = files.map { file in
      [
        "OTIO_SCHEMA": "Clip.1", "name": "part",
        "source_range": [
          "OTIO_SCHEMA": "TimeRange.1", "start_time": time(start), "duration": time(duration),
        ],
        "media_reference": ["OTIO_SCHEMA": "ExternalReference.1", "target_url": file],
      ]
    }
    let timeline: [String: Any] = [
      "OTIO_SCHEMA": "Timeline.1", "name": "parts",
      "tracks": [
        "OTIO_SCHEMA": "Stack.1",
        "children": [["OTIO_SCHEMA": "Track.1", "kind": "Video", "children": clips]],
      ],
    ]
    return try scratch.write(
      Array(JSONSerialization.data(withJSONObject: timeline)), as: name + ".otio")
  }

  /// Compares the times of a movie with the numbers painted into its frames.
  private func judge(_ path: String, _ truth: Truth, _ chain: String) async throws {
    let asset = try Asset(path: path)
    guard case .panes(let panes) = asset.storedTimeMap() else {
      Issue.record("\(chain): the map is not believed")
      return
    }
    let rows = try await rows(path)
    for (number, pane) in panes.enumerated() {
      let painted = try paintedNumbers(asset, in: pane.box)
      try #require(painted.count == rows.count)
      var previous: Int?
      for (index, content) in pane.map.frames.map(\.content).enumerated() {
        let place = Comment("\(chain): frame \(index), pane \(number)")
        guard content == .genuine || content == .repeated else {
          previous = nil
          continue
        }
        let painted = try #require(painted[index], place)
        let time = pane.map.captureTime(ofFrame: index)?.wholeNanoseconds
        #expect(time.map(Int.init) == truth.times[painted], place)
        #expect((content == .repeated) == (painted == previous), place)
        if number == 0 {
          #expect(rows[index].time == truth.times[painted], place)
          #expect(rows[index].isDuplicate == (painted == previous), place)
          // The frame before it in the take is the frame before it here.
          if let previous, previous == truth.previous[painted] {
            #expect(rows[index].lost == painted - previous - 1, place)
          }
        }
        previous = painted
      }
    }
  }

  @Test func `Chains of verbs keep the capture time of each frame`() async throws {
    var judged = 0
    for seed in 0..<UInt64(RunSize.cases(4, full: 100)) {
      var random = SeededGenerator(seed: seed)
      let (takes, truth) = try await take(seed)
      var files = takes
      var chain = "seed \(seed)"
      for step in 0..<Int.random(in: 1...3, using: &random) {
        // Each verb comes first in a chain of its own. Panes are not edited further.
        let first = Link.allCases[Int(seed) % Link.allCases.count]
        let link = step == 0 ? first : Link.allCases.randomElement(using: &random) ?? first
        chain += " \(link)"
        guard
          let made = try await made(link, from: files, as: "step-\(seed)-\(step)", &random)
        else { continue }
        files = made
        for file in files { try await judge(file, truth, chain) }
        judged += files.count
        if link == .compared { break }
      }
    }
    print("\(judged) movies judged")
    #expect(judged >= RunSize.cases(6, full: 150))
  }
}
