// SPDX-License-Identifier: Apache-2.0

/// The type of a track or of a device's data.
public enum MediaType: String, Hashable, Sendable, CaseIterable, Codable {
  /// Video frames.
  case video
  /// Audio samples.
  case audio
}
