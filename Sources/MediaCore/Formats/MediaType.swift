// SPDX-License-Identifier: Apache-2.0

/// What a device gives, or a track carries.
public enum MediaType: String, Hashable, Sendable, CaseIterable, Codable {
  /// Frames.
  case video
  /// Samples of sound.
  case audio
}
