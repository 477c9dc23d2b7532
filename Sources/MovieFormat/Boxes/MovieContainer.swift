// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem

/// The container formats that this library can write.
///
/// The raw values are the names of libavformat's muxers.
package enum MovieContainer: String, Sendable {
  case mov
  case mp4

  /// The container that a file name extension selects.
  ///
  /// Nil for an unknown extension, and without an extension.
  package init?(path: String) {
    switch path.fileExtension {
    case "mov", "qt": self = .mov
    case "mp4", "m4v": self = .mp4
    default: return nil
    }
  }

  /// The container of a file with this path that this library records: MP4 also for `.m4a`, and MOV for
  /// an unknown extension.
  package init(recording path: String) {
    self = path.fileExtension == "m4a" ? .mp4 : Self(path: path) ?? .mov
  }

  /// The container that a major brand identifies.
  package init(brand: String?) { self = brand.map { $0 != "qt  " } ?? false ? .mp4 : .mov }
}
