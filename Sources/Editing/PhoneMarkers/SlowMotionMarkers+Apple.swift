// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
public import OvercrankMediaCore

extension SlowMotionMarkers {
  /// An `.AAE` file: what kind of edit it is, and the edit itself.
  private struct Sidecar: Decodable {
    let adjustmentFormatIdentifier: String
    let adjustmentData: Data?
  }

  /// The edit: a binary property list in the sidecar.
  private struct Adjustment: Decodable {
    struct Motion: Decodable {
      let rate: Double
      let regions: [Region]?
    }
    struct Region: Decodable {
      let timeRange: Range
    }
    struct Range: Decodable {
      let start: Time
      let duration: Time
    }
    /// A time as CoreMedia writes it into property lists.
    struct Time: Decodable {
      let value: Int64
      let timescale: Int32
    }
    let slowMotion: Motion
  }

  /// Reads an iPhone's `.AAE` file.
  ///
  /// - Parameter text: The whole file.
  /// - Throws: `MediaError` with `.invalidProject` for a file that is none, is damaged, or
  ///   is about other edits than slow motion.
  public init(aae text: String) throws(MediaError) {
    guard let sidecar = Self.sidecar(text) else { throw .invalidMarkers("it is no .AAE file") }
    let kind = sidecar.adjustmentFormatIdentifier
    guard kind == "com.apple.video.slomo" else {
      throw .invalidMarkers("it tells of an edit of the kind \(kind), not of slow motion")
    }
    guard let data = sidecar.adjustmentData, let motion = Self.motion(data), motion.rate > 0,
      motion.rate < 1_000
    else { throw .invalidMarkers("its adjustmentData cannot be read") }
    var changes: [Composition.SpeedChange] = []
    for region in motion.regions ?? [] {
      guard let start = Self.time(region.timeRange.start),
        let duration = Self.time(region.timeRange.duration),
        let range = try? TimeRange(start: start, duration: duration), !range.isEmpty,
        start >= .zero, let speed = Self.speed(motion.rate)
      else { throw .invalidMarkers("it names a region that is no range of time") }
      changes.append(Composition.SpeedChange(speed, in: range))
    }
    self.init(changes: changes)
  }

  /// The property list in XML; nil for text that is none.
  private static func sidecar(_ text: String) -> Sidecar? {
    // The decoder follows nesting with its stack, however deep it is; a sidecar has one level.
    let openings = text.ranges(of: "<array").count + text.ranges(of: "<dict").count
    guard openings <= 32, text.first(where: { !$0.isWhitespace }) == "<" else { return nil }
    return try? PropertyListDecoder().decode(Sidecar.self, from: Data(text.utf8))
  }

  private static func motion(_ data: Data) -> Adjustment.Motion? {
    // In a binary list each object is read once, so it cannot nest deeper than the types above.
    guard data.starts(with: "bplist00".utf8) else { return nil }
    return try? PropertyListDecoder().decode(Adjustment.self, from: data).slowMotion
  }

  private static func time(_ time: Adjustment.Time) -> MediaTime? {
    MediaTime(exactly: time.value, over: time.timescale)
  }
}
