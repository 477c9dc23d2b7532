// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

struct CompositionTests {
  let clip: MediaSource

  init() throws { clip = try MediaSource(path: "clip.mov", duration: MediaTime(seconds: 4)) }

  /// The segments as text: source range and target range.
  private func table(_ composition: Composition) -> [String] {
    composition.segments.map(\.description)
  }

  @Test func `A composition of a source plays the whole source`() throws {
    let composition = Composition(clip)
    #expect(table(composition) == ["clip.mov 0/1..4/1 -> 0/1..4/1"])
    #expect(composition.duration == MediaTime(seconds: 4))
    #expect(Composition().duration == .zero)
    #expect(Composition().segment(at: .zero) == nil)
  }

  @Test func `An insertion splits the segment at the insertion time`() throws {
    var composition = Composition(clip)
    try composition.insertTimeRange(.of(2, 3), of: clip, at: MediaTime(seconds: 1))
    #expect(
      table(composition) == [
        "clip.mov 0/1..1/1 -> 0/1..1/1", "clip.mov 2/1..3/1 -> 1/1..2/1",
        "clip.mov 1/1..4/1 -> 2/1..5/1",
      ])
    // Both the second and the third segment contain the source time 2.5 s.
    let instants = try composition.targetTimes(
      ofSource: Rational(5, over: 2), in: clip, timescale: 2, rounding: .towardZero)
    #expect(instants.map(\.seconds) == [Rational(3, over: 2), Rational(7, over: 2)])
  }

  @Test func `Inserting past the end of a composition first adds a gap`() throws {
    var composition = Composition(clip)
    try composition.insertTimeRange(.of(0, 1), of: clip, at: MediaTime(seconds: 6))
    #expect(
      table(composition) == [
        "clip.mov 0/1..4/1 -> 0/1..4/1", "empty -> 4/1..6/1", "clip.mov 0/1..1/1 -> 6/1..7/1",
      ])
    try composition.insertEmptyTimeRange(.of(9, 10))
    #expect(table(composition).last == "empty -> 7/1..10/1")
    #expect(composition.segments[1].isEmpty)
  }

  @Test func `Scaling a time range twice multiplies the speeds`() throws {
    var composition = Composition(clip)
    try composition.scaleTimeRange(.of(0, 4), toDuration: MediaTime(seconds: 16))
    try composition.scaleTimeRange(.of(4, 8), toDuration: MediaTime(seconds: 8))
    #expect(
      table(composition) == [
        "clip.mov 0/1..1/1 -> 0/1..4/1", "clip.mov 1/1..2/1 -> 4/1..12/1",
        "clip.mov 2/1..4/1 -> 12/1..20/1",
      ])
    let speeds = try composition.segments.map { try $0.speed() }
    #expect(speeds == [try .of(1, 4), try .of(1, 8), try .of(1, 4)])
  }

  @Test func `Removing a range from a composition closes the gap`() throws {
    var composition = Composition(clip)
    try composition.removeTimeRange(.of(1, 3))
    #expect(
      table(composition) == ["clip.mov 0/1..1/1 -> 0/1..1/1", "clip.mov 3/1..4/1 -> 1/1..2/1"])
    try composition.removeTimeRange(.of(0, 2))
    #expect(composition.segments.isEmpty && composition.duration == .zero)
    #expect(composition.tracks == [CompositionTrack(.video)])
  }

  @Test func `A time outside the composition gives the nearest segment`() throws {
    let composition = try Composition.retimed(clip, changes: [.init(.of(1, 8), in: .of(1, 2))])
    let segments = composition.segments
    for (time, index) in [(-1, 0), (0, 0), (1, 1), (8, 1), (9, 2), (11, 2), (99, 2)] {
      #expect(composition.segment(at: MediaTime(seconds: Int64(time))) == segments[index])
    }
  }

  @Test func `An invalid edit throws and leaves the composition unchanged`() throws {
    let whole = Composition(clip)
    func refuses(
      _ code: MediaError.Code, _ edit: (inout Composition) throws -> Void,
      _ location: SourceLocation = #_sourceLocation
    ) {
      var composition = whole
      let error = #expect(throws: MediaError.self, sourceLocation: location) {
        try edit(&composition)
      }
      #expect(error?.code == code, sourceLocation: location)
      #expect(composition == whole, sourceLocation: location)
    }
    refuses(.outsideSource) { try $0.insertTimeRange(.of(3, 5), of: clip, at: .zero) }
    refuses(.outsideSource) { try $0.insertTimeRange(.of(-1, 1), of: clip, at: .zero) }
    refuses(.emptyRange) { try $0.insertTimeRange(.of(1, 1), of: clip, at: .zero) }
    refuses(.outsideComposition) {
      try $0.insertTimeRange(.of(0, 1), of: clip, at: MediaTime(seconds: -1))
    }
    refuses(.outsideComposition) { try $0.insertEmptyTimeRange(.of(-1, 1)) }
    refuses(.emptyRange) { try $0.insertEmptyTimeRange(.of(1, 1)) }
    refuses(.outsideComposition) { try $0.removeTimeRange(.of(3, 5)) }
    refuses(.emptyRange) { try $0.removeTimeRange(.of(3, 3)) }
    refuses(.outsideComposition) {
      try $0.scaleTimeRange(.of(3, 5), toDuration: MediaTime(seconds: 1))
    }
    refuses(.emptyRange) { try $0.scaleTimeRange(.of(3, 4), toDuration: .zero) }
    refuses(.emptyRange) { try $0.scaleTimeRange(.of(3, 3), toDuration: MediaTime(seconds: 1)) }
    // The end would be 4 + 1/(2^31 - 19) - 1/(2^31 - 1) s, which no time can represent.
    refuses(.notExact) {
      try $0.scaleTimeRange(
        .of(0, 1, per: .max), toDuration: MediaTime(1, over: .max - 18))
    }
    refuses(.notExact) {
      try $0.insertTimeRange(.of(0, 1), of: clip, at: MediaTime(seconds: .max))
    }
  }

  @Test func `Segments with gaps or overlaps between them are refused`() throws {
    let first = try TrackSegment(empty: .of(0, 1))
    #expect(try Composition(segments: [first]).duration == MediaTime(seconds: 1))
    for other in try [TrackSegment(empty: .of(2, 3)), TrackSegment(empty: .of(0, 3))] {
      let error = #expect(throws: MediaError.self) {
        try Composition(segments: [first, other])
      }
      #expect(error?.code == .invalidSegments)
    }
    let outside = try TimeMapping(source: .of(3, 5), target: .of(0, 2))
    let error = #expect(throws: MediaError.self) { try TrackSegment(of: clip, outside) }
    #expect(error?.code == .outsideSource)
    #expect(throws: MediaError.self) { try MediaSource(path: "no.mov", duration: .zero) }
  }
}

