// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Where a phone plays its high-rate clip slowly, as it says beside the clip or in it.
///
/// An iPhone writes an `.AAE` file: an XML property list whose `adjustmentData` is a binary one
/// in base 64, with regions and the speed in them. Android writes markers into the video format:
/// from each one on, the clip plays so many times slower. Samsung appends ranges to the movie.
public struct SlowMotionMarkers: Hashable, Sendable {
  /// Ranges in the time of the clip, with the speed in each.
  public let changes: [Composition.SpeedChange]
  /// The speed outside them: 1, unless the whole clip is stored slower than it was.
  public let elsewhere: Speed

  /// Makes markers out of what a phone says.
  init(changes: [Composition.SpeedChange], elsewhere: Speed = .normal) {
    self.changes = changes
    self.elsewhere = elsewhere
  }

  /// Reads Android's markers (`MediaFormat.KEY_SLOW_MOTION_MARKERS`).
  ///
  /// They are a float and a count, and for each of them the microseconds from which on a speed
  /// holds, and that speed: all with the highest byte first, the times rising from zero.
  ///
  /// - Parameters:
  ///   - bytes: The markers.
  ///   - duration: How long the clip is, at whose end the last one ends.
  /// - Throws: `MediaError` with `.invalidProject` for bytes that are none.
  public init(android bytes: [UInt8], duration: MediaTime) throws(MediaError) {
    func number(_ offset: Int, _ size: Int) -> UInt64 {
      bytes[offset..<offset + size].reduce(0) { $0 << 8 | UInt64($1) }
    }
    guard bytes.count >= 8 else { throw .invalidMarkers("the markers are too short") }
    let count = Int(number(4, 4))
    guard count <= (bytes.count - 8) / 12 else {
      throw .invalidMarkers("there are fewer markers than the \(count) that are named")
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

  /// Makes the composition that the phone would play, of one clip.
  ///
  /// A region that ends after the clip ends with it.
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

  /// A speed out of floating point: an eighth is one, and 0.3 is three tenths.
  static func speed(_ number: Double) -> Speed? {
    guard number.isFinite, number > 0, number < 1_000 else { return nil }
    for denominator in 1...1_000 {
      let above = (number * Double(denominator)).rounded()
      // A float has seven digits.
      guard abs(above / Double(denominator) / number - 1) < 1e-6 else { continue }
      return try? Speed(Rational(Int128(above), over: Int128(denominator)))
    }
    return try? Speed(Rational(Int128((number * 1e9).rounded()), over: 1_000_000_000))
  }
}
