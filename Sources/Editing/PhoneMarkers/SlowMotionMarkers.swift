// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
public import OvercrankMediaCore

/// The slow-motion ranges that a phone stores with a high-frame-rate clip.
///
/// An iPhone writes an `.AAE` file beside the movie: an XML property list whose `adjustmentData` is
/// a base64-encoded binary property list with the ranges and their speed. Android stores markers in
/// the movie's video format, and each marker sets the speed from its own time until the next
/// marker. Samsung phones append the ranges to the movie file.
public struct SlowMotionMarkers: Hashable, Sendable {
  /// The ranges in clip time and their speeds.
  public let changes: [Composition.SpeedChange]
  /// The speed outside the ranges: 1, unless the clip is stored at a lower frame rate than
  /// captured.
  public let elsewhere: Speed

  /// Creates markers from parsed ranges.
  init(changes: [Composition.SpeedChange], elsewhere: Speed = .normal) {
    (self.changes, self.elsewhere) = (changes, elsewhere)
  }

  /// Parses Android's markers (`MediaFormat.KEY_SLOW_MOTION_MARKERS`).
  ///
  /// The data is a float, which is not used here, and the number of markers, then for each marker a
  /// start time in microseconds and a speed. All numbers are big-endian. The start times ascend and
  /// are not negative.
  ///
  /// - Parameters:
  ///   - bytes: The marker data.
  ///   - duration: The duration of the clip, which ends the last marker's range.
  /// - Throws: `MediaError` with `.invalidProject` for invalid data.
  public init(android bytes: [UInt8], duration: MediaTime) throws(MediaError) {
    func number(_ offset: Int, _ size: Int) -> UInt64 {
      bytes[offset..<offset + size].reduce(0) { $0 << 8 | UInt64($1) }
    }
    guard bytes.count >= 8 else { throw .invalidMarkers("the markers are too short") }
    let count = Int(number(4, 4))
    guard count <= (bytes.count - 8) / 12 else {
      throw .invalidMarkers("the data ends before the stated \(count) markers")
    }
    var marks: [(time: MediaTime, speed: Speed)] = []
    for index in 0..<count {
      let time = MediaTime(microseconds: Int64(bitPattern: number(8 + index * 12, 8)))
      let ratio = Double(Float(bitPattern: UInt32(number(16 + index * 12, 4))))
      guard time >= .zero, marks.last.map({ $0.time < time }) ?? true,
        let speed = Self.speed(ratio)
      else { throw .invalidMarkers("marker \(index + 1) is out of order or has no speed") }
      marks.append((time, speed))
    }
    let ends = marks.dropFirst().map(\.time) + [duration]
    var changes: [Composition.SpeedChange] = []
    for (mark, end) in zip(marks, ends) where mark.speed != .normal && mark.time < duration {
      if let range = try? TimeRange(start: mark.time, end: min(end, duration)) {
        changes.append(Composition.SpeedChange(mark.speed, in: range))
      }
    }
    self.init(changes: changes)
  }

  /// Returns the composition that the phone which stored these markers would play for a clip.
  ///
  /// Slow-motion ranges that extend past the end of the clip are clipped to it.
  ///
  /// - Parameter source: The clip.
  /// - Returns: The composition.
  /// - Throws: `MediaError` as ``Composition/retimed(_:changes:)`` does.
  public func composition(of source: MediaSource) throws(MediaError) -> Composition {
    var inside: [Composition.SpeedChange] = []
    for change in changes {
      guard let whole = try? TimeRange(duration: source.duration),
        let range = change.range.intersection(whole)
      else { continue }
      inside.append(Composition.SpeedChange(change.speed, in: range))
    }
    if elsewhere != .normal {
      var end = MediaTime.zero
      for range in inside.map(\.range).sorted(by: { $0.start < $1.start }) {
        if let before = try? TimeRange(start: end, end: range.start), !before.isEmpty {
          inside.append(Composition.SpeedChange(elsewhere, in: before))
        }
        end = max(end, range.end)
      }
      if let rest = try? TimeRange(start: end, end: source.duration), !rest.isEmpty {
        inside.append(Composition.SpeedChange(elsewhere, in: rest))
      }
    }
    return try .retimed(source, changes: inside)
  }

