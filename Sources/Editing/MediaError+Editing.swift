// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension MediaError.Code {
  /// A time or range is not completely inside the composition.
  public static let outsideComposition = Self(rawValue: "outside_composition")
  /// Two ranges to be retimed overlap.
  public static let overlappingRanges = Self(rawValue: "overlapping_ranges")
  /// A list of segments has a gap, overlaps, or does not start at zero.
  public static let invalidSegments = Self(rawValue: "invalid_segments")
  /// The range of a ramp contains a cut or a speed change, whose time inside the ramp could not be
  /// represented exactly.
  public static let cutInRamp = Self(rawValue: "cut_in_ramp")
  /// The file is not a project, or contains unsupported content.
  public static let invalidProject = Self(rawValue: "invalid_project")
  /// A project gives its times as frame numbers but does not state the frame rate.
  public static let frameRateNeeded = Self(rawValue: "frame_rate_needed")
}
