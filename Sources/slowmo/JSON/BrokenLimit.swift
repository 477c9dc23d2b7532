// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// A limit that a verb states and that was not kept, so that the exit code is 10.
struct BrokenLimit: Encodable {
  /// A limit or a value.
  enum Value: Encodable, Equatable {
    case count(Int64)
    case number(Double)
    /// A description, or an exact fraction.
    case text(String)

    init(_ rate: FrameRate) { self = .text(rate.description) }
    init?(_ rate: Rational?) {
      guard let rate else { return nil }
      self = .text(rate.description)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .count(let count): try container.encode(count)
      case .number(let number): try container.encode(number)
      case .text(let text): try container.encode(text)
      }
    }
  }

  /// The name of the option, the key or the check, such as `max_drops`.
  let name: String
  /// The limit; nil if it is not a number or a rate.
  let limit: Value?
  /// The value; nil if it is not a number, a rate or a text.
  let value: Value?
  /// The file that was judged; nil for a machine.
  let file: String?
  /// The description for people.
  let text: String

  private enum CodingKeys: CodingKey { case name, limit, value, file }

  init(_ name: String, limit: Value? = nil, value: Value? = nil, file: String?, _ text: String) {
    (self.name, self.limit, self.value) = (name, limit, value)
    (self.file, self.text) = (file, text)
  }

  /// Prints the limits on standard error, and returns the exit status that they cause.
  static func report(_ limits: [BrokenLimit]) -> ExitStatus {
    for limit in limits {
      let file = limit.file.map { "\($0): " } ?? ""
      Output.note("\(file)limit exceeded: \(limit.text)")
    }
    return limits.isEmpty ? .done : .limitBroken
  }

  /// The limits that the timing of a movie does not keep, one for each problem.
  static func all(of audit: TimingAudit, file: String) -> [BrokenLimit] {
    func counted(_ count: Int, _ one: String, _ several: String) -> String {
      count == 1 ? "1 \(one)" : "\(count) \(several)"
    }
    func rate(_ rate: Rational?) -> String {
      rate.map { "\(decimal($0.doubleValue, 3)) fps" } ?? "an unknown rate"
    }
    return audit.problems.map { problem in
      func none(_ count: Int, _ text: String) -> BrokenLimit {
        BrokenLimit(
          problem.rawValue, limit: .count(0), value: .count(Int64(count)), file: file, text)
      }
      func fraction(_ limit: Value?, _ value: Value?, _ text: String) -> BrokenLimit {
        BrokenLimit(problem.rawValue, limit: limit, value: value, file: file, text)
      }
      let measured = audit.distinctFrameRate ?? audit.measuredFrameRate
      let fps = rate(measured)
      switch problem {
      case .gaps:
        let missing = audit.gaps.reduce(0) { $0 + $1.count }
        return none(missing, counted(missing, "frame is missing", "frames are missing"))
      case .duplicates:
        let count = audit.duplicates.count
        return none(
          count, counted(count, "frame repeats another", "frames repeat the ones before"))
      case .frozen:
        let count = audit.frozen.count
        return none(count, counted(count, "frozen stretch", "frozen stretches"))
      case .undecodable:
        let count = audit.undecodableFrames.count
        return none(
          count, counted(count, "frame cannot be decoded", "frames cannot be decoded"))
      case .rateChanges:
        return none(
          audit.segments.count - 1,
          "the frame rate changes "
            + counted(audit.segments.count - 1, "time", "times"))
      case .unexpectedRate:
        return fraction(
          audit.expectedFrameRate.map { Value($0) }, Value(measured),
          "\(fps) instead of \(rate(audit.expectedFrameRate?.framesPerSecond))")
      case .statedRate:
        return fraction(
          audit.captureFrameRate.map { Value($0) }, Value(measured),
          "the file states a capture rate of \(rate(audit.captureFrameRate?.framesPerSecond)), but "
            + "its frames have \(fps)")
      case .irregular: return fraction(nil, nil, "the intervals follow no period")
      case .truncated: return fraction(nil, nil, "the file is truncated")
      }
    }
  }
}
