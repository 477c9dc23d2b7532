// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem

/// The two kinds of movie file that are written, by libavformat's names of their muxers.
package enum MovieContainer: String, Sendable {
  case mov
  case mp4

  /// The container that a file's extension asks for; nil for any other, and for none.
  package init?(path: String) {
    switch path.fileExtension {
    case "mov", "qt": self = .mov
    case "mp4", "m4v": self = .mp4
    default: return nil
    }
  }

  /// The container of a file with this major brand.
  package init(brand: String?) { self = brand.map { $0 != "qt  " } ?? false ? .mp4 : .mov }
}
