// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension MediaError.Code {
  /// A time or range is not completely inside the composition.
  public static let outsideComposition = Self(rawValue: "outside_composition")
  /// Two ranges to be retimed overlap.
  public static let overlappingRanges = Self(rawValue: "overlapping_ranges")
  /// A list of segments has a gap, overlaps, or does not start at zero.
  public static let invalidSegments = Self(rawValue: "invalid_segments")
  /// A ramp covers a cut or a speed change, so the cut would have no exact time.
  public static let cutInRamp = Self(rawValue: "cut_in_ramp")
  /// The file is not a project, or contains unsupported content.
  public static let invalidProject = Self(rawValue: "invalid_project")
  /// A project counts frames without stating their rate.
  public static let frameRateNeeded = Self(rawValue: "frame_rate_needed")
}
