// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Projects that this library and other programs wrote.
struct OpenTimelineTests {
  private func source(_ path: String, _ seconds: Int64 = 10) throws(MediaError) -> MediaSource {
    try MediaSource(
      path: path, duration: MediaTime(seconds: seconds),
      tracks: [SourceTrack(.video, rotation: 90), SourceTrack(.audio, language: "swe")])
  }

  private func read(_ text: String) throws -> OpenTimelineDocument {
    try OpenTimelineDocument(parsing: text) { (path) throws(MediaError) in try source(path) }
  }

  /// A project with one track.
  ///
  /// The items of the track are given as JSON.
  private func project(_ items: String..., kind: String = "Video") -> String {
    """
    {"OTIO_SCHEMA": "Timeline.1", "name": "plain", "tracks": {"OTIO_SCHEMA": "Stack.1",
     "children": [{"OTIO_SCHEMA": "Track.1", "kind": "\(kind)",
       "children": [\(items.joined(separator: ","))]}]}}
    """
  }

  private func range(_ start: Double, _ duration: Double, rate: Double = 24) -> String {
    """
    {"OTIO_SCHEMA": "TimeRange.1",
     "start_time": {"OTIO_SCHEMA": "RationalTime.1", "value": \(start), "rate": \(rate)},
     "duration": {"OTIO_SCHEMA": "RationalTime.1", "value": \(duration), "rate": \(rate)}}
    """
  }

  private func clip(_ range: String, effects: String = "", available: String = "null") -> String {
    """
    {"OTIO_SCHEMA": "Clip.1", "name": "c", "source_range": \(range), "effects": [\(effects)],
     "media_reference": {"OTIO_SCHEMA": "ExternalReference.1", "target_url": "a%20b.mov",
       "available_range": \(available)}}
    """
  }

  private func warp(_ scalar: Double) -> String {
    """
    {"OTIO_SCHEMA": "LinearTimeWarp.1", "effect_name": "LinearTimeWarp", "time_scalar": \(scalar)}
    """
  }

  private func table(_ project: OpenTimelineDocument) -> [String] {
    project.composition.segments.map(\.description)
  }

  @Test(
    "Reading a written project gives the same composition",
    arguments: 0..<UInt64(RunSize.cases(15, full: 60)))
  func roundTrip(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let sources = try ["a.mov", "/b c/å.mov", "100%.mov"].map { (path) throws(MediaError) in
      try source(path)
    }
    var composition = Composition()
    for _ in 0..<Int.random(in: 1...12, using: &random) {
      let one = try #require(sources.randomElement(using: &random))
      let start = Int64.random(in: 0..<2_000, using: &random)
      let part = try TimeRange.of(
        start, .random(in: start + 20...2_400, using: &random), per: 240)
      let position = composition.duration
      try composition.insertTimeRange(part, of: one, at: position)
      let inserted = try TimeRange(start: position, end: composition.duration)
      switch Int.random(in: 0..<7, using: &random) {
      case 0: try composition.reverse(inserted)
      case 1: try composition.freezeFrame(at: composition.duration, for: .init(seconds: 1))
      case 2: try composition.insertEmptyTimeRange(inserted)
      case 3, 4:
        let speeds = try [(1, 1), (1, 8), (2, 1), (1, 3)].map { try Speed.of($0, $1) }
        let ramp = SpeedRamp(
          from: try #require(speeds.randomElement(using: &random)), to: try .of(3, 4),
          easing: Bool.random(using: &random) ? .linear : .easeInOut)
        try? composition.setSpeedRamp(ramp, in: inserted)
        if Bool.random(using: &random) {
          try? composition.reverse(TimeRange(start: position, end: composition.duration))
        }
        // A cut inside the ramp leaves two parts of the same curve.
        let middle = try? MediaTime(
          (position.seconds + composition.duration.seconds) / Rational(2))
        if let middle { try? composition.freezeFrame(at: middle, for: .init(seconds: 1)) }
      default:
        let length = try MediaTime(
          inserted.duration * Rational(.random(in: 1...8, using: &random), over: 3)
        )
        try? composition.scaleTimeRange(inserted, toDuration: length)
      }
    }
    composition.markers = [
      CompositionMarker("hit", try .of(1, 3, per: 7), color: "RED", comment: "\"now\"\n")
    ]
    var project = OpenTimelineDocument(composition, name: "round")
    let text = try project.text()
    let again = try read(text)
    #expect(again.warnings.isEmpty)
    #expect(again.name == "round")
    #expect(again.composition == composition)
    #expect(try again.text() == text)
    project.name = "other"
    #expect(try project.text() != text)
  }

