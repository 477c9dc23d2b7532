// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// A composition and its open movies, ready to export.
struct PreparedExport {
  let composition: Composition
  let assets: [Asset]
  /// The movie of a Live Photo, which must stay open while it is read; nil for other sources.
  var openMovie: LivePhotoMovieFile?
  /// The capture frame rate to write if the source states none.
  var captureFrameRate: FrameRate?

  /// The constant frame rate of the output; nil to use the rate from the options.
  var frameRate: FrameRate?

  /// Returns the session of the export.
  func session() throws -> ExportSession { try ExportSession(composition, of: assets) }
}
