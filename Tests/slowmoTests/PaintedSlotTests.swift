// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// The source frames that the output frames of a slowed take show, by their painted numbers.
///
/// In the model, each output frame shows the last source frame that is due. Times in a take may be
/// late by a microsecond.
struct PaintedSlotTests {
  enum Kind: CaseIterable { case plain, triggered, jittered }

  /// A take of half a second at 240 fps.
  private func take(_ kind: Kind, in directory: Scratch) async throws -> (
    asset: Asset, numbers: [Int]
  ) {
    let path = directory.file("take.mov")
    switch kind {
    case .plain: try await record(["synthetic:160x120@240?pace=max", "-t", "0.5"], to: path)
    case .triggered:
      // With this first frame, a third of the frame times are rounded up by 2/3 of a microsecond.
      for _ in 0..<100 {
        try await recordAroundKey(to: path, in: directory)
        if try numbers(Asset(path: path), kind)[0] % 3 == 1 { break }
      }
    case .jittered:
      var recipe = MovieRecipe.constant(240, count: 120)
      var random = SeededGenerator(seed: 18)
      for index in recipe.times.indices.dropFirst() {
        recipe.times[index] += Int64.random(in: -800...800, using: &random)
      }
      let source = directory.file("jittered.mov")
      try recipe.write(to: source)
      try await record(["file:\(source)?pace=max", "--codec", "copy"], to: path)
    }
    let asset = try Asset(path: path)
    let found = try numbers(asset, kind)
    #expect(found[0] % 3 == (kind == .triggered ? 1 : 0))
    return (asset, found)
  }

  private func record(_ arguments: [String], to path: String) async throws {
    let finished = try await run(
      slowmoPath, ["record"] + arguments + ["-o", path, "--progress", "none"])
    try #require(finished.status == 0, "\(finished.errors)")
  }

  private func recordAroundKey(to path: String, in directory: Scratch) async throws {
    let script = """
      rm -f lines counter; mkfifo lines
      "$1" record 'synthetic:160x120@240?pace=max&counter=counter' -o "$2" -y --trigger key \
        --pre 100ms --post 407ms --progress none <lines &
      take=$!
      exec 3>lines
      await '[ "$(frames counter)" -gt 100 ]' $take
      echo >&3; exec 3>&-
      wait $take
      """
    let finished = try await bash(script, path, in: directory.path)
    try #require(finished.status == 0, "\(finished.errors)")
  }