  @Test func `Reads OTIO clips with speeds and gaps and freeze frames`() throws {
    let found = try read(
      project(
        clip(range(24, 48)), clip(range(24, 48), effects: warp(0.125)),
        "{\"OTIO_SCHEMA\": \"Gap.1\", \"source_range\": \(range(0, 12))}",
        clip(range(0, 24), effects: warp(-2)),
        clip(range(12, 24), effects: "{\"OTIO_SCHEMA\": \"FreezeFrame.1\", \"time_scalar\": 0}"),
        clip("null", available: range(0, 240))))
    #expect(found.warnings.isEmpty)
    #expect(
      table(found) == [
        "a b.mov 1/1..3/1 -> 0/1..2/1", "a b.mov 1/1..5/4 -> 2/1..4/1", "empty -> 4/1..9/2",
        "a b.mov reversed 0/1..2/1 -> 9/2..11/2", "a b.mov hold 1/2 -> 11/2..13/2",
        "a b.mov 0/1..10/1 -> 13/2..33/2",
      ])
  }

  @Test func `NTSC rates and time codes of OTIO clips are read exactly`() throws {
    let found = try read(
      project(
        clip(
          range(86_400 + 48, 24, rate: 23.976023976023978),
          available: range(86_400, 240, rate: 23.976023976023978)),
        clip(range(0, 30, rate: 29.97)), clip(range(0, 1, rate: 0.3))))
    #expect(
      table(found) == [
        "a b.mov 1001/500..3003/1000 -> 0/1..1001/1000",
        "a b.mov 0/1..1001/1000 -> 1001/1000..1001/500",
        "a b.mov 0/1..10/3 -> 1001/500..8003/1500",
      ])
  }

  @Test func `A project ramp changed by another program gives a warning`() throws {
    let clip = try source("a.mov")
    let ramped = try Composition.ramped(
      clip,
      points: [
        .init(MediaTime(seconds: 1), .normal), .init(MediaTime(seconds: 2), try .of(1, 8)),
        .init(MediaTime(seconds: 2), .normal),
      ])
    var composition = Composition()
    composition.tracks = ramped.tracks.filter { $0.mediaType == .video }
    let text = try OpenTimelineDocument(composition).text()
    let changed = text.replacingOccurrences(
      of: "\"OTIO_SCHEMA\" : \"LinearTimeWarp.1\"", with: "\"OTIO_SCHEMA\" : \"FreezeFrame.1\"",
      first: 1)
    let found = try read(changed)
    #expect(found.warnings.count == 1, "\(found.warnings)")
    // In the changed text, the first clip of the ramp is a freeze frame. The other clips keep their
    // constant speeds.
    #expect(found.composition.segments[1].mapping?.motion == .hold)
    #expect(found.composition.segments.count > composition.segments.count)
  }

  @Test func `A project speed ramp is stored as many constant-speed clips`() throws {
    var composition = Composition(try source("a.mov"))
    try composition.setSpeedRamp(
      SpeedRamp(from: .normal, to: .of(1, 8), easing: .easeInOut), in: .of(1, 2))
    let text = try OpenTimelineDocument(composition).text()
    // Without our metadata, only the values of OpenTimelineIO remain.
    let plain = text.replacingOccurrences(of: "\"overcrank\"", with: "\"elsewhere\"")
    let found = try read(plain)
    #expect(found.warnings.isEmpty)
    let ends = [found.composition.duration, composition.duration].map(\.doubleValue)
    #expect(abs(ends[0] - ends[1]) < 1e-8)
    #expect(found.composition.segments.count > 20)
    for step in 0..<199 as Range<Int128> {
      let instant = composition.duration.seconds * Rational(step, over: 200)
      let exact = try #require(try composition.visibleFrame(at: instant)).time.doubleValue
      let near = try #require(try found.composition.visibleFrame(at: instant)).time.doubleValue
      #expect(abs(exact - near) < 0.001)
    }
  }

  @Test(arguments: [
    ("", "not JSON"), ("[]", "not an OpenTimelineIO timeline"),
    ("{\"a\": 1}", "not an OpenTimelineIO"),
    ("{\"OTIO_SCHEMA\": \"Marker.2\"}", "not an OpenTimelineIO timeline"),
  ])
  func `Text that is not a project is refused with a reason`(text: String, what: String) {
    let error = #expect(throws: MediaError.self) { try read(text) }
    #expect(error?.code == .invalidProject)
    #expect(error?.description.contains(what) == true, "\(error?.description ?? "")")
  }

  @Test func `Invalid project items are refused and ignored items reported`() throws {
    func refuses(_ item: String) {
      let error = #expect(throws: (any Error).self) { try read(project(item)) }
      #expect(error is MediaError, "\(item)")
    }
    refuses("{\"OTIO_SCHEMA\": \"Marker.2\"}")
    refuses("{\"OTIO_SCHEMA\": \"Clip.2\", \"source_range\": \(range(0, 24))}")
    refuses("{\"OTIO_SCHEMA\": \"Gap.1\"}")
    refuses(clip(range(0, 0)))
    refuses(clip(range(0, -5)))
    refuses(clip(range(-24, 24)))
    refuses(clip(range(0, 480)))
    refuses(clip("null"))
    refuses(clip(range(0, 1e300)))
    refuses(clip(range(0, 24, rate: 0)))
    refuses(clip(range(0, 24), effects: warp(1e-300)))
    let found = try read(
      project(
        clip(range(0, 24), effects: "{\"OTIO_SCHEMA\": \"Effect.1\"}"),
        "{\"OTIO_SCHEMA\": \"Transition.1\"}", clip(range(228, 12.5))))
    #expect(found.warnings.count == 3, "\(found.warnings)")
    let other = try read(project(clip(range(0, 24)), kind: "Subtitle"))
    #expect(other.warnings.count == 1 && other.composition.tracks.isEmpty)
  }

  /// A damaged project must give an error or a valid composition, and never a crash.
  @Test func `A damaged project gives an error or a valid composition`() throws {
    var composition = Composition(try source("a.mov"))
    try composition.reverse(.of(0, 2))
    composition.tracks.removeLast()
    let bytes = Array(try OpenTimelineDocument(composition).text().utf8)
    let plain = Array(
      project(clip(range(24, 48), effects: warp(0.5)), clip(range(0, 24))).utf8)
    var random = SeededGenerator(seed: 7)
    var readable = 0
    for number in 0..<RunSize.cases(750, full: 3_000) {
      var damaged = number % 5 == 0 ? bytes : plain
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let position = Int.random(in: 0..<damaged.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: damaged[position] = UInt8.random(in: 32...126, using: &random)
        case 1: damaged.remove(at: position)
        default:
          damaged.insert(
            Array("0123456789-.eE\"{}[],".utf8).randomElement(using: &random) ?? 48, at: position)
        }
      }
      do {
        let found = try read(String(decoding: damaged, as: UTF8.self))
        try found.composition.validateSegments()
        readable += 1
      } catch is MediaError {}
    }
    #expect(readable * 30 > RunSize.cases(750, full: 3_000))
  }
}

extension String {
  /// The text with the first `count` occurrences replaced.
  fileprivate func replacingOccurrences(
    of text: String, with other: String, first count: Int
  ) -> String {
    let parts = split(separator: text, omittingEmptySubsequences: false)
    var result = ""
    for (number, part) in parts.enumerated() {
      result += part
      if number + 1 < parts.count { result += number < count ? other : text }
    }
    return result
  }

  fileprivate func replacingOccurrences(of text: String, with other: String) -> String {
    split(separator: text, omittingEmptySubsequences: false).joined(separator: other)
  }
}
