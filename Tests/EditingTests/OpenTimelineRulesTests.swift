// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Projects of other programs are read by the rules of OpenTimelineIO.
struct OpenTimelineRulesTests {
  private func read(_ text: String) throws -> OpenTimelineDocument {
    try OpenTimelineDocument(parsing: text) { (path) throws(MediaError) in
      try MediaSource(path: path, duration: MediaTime(seconds: 100_000))
    }
  }

  private func timeline(_ stack: String) -> String {
    "{\"OTIO_SCHEMA\": \"Timeline.1\", \"name\": \"other\", \"tracks\": \(stack)}"
  }

  private func common(
    _ random: inout SeededGenerator, isLeaf: Bool
  ) throws -> TimelineItem.Common {
    var common = TimelineItem.Common()
    let frames = Int64.random(in: 2...12, using: &random)
    if isLeaf || Int.random(in: 0..<3, using: &random) == 0 {
      // Ranges of clips stay inside their media. Ranges of nested compositions may extend beyond
      // the ends of those compositions.
      let start = Int64.random(in: isLeaf ? 9_000...9_999 : 0...6, using: &random)
      common.range = (Rational(Int128(start), over: 24), Rational(Int128(frames), over: 24))
    }
    if Int.random(in: 0..<3, using: &random) == 0 {
      let known = [(1, 2), (2, 1), (-1, 1), (-1, 2), (3, 4), (0, 1), (1, 8)].map {
        Rational(Int128($0.0), over: Int128($0.1))
      }
      common.speeds = try (0..<Int.random(in: 1...2, using: &random)).map { _ in
        try #require(known.randomElement(using: &random))
      }
    }
    if isLeaf, Int.random(in: 0..<5, using: &random) == 0 {
      let offsets = (0...frames + 1).map { _ in Int.random(in: -5...5, using: &random) }
      common.lookup = (offsets, 24)
    }
    common.isEnabled = Int.random(in: 0..<8, using: &random) > 0
    return common
  }