struct RetimedCompositionTests {
  let clip: MediaSource

  init() throws { clip = try MediaSource(path: "clip.mov", duration: MediaTime(seconds: 4)) }

  @Test func `One second at 1/8 speed makes a 4 s clip last 11 s`() throws {
    let composition = try Composition.retimed(clip, changes: [.init(.of(1, 8), in: .of(1, 2))])
    #expect(composition.duration == MediaTime(seconds: 11))
    #expect(
      composition.segments.map(\.description) == [
        "clip.mov 0/1..1/1 -> 0/1..1/1", "clip.mov 1/1..2/1 -> 1/1..9/1",
        "clip.mov 2/1..4/1 -> 9/1..11/1",
      ])
    #expect(try Composition.retimed(clip, changes: []) == Composition(clip))
  }

  @Test(
    "The order of speed changes does not affect the composition",
    arguments: 0..<50 as Range<UInt64>)
  func anyOrder(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let cuts = Set((0..<8).map { _ in Int64.random(in: 0...960, using: &random) }).sorted()
    var changes: [Composition.SpeedChange] = []
    var expected = clip.duration.seconds
    for (start, end) in zip(cuts, cuts.dropFirst()) where Bool.random(using: &random) {
      let speed = try Speed.of(
        Int128.random(in: 1...5, using: &random), Int128.random(in: 1...8, using: &random))
      let range = try TimeRange.of(start, end, per: 240)
      changes.append(.init(speed, in: range))
      expected = expected - range.duration + range.duration / speed.fraction
    }
    let ordered = try Composition.retimed(clip, changes: changes)
    changes.shuffle(using: &random)
    #expect(try Composition.retimed(clip, changes: changes) == ordered)
    #expect(ordered.duration.seconds == expected)
    try ordered.validateSegments()
    for change in changes {
      let starting = ordered.segments.first {
        $0.mapping?.sourceStart == change.range.start.seconds
      }
      #expect(try starting?.speed() == change.speed)
      #expect(starting?.mapping?.line?.source == change.range)
    }
  }

  @Test func `The error for overlapping ranges names both ranges`() throws {
    let ranges = try [TimeRange.of(2, 4), TimeRange.of(1, 3)]
    let error = #expect(throws: MediaError.self) {
      try Composition.retimed(clip, changes: ranges.map { .init(.normal, in: $0) })
    }
    #expect(error?.code == .overlappingRanges)
    #expect(error?.ranges == [ranges[1], ranges[0]])
    #expect(error?.description == "the ranges 1..3 and 2..4 of clip.mov overlap")
    // Adjacent ranges do not overlap.
    #expect(
      try Composition.retimed(
        clip, changes: [.init(.of(2), in: .of(0, 1)), .init(.of(4), in: .of(1, 2))]
      )
      .duration.seconds == Rational(11, over: 4))
  }

  @Test func `Speed changes outside the source are refused`() throws {
    let outside = #expect(throws: MediaError.self) {
      try Composition.retimed(clip, changes: [.init(.normal, in: .of(3, 5))])
    }
    #expect(outside?.code == .outsideSource)
    let empty = #expect(throws: MediaError.self) {
      try Composition.retimed(clip, changes: [.init(.normal, in: .of(3, 3))])
    }
    #expect(empty?.code == .emptyRange)
  }
}
