// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension MediaError.Code {
  /// A time or a range is not wholly inside the composition.
  public static let outsideComposition = Self(rawValue: "outside_composition")
  /// Two ranges that would be retimed share time.
  public static let overlappingRanges = Self(rawValue: "overlapping_ranges")
  /// A list of segments leaves a hole, overlaps, or does not start at zero.
  public static let invalidSegments = Self(rawValue: "invalid_segments")
  /// A ramp over a cut or over a change of speed would have no exact time.
  public static let cutInRamp = Self(rawValue: "cut_in_ramp")
  /// The file is not a project, or plays what cannot be played here.
  public static let invalidProject = Self(rawValue: "invalid_project")
  /// A project counts in frames whose rate it does not state.
  public static let frameRateNeeded = Self(rawValue: "frame_rate_needed")
}
