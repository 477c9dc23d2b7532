// SPDX-License-Identifier: Apache-2.0

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
    self.changes = changes
    self.elsewhere = elsewhere
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
