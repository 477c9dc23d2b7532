// SPDX-License-Identifier: Apache-2.0

/// A place on Earth, as movies store it (ISO 6709, annex H).
///
/// ```swift
/// let place = try GeographicLocation(parsing: "+46.9481+007.4474+542/")
/// ```
public struct GeographicLocation: Hashable, Sendable {
  /// The latitude in degrees, from -90 at the South Pole to 90.
  public let latitude: Double
  /// The longitude in degrees, from -180 to 180; positive in the east.
  public let longitude: Double
  /// The altitude in meters, or nil if unknown.
  public let altitude: Double?
  /// The place in decimal degrees with a final slash, such as `+46.9481+007.4474+542/`.
  public let iso6709: String

  /// Makes a place from degrees, stored to a ten-millionth of a degree.
  ///
  /// At a pole, any longitude from -180 to 180 is accepted.
  ///
  /// - Throws: `MediaError` with `.invalidMetadata` for a value that is not finite or out of range.
  public init(
    latitude: Double, longitude: Double, altitude: Double? = nil
  ) throws(MediaError) {
    guard latitude.isFinite, longitude.isFinite, (altitude ?? 0).isFinite,
      abs(latitude) <= 90, abs(longitude) <= 180, abs(altitude ?? 0) < 1e9
    else {
      throw Self.invalid("latitude \(latitude), longitude \(longitude)")
    }
    (self.latitude, self.longitude, self.altitude) = (latitude, longitude, altitude)
    iso6709 =
      Self.text(latitude, width: 2, digits: 7) + Self.text(longitude, width: 3, digits: 7)
      + (altitude.map { Self.text($0, width: 1, digits: 3) } ?? "") + "/"
  }

  /// Parses a place: `±DD.D±DDD.D/`, or with minutes `±DDMM.M±DDDMM.M/`, or with seconds
  /// `±DDMMSS.S±DDDMMSS.S/`; an altitude `±M.M` may follow, and the slash may be missing.
  ///
  /// - Throws: `MediaError` with `.invalidMetadata` for other text and for a place out of range.
  public init(parsing text: String) throws(MediaError) {
    var rest = Substring(text)
    if rest.hasSuffix("/") { rest.removeLast() }
    guard let latitude = Coordinate(&rest, degreeDigits: 2, limit: 90),
      let longitude = Coordinate(&rest, degreeDigits: 3, limit: 180)
    else { throw Self.invalid(text) }
    var altitude: Number?
    if !rest.isEmpty {
      guard let number = Number(&rest), rest.isEmpty, number.whole.count <= 9 else {
        throw Self.invalid(text)
      }
      altitude = number
    }
    (self.latitude, self.longitude) = (latitude.degrees, longitude.degrees)
    self.altitude = altitude?.value
    iso6709 = latitude.text + longitude.text + (altitude?.text ?? "") + "/"
  }

  static func invalid(_ text: String) -> MediaError {
    MediaError(
      .invalidMetadata, "\(text) is not a place on Earth",
      recovery: "write the latitude and the longitude as +46.9481+007.4474/")
  }

  /// Returns a number with its sign, rounded to `digits` decimal places, with at least `width`
  /// digits before the decimal point.
  private static func text(_ value: Double, width: Int, digits: Int) -> String {
    let scale = (0..<digits).reduce(1.0) { scale, _ in scale * 10 }
    let units = Int64((abs(value) * scale).rounded())
    let (whole, fraction) = ("\(units / Int64(scale))", "\(units % Int64(scale))")
    let zeros = String(repeating: "0", count: max(0, width - whole.count))
    let more = String(repeating: "0", count: digits - fraction.count)
    return (value < 0 && units > 0 ? "-" : "+") + zeros + whole + "." + more + fraction
  }

  /// A signed decimal number at the start of a text.
  private struct Number {
    let sign: Character
    let whole: String
    /// The digits after the decimal point; empty if the text has none.
    let fraction: String

    init?(_ text: inout Substring) {
      guard let sign = text.first, sign == "+" || sign == "-" else { return nil }
      var rest = text.dropFirst()
      func digits() -> String {
        let digits = rest.prefix { $0.isASCII && $0.isNumber }
        rest = rest.dropFirst(digits.count)
        return String(digits)
      }
      self.sign = sign
      whole = digits()
      guard !whole.isEmpty else { return nil }
      if rest.first == "." {
        rest = rest.dropFirst()
        fraction = digits()
        guard (1...12).contains(fraction.count) else { return nil }
      } else {
        fraction = ""
      }
      text = rest
    }

    var text: String { "\(sign)\(whole)" + (fraction.isEmpty ? "" : ".\(fraction)") }
    var value: Double { Double(text) ?? 0 }
  }

  /// A latitude or longitude at the start of a text.
  private struct Coordinate {
    let degrees: Double
    let text: String

    init?(_ rest: inout Substring, degreeDigits: Int, limit: Double) {
      guard let number = Number(&rest) else { return nil }
      let digits = number.whole.count
      if digits <= degreeDigits {
        degrees = number.value
        let zeros = String(repeating: "0", count: degreeDigits - digits)
        text =
          "\(number.sign)\(zeros)\(number.whole)"
          + (number.fraction.isEmpty ? "" : ".\(number.fraction)")
      } else {
        // Minutes have two digits, and so do seconds, which may be missing. The decimals belong to
        // the last of these numbers.
        guard digits == degreeDigits + 2 || digits == degreeDigits + 4 else { return nil }
        var parts = [Double(number.whole.prefix(degreeDigits)) ?? 0]
        var left = number.whole.dropFirst(degreeDigits)
        while left.count > 2 {
          parts.append(Double(left.prefix(2)) ?? 60)
          left = left.dropFirst(2)
        }
        parts.append(Double("\(left).\(number.fraction)0") ?? 60)
        guard parts.dropFirst().allSatisfy({ $0 < 60 }) else { return nil }
        let size = parts.reversed().reduce(0) { $0 / 60 + $1 }
        degrees = number.sign == "-" ? -size : size
        text = GeographicLocation.text(degrees, width: degreeDigits, digits: 7)
      }
      guard abs(degrees) <= limit else { return nil }
    }
  }
}
