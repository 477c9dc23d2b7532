// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import Testing

/// A project value that is present but unreadable is refused, since ignoring it would change the
/// movie.
struct UnreadableValueTests {
  private static func project(_ changes: [String: String] = [:]) -> String {
    func value(_ key: String, _ plain: String) -> String { changes[key] ?? plain }
    func time(_ key: String, _ plain: String) -> String {
      value(
        key,
        """
        {"OTIO_SCHEMA": "RationalTime.1", "value": \(value(key + ".value", plain)),
         "rate": \(value(key + ".rate", "24"))}
        """)
    }
    return """
      {"OTIO_SCHEMA": "Timeline.1", "name": "t", "tracks": {"OTIO_SCHEMA": "Stack.1",
        "children": [{"OTIO_SCHEMA": "Track.1", "kind": \(value("kind", "\"Video\"")),
          "children": \(value("children", "[CLIP]"))}]}}
      """.replacing(
        "CLIP",
        with: """
          {"OTIO_SCHEMA": "Clip.1", "enabled": \(value("enabled", "true")),
           "effects": \(value("effects", "[]")),
           "media_reference": {"OTIO_SCHEMA": "ExternalReference.1",
            "target_url": \(value("target_url", "\"a.mov\"")),
            "available_range": \(value("available_range", """
              {"OTIO_SCHEMA": "TimeRange.1", "start_time": \(time("available", "0")),
               "duration": \(time("length", "2400"))}
              """))},
           "source_range": \(value("source_range", """
              {"OTIO_SCHEMA": "TimeRange.1", "start_time": \(time("start", "24")),
               "duration": \(time("duration", "48"))}
              """))}
          """)
  }

  private func table(_ text: String) throws -> [String] {
    try OpenTimelineDocument(parsing: text) { (path) throws(MediaError) in
      try MediaSource(path: path, duration: MediaTime(seconds: 100))
    }
    .composition.track(.video)?.segments.map(\.description) ?? []
  }

  @Test func `Null is accepted for the optional ranges of a project clip`() throws {
    #expect(try table(Self.project()) == ["a.mov 1/1..3/1 -> 0/1..2/1"])
    // The project format allows these values to be null.
    #expect(
      try table(Self.project(["source_range": "null"])) == ["a.mov 0/1..100/1 -> 0/1..100/1"])
    #expect(
      try table(Self.project(["available_range": "null"])) == ["a.mov 1/1..3/1 -> 0/1..2/1"])
  }

  @Test(arguments: [
    ("start.value", "source_range.start_time.value"),
    ("start.rate", "source_range.start_time.rate"),
    ("duration.value", "source_range.duration.value"),
    ("duration.rate", "source_range.duration.rate"),
    ("available.value", "available_range.start_time.value"),
    ("length.rate", "available_range.duration.rate"),
  ])
  func `An error for a bad number in a project gives track and time`(
    key: String, name: String
  ) throws {
    for value in ["1e308", "\"2\"", "null", "NaN", "-Infinity", "true", "[]", "{}"]
      + (key.hasSuffix("rate") ? ["-24", "0", "1e11"] : [])
    {
      let text = Self.project([key: value])
      do {
        Issue.record("\(key) = \(value) plays \(try table(text))")
      } catch let error as MediaError {
        #expect(error.code == .invalidProject, "\(error)")
        #expect(error.description.contains("\(name) of the item in track 1 at 0 s"), "\(error)")
      }
    }
  }

  @Test(arguments: [
    ("start", "2"), ("duration", "null"), ("source_range", "\"all\""), ("source_range", "[]"),
    ("available_range", "7"), ("enabled", "\"false\""), ("enabled", "null"), ("enabled", "0"),
    ("kind", "null"), ("kind", "7"), ("children", "null"), ("children", "{}"), ("effects", "7"),
    ("target_url", "7"),
    (
      "effects",
      #"[{"OTIO_SCHEMA": "LinearTimeWarp.1", "effect_name": "", "time_scalar": "2"}]"#
    ),
    (
      "effects",
      #"[{"OTIO_SCHEMA": "LinearTimeWarp.1", "effect_name": "", "time_scalar": null}]"#
    ),
    ("effects", #"[{"OTIO_SCHEMA": "LinearTimeWarp.1", "effect_name": "", "time_scalar": NaN}]"#),
    (
      "effects",
      #"[{"OTIO_SCHEMA": "FreezeFrame.1", "effect_name": "", "enabled": "no"}]"#
    ),
  ])
  func `A project value of the wrong type is refused`(key: String, value: String) throws {
    let text = Self.project([key: value])
    do {
      Issue.record("\(key) = \(value) plays \(try table(text))")
    } catch let error as MediaError {
      #expect(error.code == .invalidProject, "\(error)")
      #expect(error.description.contains("cannot read the project"), "\(error)")
    }
  }
}
