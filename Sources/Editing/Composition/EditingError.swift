// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// An edit that cannot be made, and why; the composition it was asked of is as it was before.
public struct EditingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  ///
  /// New ones may be added.
  public struct Code: Hashable, Sendable {
    /// The name that documents carry, such as `overflow`.
    public let rawValue: String
    /// A range or a duration that would have to be longer than zero is not.
    public static let emptyRange = Code(rawValue: "empty_range")
    /// A range is not wholly inside its source.
    public static let outsideSource = Code(rawValue: "outside_source")
    /// A time or a range is not wholly inside the composition.
    public static let outsideComposition = Code(rawValue: "outside_composition")
    /// Two ranges that would be retimed share time.
    public static let overlappingRanges = Code(rawValue: "overlapping_ranges")
    /// A list of segments that leaves a hole, overlaps or does not start at zero.
    public static let invalidSegments = Code(rawValue: "invalid_segments")
    /// A ramp over a cut or over a change of speed, which would have no exact time.
    public static let cutInRamp = Code(rawValue: "cut_in_ramp")
    /// A project file that is none, or that plays what cannot be played here.
    public static let invalidProject = Code(rawValue: "invalid_project")
    /// A project counts in frames whose rate it does not say.
    public static let frameRateNeeded = Code(rawValue: "frame_rate_needed")
    /// A time that would be needed does not fit the numbers that hold exact times.
    public static let notExact = Code(rawValue: "not_exact")
  }

  /// What kind of failure this is.
  public let code: Code
  /// One sentence without a final period, for people.
  public let description: String
  /// The ranges that the sentence names, in the order in which it names them.
  public let ranges: [TimeRange]

  /// Makes an error of a kind, with its sentence and the ranges that it names.
  public init(_ code: Code, _ description: String, ranges: [TimeRange] = []) {
    self.code = code
    self.description = description
    self.ranges = ranges
  }
}

/// Does arithmetic of exact times, and says what was being edited if it does not fit.
func exactly<Value>(
  _ what: @autoclosure () -> String, _ arithmetic: () throws(TimingError) -> Value
) throws(EditingError) -> Value {
  do { return try arithmetic() } catch {
    throw EditingError(
      error.code == .emptyRange ? .emptyRange : .notExact,
      "\(what()) cannot be done exactly: \(error.description); try rounder times or speeds")
  }
}
