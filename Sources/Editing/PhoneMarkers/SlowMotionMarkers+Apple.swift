// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
public import OvercrankMediaCore

extension SlowMotionMarkers {
  /// The outer property list of an `.AAE` file: the kind of edit and its data.
  private struct Sidecar: Decodable {
    let adjustmentFormatIdentifier: String
    let adjustmentData: Data?
  }

  /// The inner binary property list of an `.AAE` file.
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
    /// A CMTime as CoreMedia writes it into property lists.
    struct Time: Decodable {
      let value: Int64
      let timescale: Int32
    }
    let slowMotion: Motion
  }

  /// Parses an iPhone's `.AAE` file.
  ///
  /// - Parameter text: The content of the file.
  /// - Throws: `MediaError` with `.invalidProject` for another kind of file, a damaged file, or an
  ///   edit other than slow motion.
  public init(aae text: String) throws(MediaError) {
    guard let sidecar = Self.sidecar(text) else { throw .invalidMarkers("not an .AAE file") }
    let kind = sidecar.adjustmentFormatIdentifier
    guard kind == "com.apple.video.slomo" else {
      throw .invalidMarkers("the edit is of kind \(kind), not slow motion")
    }
    guard let data = sidecar.adjustmentData, let motion = Self.motion(data), motion.rate > 0,
      motion.rate < 1_000
    else { throw .invalidMarkers("adjustmentData is damaged") }
    var changes: [Composition.SpeedChange] = []
    for region in motion.regions ?? [] {
      guard let start = Self.time(region.timeRange.start),
        let duration = Self.time(region.timeRange.duration),
        let range = try? TimeRange(start: start, duration: duration), !range.isEmpty,
        start >= .zero, let speed = Self.speed(motion.rate)
      else { throw .invalidMarkers("a region has an invalid time range") }
      changes.append(Composition.SpeedChange(speed, in: range))
    }
    self.init(changes: changes)
  }

  /// Decodes the XML property list; returns nil for other text.
  private static func sidecar(_ text: String) -> Sidecar? {
    // The property list decoder calls itself for each nesting level, so a hostile file could
    // exhaust the stack. A valid file has one level.
    let openings = text.ranges(of: "<array").count + text.ranges(of: "<dict").count
    guard openings <= 32, text.first(where: { !$0.isWhitespace }) == "<" else { return nil }
    return try? PropertyListDecoder().decode(Sidecar.self, from: Data(text.utf8))
  }

  private static func motion(_ data: Data) -> Adjustment.Motion? {
    // The nesting of a binary property list needs no limit: the decoder reads only the objects that
    // the types above name.
    guard data.starts(with: "bplist00".utf8) else { return nil }
    return try? PropertyListDecoder().decode(Adjustment.self, from: data).slowMotion
  }

  private static func time(_ time: Adjustment.Time) -> MediaTime? {
    MediaTime(exactly: time.value, over: time.timescale)
  }
}
