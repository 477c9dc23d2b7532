// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// The timing data that a recording stores about its frames, read back for each frame.
struct RecordingInfoTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func asset(tag: String) throws -> Asset {
    var recipe = MovieRecipe.constant(240, count: 6)
    recipe.metadata = ["com.overcrank.recording": tag]
    return try recipe.asset(at: directory.file("take.mov"))
  }

  @Test func `Recording info gives each frame a driver time and loss count`() throws {
    let asset = try asset(
      tag: """
        {"version":1,"device":"cam0","mode":"m","first_capture_ns":5000000000,
        "first_sequence":100,"gaps":[{"after_index":1,"count":2},{"after_index":1,"count":1},
        {"after_index":3,"count":4}]}
        """)
    #expect(asset.recording?.device == "cam0")
    let lines = asset.frameTimingRows()
    #expect(lines.map(\.index) == Array(0..<6))
    #expect(lines.map(\.lostBefore) == [0, 0, 3, 0, 4, 0])
    #expect(lines.map(\.sequence) == [100, 101, 105, 106, 111, 112])
    let times = [0, 4_167_000, 8_333_000, 12_500_000, 16_667_000, 20_833_000] as [Int64]
    #expect(lines.map(\.time.wholeNanoseconds) == times)
    #expect(lines.map(\.captureTime?.wholeNanoseconds) == times.map { 5_000_000_000 + $0 })
    #expect(lines.map(\.duration.wholeNanoseconds).reduce(0, +) == 25_000_000)
  }

  @Test func `Unknown fields in a recording tag are ignored`() throws {
    let asset = try asset(
      tag: """
        {"version":2,"device":"d","mode":"m","first_capture_ns":1,"first_sequence":2,
        "gaps":[{"after_index":0,"count":1,"cause":"lost_device"}],"lens":"wide"}
        """)
    #expect(asset.recording?.gaps?.count == 1)
  }

  @Test(arguments: [
    "", "{", "[]", "null", "{\"device\":1}", "not json",
    "{\"device\":\"d\",\"mode\":\"m\",\"first_capture_ns\":1e300,\"first_sequence\":0,\"gaps\":[]}",
  ])
  func `An asset opens despite an invalid com.overcrank.recording`(tag: String) throws {
    let asset = try asset(tag: tag)
    #expect(asset.recording == nil)
    let lines = asset.frameTimingRows()
    #expect(lines.count == 6)
    #expect(lines.allSatisfy { $0.sequence == nil && $0.captureTime == nil })
    #expect(lines.allSatisfy { $0.lostBefore == nil })
  }

  @Test func `Extreme numbers in a recording tag do not trap`() throws {
    let largest = Int64.max
    let asset = try asset(
      tag: """
        {"device":"d","mode":"m","first_capture_ns":\(largest),"first_sequence":\(largest),
        "gaps":[{"after_index":0,"count":\(largest)},{"after_index":0,"count":\(largest)},
        {"after_index":\(largest),"count":1},{"after_index":-9,"count":1},
        {"after_index":2,"count":-5}]}
        """)
    #expect(asset.frameTimingRows().count == 6)
  }

  @Test func `The capture rate can come from a tag or an edit list`() throws {
    func rate(_ metadata: [String: String], elst: UInt32? = nil) throws -> [String] {
      var recipe = MovieRecipe.constant(240, count: 6, timescale: 240_000)
      recipe.metadata = metadata
      let path = directory.file("rate.mov")
      try recipe.write(to: path)
      if let elst {
        var movie = try PatchedMovie(path)
        // An edit list box has a version, the number of entries, and then the first entry.
        try movie.set(elst, at: 16, of: "moov/trak/edts/elst")
        _ = try directory.write(movie.bytes, as: "rate.mov")
      }
      let found = try Asset(path: path).captureFrameRate
      return found.map { [$0.rate.description, $0.source] } ?? []
    }
    let apple = "com.apple.quicktime.full-frame-rate-playback-intent"
    #expect(try rate([:]) == [])
    #expect(try rate(["com.android.capture.fps": "960"]) == ["960/1", "com.android.capture.fps"])
    // Matroska stores the keys in capitals.
    #expect(try rate(["COM.ANDROID.CAPTURE.FPS": "960"]) == ["960/1", "com.android.capture.fps"])
    #expect(try rate([apple: "0"]) == ["240/1", apple])
    #expect(
      try rate([apple: "0", "com.overcrank.capture_frame_rate": "480/1"])
        == ["480/1", "com.overcrank.capture_frame_rate"])
    #expect(try rate([:], elst: 0x2000) == ["240/1", "edit_list"])
    for other: UInt32 in [0x1_0000, 0x2_0000, 0, 0xFFFF_0000] {
      #expect(try rate([:], elst: other) == [], "\(other)")
    }
  }
}