  private func item(_ random: inout SeededGenerator, depth: Int) throws -> TimelineItem {
    switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &random) {
    case 0: return .gap(Rational(.random(in: 1...10, using: &random), over: 24))
    case 4: return try track(&random, depth: depth - 1)
    case 5:
      return .stack(
        try (0..<Int.random(in: 1...3, using: &random)).map { _ in
          try item(&random, depth: depth - 1)
        }, try common(&random, isLeaf: false))
    default:
      return .clip(
        path: ["a.mov", "b.mov", "c.mov"].randomElement(using: &random) ?? "",
        available: Rational(Int64.random(in: 0...1, using: &random) * 100),
        try common(&random, isLeaf: true))
    }
  }

  private func track(_ random: inout SeededGenerator, depth: Int) throws -> TimelineItem {
    var children = try (0..<Int.random(in: 1...4, using: &random)).map { _ in
      try item(&random, depth: depth)
    }
    if Int.random(in: 0..<3, using: &random) == 0 {
      let fade = TimelineItem.transition(
        before: Rational(1, over: 24), after: Rational(1, over: 12))
      children.insert(fade, at: Int.random(in: 0...children.count, using: &random))
    }
    return .track(children, try common(&random, isLeaf: false))
  }

  @Test(arguments: 0..<UInt64(RunSize.cases(60, full: 240)))
  func `Random timelines match a reference interpreter of OTIO`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let tracks = try (0..<Int.random(in: 1...3, using: &random)).map { _ in
      try track(&random, depth: 2)
    }
    // Disabled children of the outermost stack do not count in its length.
    let enabled = tracks.filter {
      if case .track(_, let common) = $0 { common.isEnabled } else { false }
    }
    if enabled.isEmpty { return }
    var common = try common(&random, isLeaf: false)
    common.isEnabled = true
    let visible = TimelineItem.stack(enabled, common)
    let found = try read(timeline(visible.text(isOld: Bool.random(using: &random))))
    let length = try visible.length()
    #expect(found.composition.duration.seconds == length)
    for _ in 0..<200 where length > .zero {
      // The time is never at the edge of a frame, where forward and backward playback differ.
      let time =
        length * Rational(.random(in: 0..<9_973, using: &random), over: 9_973)
        + Rational(1, over: 1_000_003)
      guard time < length else { continue }
      let (seen, expected) = (
        try found.composition.visibleFrame(at: time), try visible.visibleFrame(at: time)
      )
      let isSame =
        seen?.path == expected?.path
        && abs((seen?.time.doubleValue ?? 0) - (expected?.time.doubleValue ?? 0)) < 1e-8
      #expect(isSame, "seed \(seed) at \(time): \(seen as Any), not \(expected as Any)")
      if !isSame { return }
    }
  }

  private let clip = """
    {"OTIO_SCHEMA": "Clip.1", "source_range": {"start_time": {"value": 24, "rate": 24},
     "duration": {"value": 24, "rate": 24}}, "media_reference":
     {"OTIO_SCHEMA": "ExternalReference.1", "target_url": "a.mov"}, "effects": [EFFECTS]}
    """

  private func track(_ children: String, kind: String = "Video", more: String = "") -> String {
    "{\"OTIO_SCHEMA\": \"Track.1\", \"kind\": \"\(kind)\", \(more) \"children\": [\(children)]}"
  }

  private func stack(_ children: String...) -> String {
    "{\"OTIO_SCHEMA\": \"Stack.1\", \"children\": [\(children.joined(separator: ","))]}"
  }

  private func plain(_ effects: String = "") -> String {
    clip.split(separator: "EFFECTS").joined(separator: effects)
  }

  @Test func `A project time effect without a valid speed is refused`() throws {
    for effect in [
      #"{"OTIO_SCHEMA": "TimeEffect.1", "effect_name": "Curve"}"#,
      #"{"OTIO_SCHEMA": "TimeWarp.1"}"#,
      #"{"OTIO_SCHEMA": "Effect.1", "effect_name": "Time Remap"}"#,
      #"{"OTIO_SCHEMA": "LinearTimeWarp.1", "time_scalar": "fast"}"#,
      #"{"OTIO_SCHEMA": "LinearTimeWarp.1", "time_scalar": 1e300}"#,
      #"{"OTIO_SCHEMA": "TimeEffect.1", "metadata": {"lookup": [0, 1, 2]}}"#,
    ] {
      let error = #expect(throws: MediaError.self) {
        try read(timeline(stack(track(plain(effect)))))
      }
      #expect(error?.code == .invalidProject, "\(effect)")
    }
    // A disabled effect and an image effect do not change the speed.
    let found = try read(
      timeline(
        stack(
          track(
            plain(
              #"{"OTIO_SCHEMA": "TimeEffect.1", "enabled": false}, {"OTIO_SCHEMA": "Effect.1"}"#))))
    )
    #expect(found.composition.segments.map(\.description) == ["a.mov 1/1..2/1 -> 0/1..1/1"])
    #expect(found.warnings.count == 1)
  }

  @Test func `Project tracks that are not played are not validated`() throws {
    let broken = #"{"OTIO_SCHEMA": "Clip.1", "effects": [{"OTIO_SCHEMA": "TimeWarp.1"}]}"#
    let trimmed =
      #""source_range": {"start_time": {"value": 0, "rate": 1}, "duration": {"value": 0, "rate": 1}},"#
    let text = timeline(
      stack(
        track("", more: trimmed), track(broken, more: "\"enabled\": false,"),
        track(broken, kind: "Subtitle"), track(plain()), track(plain(), kind: "Audio"),
        track(broken, kind: "Audio")))
    let found = try read(text)
    #expect(found.composition.tracks.map(\.mediaType) == [.video, .audio])
    #expect(found.composition.segments.map(\.description) == ["a.mov 1/1..2/1 -> 0/1..1/1"])
    #expect(found.warnings.count == 3, "\(found.warnings)")
  }

  @Test func `Media hidden by a higher track may be missing`() throws {
    let missing = MediaError(.fileNotFound, "gone.mov is missing")
    let other = plain().split(separator: "a.mov").joined(separator: "gone.mov")
    func read(_ text: String) throws -> OpenTimelineDocument {
      try OpenTimelineDocument(parsing: text) { (path) throws(MediaError) in
        if path == "gone.mov" { throw missing }
        return try MediaSource(path: path, duration: MediaTime(seconds: 10))
      }
    }
    let found = try read(timeline(stack(track(other), track(plain()))))
    #expect(found.composition.segments.map(\.description) == ["a.mov 1/1..2/1 -> 0/1..1/1"])
    #expect {
      try read(timeline(stack(track(plain()), track(other))))
    } throws: {
      ($0 as? MediaError)?.code == .fileNotFound
    }
  }

  @Test(arguments: [MediaError.Code.invalidData, .noPermission, .readFailed, .cancelled])
  func `Media hidden by a higher track must be readable`(code: MediaError.Code) throws {
    let other = plain().split(separator: "a.mov").joined(separator: "bad.mov")
    let error = #expect(throws: MediaError.self) {
      try OpenTimelineDocument(parsing: timeline(stack(track(other), track(plain())))) {
        (path) throws(MediaError) in
        if path == "bad.mov" { throw MediaError(code, "bad.mov cannot be read") }
        return try MediaSource(path: path, duration: MediaTime(seconds: 10))
      }
    }
    #expect(error?.code == code)
    // The clip plays a part that its media does not have.
    let short = #expect(throws: MediaError.self) {
      try OpenTimelineDocument(parsing: timeline(stack(track(other), track(plain())))) {
        (path) throws(MediaError) in
        try MediaSource(path: path, duration: MediaTime(seconds: path == "bad.mov" ? 1 : 10))
      }
    }
    #expect(short?.code == .invalidProject)
  }

  @Test func `Still images become freeze frames and generators become gaps`() throws {
    let still = plain().split(separator: "a.mov").joined(separator: "title.png")
    let generated = plain().split(separator: "ExternalReference").joined(
      separator: "GeneratorReference")
    let found = try OpenTimelineDocument(parsing: timeline(stack(track("\(still), \(generated)"))))
    { (path) throws(MediaError) in
      try MediaSource(path: path, duration: MediaTime(1, over: 25))
    }
    #expect(
      found.composition.segments.map(\.description) == [
        "title.png hold 0/1 -> 0/1..1/1", "empty -> 1/1..2/1",
      ])
    #expect(found.warnings.count == 1)
    let error = #expect(throws: MediaError.self) { try read(timeline(stack(track(generated)))) }
    #expect(error?.code == .invalidProject)
  }

  @Test func `The JSON literal Inf is accepted outside of strings`() throws {
    let text = timeline(
      "{\"OTIO_SCHEMA\": \"Stack.1\", \"metadata\": [Inf, -Inf, \"\\\"Inf\"], \"children\": []}")
    #expect(try read(text).composition.tracks.isEmpty)
  }

  @Test func `Deeply nested timelines are refused`() throws {
    for depth in [20, 70, 200, 2_000] {
      var text = plain()
      for _ in 0..<depth { text = track(text) }
      let result = Result { try read(timeline(stack(text))) }
      if depth == 20 {
        #expect(try result.get().composition.duration == MediaTime(seconds: 1))
      } else {
        #expect(throws: MediaError.self) { try result.get() }
      }
    }
  }
}