  private func numbers(_ asset: Asset, _ kind: Kind) throws -> [Int] {
    guard kind == .jittered else { return try paintedNumbers(asset).map { try #require($0) } }
    var reader = try FrameReader(asset)
    return try (0..<(asset.videoTrack?.frameCount ?? 0)).map {
      try #require(PaintedBlocks.number(in: reader.mediaFrame(at: $0)))
    }
  }

  private func times(_ asset: Asset) throws -> [Rational] {
    let frames = try #require(asset.videoTrack).frames
    return try (0..<frames.entries.count).map { try frames.time(ofFrame: Int64($0)).seconds }
  }

  /// The source frames that output frames show in the model, as indices into the take.
  private func model(
    _ composition: Composition, _ times: [Rational], _ rate: Int128
  ) throws -> [Int] {
    let slack = Rational(1, over: 1_000_000)
    let count = try (composition.duration.seconds * Rational(rate))
      .rounded(.towardPositiveInfinity)
    return try (0..<count).compactMap { slot in
      let instant = Rational(slot, over: rate)
      for segment in composition.segments
      where segment.target.start.seconds <= instant && instant < segment.target.end.seconds {
        let time = try #require(segment.mapping).sourceSeconds(of: instant) + slack
        return times.lastIndex { $0 <= time }
      }
      return nil
    }
  }

  private func timesShown(_ frames: [Int], of count: Int) -> [Int] {
    frames.reduce(into: Array(repeating: 0, count: count)) { $0[$1] += 1 }
  }

  @Test(arguments: Kind.allCases)
  func `Output frames show the source frames that a model predicts`(kind: Kind) async throws {
    let directory = try Scratch()
    let (asset, numbers) = try await take(kind, in: directory)
    let source = try asset.mediaSource()
    let times = try times(asset)
    try #require(numbers == Array(numbers[0]..<numbers[0] + times.count) && times.count >= 119)
    let middle = MediaTime(microseconds: 250_000)
    typealias Point = Composition.SpeedPoint
    let eighth = try Speed(Rational(1, over: 8))
    var plans: [(arguments: [String], slowness: Int64?, composition: Composition)] = [
      (
        ["--ramp", "0.1=1 0.2=1/8 0.3=1/8 0.4=1"], nil,
        try .ramped(
          source,
          points: [(100, .normal), (200, eighth), (300, eighth), (400, .normal)].map {
            Point(MediaTime(microseconds: $0.0 * 1_000), $0.1)
          })
      ),
      (
        ["--preset", "impact", "--at", "0.25"], nil,
        try RetimingPreset.impact.composition(of: source, at: middle)
      ),
    ]
    for slowness in [2, 4, 8] as [Int64] {
      let speed = try Speed(Rational(1, over: Int128(slowness)))
      plans.append(
        (
          ["--speed", "1/\(slowness)"], slowness,
          try .retimed(source, changes: [.init(speed, in: TimeRange(duration: asset.duration))])
        ))
    }
    for plan in plans {
      for rate in [24, 25, 30, 60] as [Int64] {
        let path = directory.file("out.mov")
        let finished = try await run(
          slowmoPath,
          [
            "retime", asset.path, "-o", path, "-y", "--fps", "\(rate)", "--codec", "mjpeg",
            "--json",
          ]
            + ["--pitch", "mute"] + plan.arguments)
        try #require(finished.status == 0, "\(finished.errors)")
        let found = try self.numbers(Asset(path: path), kind).map { $0 - numbers[0] }
        let name = Comment("\(kind) \(plan.arguments) at \(rate)")
        let expected = try model(plan.composition, times, Int128(rate)).prefix(found.count)
        // The number of output frames per source frame, in a take without jitter.
        let each = plan.slowness.map { Double($0 * rate) / 240 }
        if kind != .jittered {
          #expect(found == Array(expected), name)
          if let each, each >= 1, each == each.rounded() {
            #expect(Set(timesShown(found, of: times.count)) == [Int(each)], name)
          }
        } else {
          // Each output frame shows the frame of the model or the next one. The next one is allowed
          // only if no other output frame shows it.
          let isNext = zip(found, expected).map { $0 - $1 }
          #expect(isNext.allSatisfy { $0 == 0 || $0 == 1 }, name)
          let alone = zip(found, isNext).filter { $1 == 1 }.map(\.0)
          #expect(alone.allSatisfy { frame in found.count { $0 == frame } == 1 }, name)
        }
        if let each, each >= 1 {
          #expect(try finished.document()["frames_skipped"] as? Int == 0, name)
          #expect(timesShown(found, of: times.count).allSatisfy { $0 > 0 }, name)
        }
      }
    }
  }

  @Test(arguments: Kind.allCases)
  func `A clip cut at frame numbers exports exactly these frames`(kind: Kind) async throws {
    let directory = try Scratch()
    let (asset, numbers) = try await take(kind, in: directory)
    try #require(numbers.count >= 119)
    for (start, count) in [(0, 10), (17, 31), (40, 1), (61, 50), (50, 64)] {
      // A jittered frame is not at the exact time of its number, so only a cut at 0 is predictable.
      guard kind != .jittered || start == 0 else { continue }
      let project = try directory.write(Array(otio(asset.path, start, count).utf8), as: "cut.otio")
      for writing in [["--copy"], ["--fps", "240", "--codec", "mjpeg"]] {
        let path = directory.file("cut.mov")
        let finished = try await run(
          slowmoPath, ["edit", project, "-o", path, "-y", "--pitch", "mute", "--json"] + writing)
        try #require(finished.status == 0, "\(finished.errors)")
        let found = try self.numbers(Asset(path: path), kind)
        if kind != .jittered {
          #expect(found == Array(numbers[start..<start + count]), "\(writing) \(start)+\(count)")
        } else {
          #expect(found.first == numbers[0] && abs(found.count - count) <= 1)
        }
      }
    }
  }

  /// A project with one cut.
  ///
  /// Times are in frames at 240 fps.
  private func otio(_ path: String, _ start: Int, _ count: Int) -> String {
    func time(_ value: Int) -> String {
      #"{"OTIO_SCHEMA": "RationalTime.1", "rate": 240, "value": \#(value)}"#
    }
    return #"""
      {"OTIO_SCHEMA": "Timeline.1", "name": "cut", "tracks": {"OTIO_SCHEMA": "Stack.1", "children": [
        {"OTIO_SCHEMA": "Track.1", "kind": "Video", "children": [
          {"OTIO_SCHEMA": "Clip.1", "name": "take",
           "source_range": {"OTIO_SCHEMA": "TimeRange.1",
             "start_time": \#(time(start)), "duration": \#(time(count))},
           "media_reference": {"OTIO_SCHEMA": "ExternalReference.1", "target_url": "\#(path)"}}]}]}}
      """#
  }
}