  /// Converts a floating-point speed to a fraction: 0.125 becomes 1/8 and 0.3 becomes 3/10.
  static func speed(_ number: Double) -> Speed? {
    guard number.isFinite, number > 0, number < 1_000 else { return nil }
    for denominator in 1...1_000 {
      let above = (number * Double(denominator)).rounded()
      // The file stores a 32-bit float, which has about seven significant decimal digits. A simple
      // fraction within this precision is taken as the intended speed.
      guard abs(above / Double(denominator) / number - 1) < 1e-6 else { continue }
      return try? Speed(Rational(Int128(above), over: Int128(denominator)))
    }
    return try? Speed(Rational(Int128((number * 1e9).rounded()), over: 1_000_000_000))
  }
}

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

  /// Parses the slow-motion ranges in the trailer of a Samsung phone's movie.
  ///
  /// The trailer consists of named blocks, a table, the length of the table, and `SEFT` at the end
  /// of the file. The table holds `SEFH`, a version, the number of blocks, and 12 bytes per block
  /// with the distance of the block from the table. All numbers are little-endian.
  ///
  /// The block `SlowMotion_Data` is text: one `start:end:level` per range, separated by `*`, with
  /// times in milliseconds. Each level plays at half the speed of the next lower level.
  ///
  /// - Parameters:
  ///   - bytes: The last bytes of the file, up to its end.
  ///   - elsewhere: The speed outside all ranges. A movie may be stored at a lower rate than it was
  ///     captured at, and so be slow itself. This speed is then above 1, for example 8 for 240 fps
  ///     stored at 30 fps. The speeds of the ranges are relative to it.
  /// - Throws: `MediaError` with `.invalidProject` for a damaged table or damaged ranges.
  public init?(
    samsungTrailer bytes: [UInt8], elsewhere: Speed = .normal
  ) throws(MediaError) {
    guard bytes.count >= 8, bytes.suffix(4).elementsEqual("SEFT".utf8) else { return nil }
    func number(_ offset: Int) -> Int {
      bytes[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    let table = bytes.count - 8 - number(bytes.count - 8)
    guard table >= 0, table + 12 <= bytes.count - 8,
      bytes[table..<table + 4].elementsEqual("SEFH".utf8)
    else { throw .invalidMarkers("the table after the movie is damaged or truncated") }
    let count = number(table + 8)
    guard count <= (bytes.count - 8 - table - 12) / 12 else {
      throw .invalidMarkers("the table after the movie lists more blocks than it holds")
    }
    var ranges: String?
    for index in 0..<count where ranges == nil {
      let entry = table + 12 + index * 12
      let (start, size) = (table - number(entry + 4), number(entry + 8))
      // The caller passes only the last bytes of the file. A block that starts before these bytes
      // is skipped.
      guard start >= 0, size >= 8, size <= table - start else { continue }
      let nameLength = number(start + 4)
      guard nameLength <= size - 8 else { continue }
      let (name, end) = (start + 8, start + size)
      guard bytes[name..<name + nameLength].elementsEqual("SlowMotion_Data".utf8) else { continue }
      ranges = String(decoding: bytes[name + nameLength..<end], as: UTF8.self)
    }
    guard let ranges else { return nil }
    self.init(changes: try Self.changes(samsung: ranges, elsewhere), elsewhere: elsewhere)
  }

  private static func changes(
    samsung text: String, _ elsewhere: Speed
  ) throws(MediaError) -> [Composition.SpeedChange] {
    var changes: [Composition.SpeedChange] = []
    for part in text.split(separator: "*") {
      let numbers = part.split(separator: ":", omittingEmptySubsequences: false).map { Int64($0) }
      guard numbers.count == 3, let start = numbers[0], let end = numbers[1],
        let level = numbers[2], start >= 0, start < end, end < 1 << 40, (1...16).contains(level),
        let range = try? TimeRange(
          start: MediaTime(microseconds: start * 1_000), end: MediaTime(microseconds: end * 1_000)),
        let speed = try? Speed(elsewhere.fraction / Rational(1 << (level - 1) as Int64))
      else {
        throw .invalidMarkers("a slow-motion range is invalid: \(part.prefix(60))")
      }
      changes.append(Composition.SpeedChange(speed, in: range))
    }
    let ranges = changes.map(\.range).sorted { $0.start < $1.start }
    for (first, second) in zip(ranges, ranges.dropFirst()) where first.overlaps(second) {
      throw .invalidMarkers(
        "the slow-motion ranges \(first.displayText) and \(second.displayText) overlap")
    }
    return changes
  }
}
