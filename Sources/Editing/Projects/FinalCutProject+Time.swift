// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

// FCPXML times, and the mapping from a clip's time to its content's time.
extension FinalCutProject {
  /// Returns the curve from a clip's time to its content's time: the clip's `timeMap`, or the same
  /// time if the clip has no `timeMap`.
  mutating func curve(
    _ element: XMLElement, from start: Rational, lasting duration: Rational
  ) throws(MediaError) -> [ProjectContent.CurvePart] {
    let end = try (start + duration).checked("the end of \(Self.describe(element))")
    let speed = try conformedSpeed(of: element)
    return try unconformedCurve(element, from: start, to: end, lasting: duration).map {
      .init(start: $0.start, end: $0.end, from: $0.from * speed, to: $0.to * speed)
    }
  }

  /// The seconds of a clip's content per second of the clip, if the clip is conformed to the frame
  /// rate of its sequence; otherwise 1.
  ///
  /// A conformed clip shows one frame of its media in each frame of the sequence.
  func conformedSpeed(of element: XMLElement) throws(MediaError) -> Rational {
    guard let conform = element.first("conform-rate"), conform["scaleEnabled"] != "0",
      let text = conform["srcFrameRate"], let sequenceRate
    else { return .one }
    guard let number = Double(text), number > 0, number < 100_000 else {
      throw MediaError.invalidProject(
        "the frame rate of \(Self.describe(element)) is damaged: \(text.prefix(40))")
    }
    // FCPXML rounds rates such as 24000/1001 to two digits.
    guard let exact = ProjectTime.rate(number, tolerance: 0.01) else { return .one }
    return sequenceRate / exact
  }

  private mutating func unconformedCurve(
    _ element: XMLElement, from start: Rational, to end: Rational, lasting duration: Rational
  ) throws(MediaError) -> [ProjectContent.CurvePart] {
    guard let map = element.first("timeMap") else {
      return [.init(start: .zero, end: duration, from: start, to: end)]
    }
    var points: [(time: Rational, value: Rational)] = []
    for point in map.children where point.name == "timept" {
      guard let time = try Self.time(point, "time"), let value = try Self.time(point, "value"),
        points.last.map({ $0.time < time }) ?? true
      else {
        throw MediaError.invalidProject("the time map of \(Self.describe(element)) is damaged")
      }
      for key in ["inTime", "outTime"] where (try Self.time(point, key) ?? .zero) > .zero {
        notes.append("smooth speed changes of \(Self.describe(element)) become linear")
      }
      points.append((time, value))
    }
    guard points.count > 1 else {
      throw MediaError.invalidProject("the time map of \(Self.describe(element)) has no curve")
    }
    func value(_ time: Rational, _ index: Int) -> Rational {
      let (one, two) = (points[index], points[index + 1])
      return (two.value - one.value) * (time - one.time) / (two.time - one.time) + one.value
    }
    var parts: [ProjectContent.CurvePart] = []
    for index in 0..<points.count - 1 {
      // Before the first point and after the last point of a time map, the nearest line between two
      // points is extended.
      let low = index == 0 ? start : max(start, points[index].time)
      let high = index == points.count - 2 ? end : min(end, points[index + 1].time)
      guard low < high else { continue }
      parts.append(
        .init(
          start: low - start, end: high - start,
          from: value(low, index), to: value(high, index)))
    }
    return parts
  }

  /// Parses a time such as `1001/30000s`; returns nil if the attribute is missing.
  static func time(_ element: XMLElement, _ key: String) throws(MediaError) -> Rational? {
    guard let text = element[key] else { return nil }
    let parts = text.dropLast().split(separator: "/", omittingEmptySubsequences: false)
    guard text.hasSuffix("s"), (1...2).contains(parts.count),
      let above = Rational.decimal(parts[0]),
      let below = parts.count == 2 ? Rational.decimal(parts[1]) : .one, below > .zero,
      let time = (above / below).ifValid
    else {
      throw MediaError.invalidProject(
        "the \(key) of \(describe(element)) is not a time: \(text.prefix(40))")
    }
    return time
  }

  static func name(of element: XMLElement) -> String { element["name"] ?? "" }

  static func describe(_ element: XMLElement) -> String {
    "the \(element.name) \(element["name"].map { "\"\($0)\"" } ?? "without a name")"
  }
}

extension Rational {
  /// Parses a whole number or a decimal fraction.
  fileprivate static func decimal(_ text: Substring) -> Rational? {
    if let whole = Int64(text) { return Rational(whole) }
    return Double(text).flatMap(ProjectTime.nearest)
  }
}
