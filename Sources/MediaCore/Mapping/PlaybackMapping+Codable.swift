// SPDX-License-Identifier: Apache-2.0

extension PlaybackMapping: Codable {
  private enum CodingKeys: CodingKey {
    case motion, ramp, isReversed, source, target, partStart, partEnd
  }

  private enum MotionName: String, Codable { case constant, ramp, hold }

  /// Decodes a mapping.
  ///
  /// - Throws: `DecodingError` for malformed input, an empty target, and a part of a ramp that is
  ///   not between 0 and 1.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let motion: Motion =
      switch try container.decode(MotionName.self, forKey: .motion) {
      case .constant: .constant
      case .ramp: .ramp(try container.decode(SpeedRamp.self, forKey: .ramp))
      case .hold: .hold
      }
    let isReversed = try container.decode(Bool.self, forKey: .isReversed)
    let source = try container.decode(TimeRange.self, forKey: .source)
    let target = try container.decode(TimeRange.self, forKey: .target)
    var part = Part.all
    if case .ramp = motion {
      part.lower = try container.decodeIfPresent(Rational.self, forKey: .partStart) ?? .zero
      part.upper = try container.decodeIfPresent(Rational.self, forKey: .partEnd) ?? .one
    }
    guard part.lower >= .zero, part.lower < part.upper, part.upper <= .one,
      source.isEmpty == (motion == .hold)
    else {
      throw DecodingError.dataCorruptedError(
        forKey: .source, in: container,
        debugDescription: "the source range \(source.displayText) does not fit the motion")
    }
    self = try decoder.checked { () throws(MediaError) in
      try PlaybackMapping(
        motion, isReversed: isReversed, whole: source, part: part, target: target)
    }
  }

  /// Encodes the motion, the source range of the whole motion, and the target range.
  ///
  /// For a part of a ramp, the start and the end of the part are encoded too, as fractions of the
  /// whole ramp's output duration.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch motion {
    case .constant: try container.encode(MotionName.constant, forKey: .motion)
    case .hold: try container.encode(MotionName.hold, forKey: .motion)
    case .ramp(let ramp):
      try container.encode(MotionName.ramp, forKey: .motion)
      try container.encode(ramp, forKey: .ramp)
      if part != .all {
        try container.encode(part.lower, forKey: .partStart)
        try container.encode(part.upper, forKey: .partEnd)
      }
    }
    try container.encode(isReversed, forKey: .isReversed)
    try container.encode(whole, forKey: .source)
    try container.encode(target, forKey: .target)
  }
}
