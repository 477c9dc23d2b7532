// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Compositions of several tracks, with freeze frames, reversals and ramps.
struct TracksTests {
  let clip: MediaSource
  let silent: MediaSource

  init() throws {
    clip = try MediaSource(
      path: "clip.mov", duration: MediaTime(seconds: 4),
      tracks: [SourceTrack(.video, rotation: 90), SourceTrack(.audio, language: "swe")])
    silent = try MediaSource(path: "silent.mov", duration: MediaTime(seconds: 4))
  }

  private func table(_ track: CompositionTrack?) -> [String] {
    track?.segments.map(\.description) ?? []
  }

  @Test func `Inserted source tracks keep their rotation and language`() throws {
    let composition = Composition(clip)
    #expect(composition.tracks.map(\.mediaType) == [.video, .audio])
    #expect(composition.tracks[0].segments == composition.tracks[1].segments)
    #expect(composition.track(.video)?.rotation == 90)
    #expect(composition.track(.audio)?.language == "swe")
    #expect(composition.sources == [clip])
    // Inserting another source does not change the properties of an existing track.
    var other = Composition(silent)
    try other.insertTimeRange(.of(0, 1), of: clip, at: .zero)
    #expect(other.track(.video)?.rotation == 90)
    other.tracks[0].rotation = 180
    try other.insertTimeRange(.of(0, 1), of: clip, at: .zero)
    #expect(other.track(.video)?.rotation == 180)
  }

