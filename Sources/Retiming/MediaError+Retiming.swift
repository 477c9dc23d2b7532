// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension MediaError.Code {
  /// The audio algorithm does not support this speed.
  public static let speedOutOfRange = Self(rawValue: "speed_out_of_range")
  /// The sampling rate or the number of channels is not supported.
  public static let unsupportedFormat = Self(rawValue: "unsupported_format")
  /// A list of mappings is invalid: mappings overlap or lie outside the timeline, a duration is not
  /// above zero, or a tick is negative.
  public static let invalidMappings = Self(rawValue: "invalid_mappings")
  /// Frame times are not in ascending order.
  public static let notAscending = Self(rawValue: "not_ascending")
  /// A reader returned a different number of samples or channels than requested.
  public static let invalidSamples = Self(rawValue: "invalid_samples")
  /// The audio library failed.
  public static let engine = Self(rawValue: "engine")
}