  @Test func `An audio track is empty where a clip has no audio`() throws {
    var composition = Composition(clip)
    try composition.insertTimeRange(.of(0, 1), of: silent, at: MediaTime(seconds: 2))
    #expect(
      table(composition.track(.audio)) == [
        "clip.mov 0/1..2/1 -> 0/1..2/1", "empty -> 2/1..3/1", "clip.mov 2/1..4/1 -> 3/1..5/1",
      ])
    // A track of a new media type is empty up to the inserted range.
    var other = Composition(silent)
    try other.insertTimeRange(.of(0, 1), of: clip, at: MediaTime(seconds: 1))
    #expect(
      table(other.track(.audio)) == ["empty -> 0/1..1/1", "clip.mov 0/1..1/1 -> 1/1..2/1"])
    #expect(other.duration == MediaTime(seconds: 5))
  }

  @Test func `An edit of all tracks affects a shorter track up to its end`() throws {
    var composition = Composition(clip)
    try composition.tracks[1].removeTimeRange(.of(2, 4))
    var scaled = composition
    try scaled.scaleTimeRange(.of(1, 3), toDuration: MediaTime(seconds: 4))
    #expect(scaled.duration == MediaTime(seconds: 6))
    #expect(
      table(scaled.track(.audio)) == [
        "clip.mov 0/1..1/1 -> 0/1..1/1", "clip.mov 1/1..2/1 -> 1/1..3/1",
      ])
    var removed = composition
    try removed.removeTimeRange(.of(1, 3))
    #expect(table(removed.track(.audio)) == ["clip.mov 0/1..1/1 -> 0/1..1/1"])
    var late = composition
    try late.removeTimeRange(.of(3, 4))
    #expect(late.track(.audio) == composition.track(.audio))
    var rotated = composition
    try rotated.reverse(.of(1, 4))
    #expect(
      table(rotated.track(.audio)) == [
        "clip.mov 0/1..1/1 -> 0/1..1/1", "empty -> 1/1..3/1",
        "clip.mov reversed 1/1..2/1 -> 3/1..4/1",
      ])
  }

  @Test func `A composition can be inserted into another`() throws {
    let slow = try Composition.retimed(clip, changes: [.init(.of(1, 2), in: .of(1, 2))])
    var composition = Composition(clip)
    try composition.insertTimeRange(.of(2, 4), of: slow, at: MediaTime(seconds: 3))
    #expect(
      table(composition.track(.video)) == [
        "clip.mov 0/1..3/1 -> 0/1..3/1", "clip.mov 3/2..2/1 -> 3/1..4/1",
        "clip.mov 2/1..3/1 -> 4/1..5/1", "clip.mov 3/1..4/1 -> 5/1..6/1",
      ])
    #expect(throws: MediaError.self) {
      try composition.insertTimeRange(.of(2, 6), of: slow, at: .zero)
    }
  }

  @Test func `A failed group of edits leaves the composition unchanged`() throws {
    let whole = Composition(clip)
    var composition = whole
    try composition.insertTimeRanges(
      [
        .init(.of(0, 1), of: silent), .init(.of(0, 2), of: nil), .init(.of(3, 4), of: clip),
      ], at: MediaTime(seconds: 4))
    #expect(composition.duration == MediaTime(seconds: 8))
    composition = whole
    let error = #expect(throws: MediaError.self) {
      try composition.insertTimeRanges(
        [.init(.of(0, 1), of: silent), .init(.of(3, 5), of: clip)], at: .zero)
    }
    #expect(error?.code == .outsideSource)
    #expect(composition == whole)
    #expect(throws: MediaError.self) {
      try composition.edit { edited in
        try edited.removeTimeRange(.of(0, 1))
        try edited.removeTimeRange(.of(0, 9))
      }
    }
    #expect(composition == whole)
  }

  @Test func `A freeze frame is silent and can hold the last frame`() throws {
    var composition = Composition(clip)
    try composition.freezeFrame(at: MediaTime(seconds: 1), for: MediaTime(seconds: 2))
    #expect(
      table(composition.track(.video)) == [
        "clip.mov 0/1..1/1 -> 0/1..1/1", "clip.mov hold 1/1 -> 1/1..3/1",
        "clip.mov 1/1..4/1 -> 3/1..6/1",
      ])
    #expect(table(composition.track(.audio))[1] == "empty -> 1/1..3/1")
    try composition.freezeFrame(at: MediaTime(seconds: 6), for: MediaTime(seconds: 1))
    #expect(table(composition.track(.video)).last == "clip.mov hold before 4/1 -> 6/1..7/1")
    for (time, length) in [(-1, 1), (8, 1), (1, 0), (1, -1)] as [(Int64, Int64)] {
      let before = composition
      #expect(throws: MediaError.self) {
        try composition.freezeFrame(at: MediaTime(seconds: time), for: MediaTime(seconds: length))
      }
      #expect(composition == before)
    }
  }

  @Test func `The mean speed gives the duration of a speed ramp`() throws {
    var composition = Composition(clip)
    let ramp = SpeedRamp(from: .normal, to: try .of(1, 8))
    try composition.setSpeedRamp(ramp, in: .of(1, 2))
    // One second of source in the ramp lasts 16/9 s.
    #expect(composition.duration.seconds == (Rational(43, over: 9)))
    #expect(composition.segments.count == 3)
    let error = #expect(throws: MediaError.self) {
      try composition.setSpeedRamp(ramp, in: .of(0, 2))
    }
    #expect(error?.code == .cutInRamp)
    // The second inserted range continues the first one in the source, so no cut prevents a ramp
    // across both.
    var cut = Composition()
    try cut.insertTimeRange(.of(0, 2), of: clip, at: .zero)
    try cut.insertTimeRange(.of(2, 4), of: clip, at: MediaTime(seconds: 2))
    try cut.setSpeedRamp(ramp, in: .of(1, 3))
    #expect(cut.segments.count == 3)
  }

  @Test func `Speed points make speed ramps and jumps between speeds`() throws {
    typealias Point = Composition.SpeedPoint
    let points = try [
      Point(MediaTime(seconds: 1), .normal), Point(MediaTime(seconds: 2), .of(1, 8)),
      Point(MediaTime(seconds: 3), .of(1, 8)), Point(MediaTime(seconds: 3), .of(2)),
    ]
    let composition = try Composition.ramped(clip, points: points)
    #expect(
      table(composition.track(.video)) == [
        "clip.mov 0/1..1/1 -> 0/1..1/1",
        "clip.mov ramp 1/1 to 1/8 of 1/1..2/1 -> 1/1..25/9",
        "clip.mov 2/1..3/1 -> 25/9..97/9", "clip.mov 3/1..4/1 -> 97/9..203/18",
      ])
    let error = #expect(throws: MediaError.self) {
      try Composition.ramped(clip, points: points.reversed())
    }
    #expect(error?.code == .overlappingRanges)
    #expect(throws: MediaError.self) {
      try Composition.ramped(clip, points: [Point(MediaTime(seconds: 5), .normal)])
    }
    #expect(try Composition.ramped(clip, points: []) == Composition(clip))
  }

  @Test(arguments: RetimingPreset.allCases)
  func `A retiming preset slows one instant and omits no source time`(
    preset: RetimingPreset
  ) throws {
    for milliseconds in [0, 50, 1_300, 3_990, 4_000] as [Int64] {
      let time = MediaTime(microseconds: milliseconds * 1_000)
      let composition = try preset.composition(of: clip, at: time)
      try composition.validateSegments()
      #expect(composition.duration > clip.duration)
      let moving = composition.segments.compactMap(\.mapping).filter { $0.motion != .hold }
      #expect(moving.first?.sourceStart == .zero)
      #expect(moving.last?.sourceEnd == clip.duration.seconds)
      for (mapping, next) in zip(moving, moving.dropFirst()) {
        #expect(mapping.sourceEnd == next.sourceStart)
      }
      let speeds = try composition.segments.map { try $0.speed() }
      if preset == .freeze {
        #expect(speeds.contains(nil))
      } else if milliseconds == 1_300 {
        #expect(speeds.contains(try .of(1, 8)))
      }
    }
    #expect(throws: MediaError.self) {
      try preset.composition(of: clip, at: MediaTime(seconds: 5))
    }
  }
}
