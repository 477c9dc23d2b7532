// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankRetiming

extension AudioSegment {
  /// Creates the audio segment for a composition segment.
  ///
  /// Returns nil if that segment is silent.
  ///
  /// The identifier of the audio segment's source is the index of the asset.
  init?(_ segment: TrackSegment, of assets: [Asset]) throws(MediaError) {
    guard let mapping = segment.mapping, mapping.motion != .hold,
      let id = assets.firstIndex(where: { $0.path == segment.source?.path })
    else { return nil }
    try self.init(playing: mapping, of: id, endingAt: assets[id].audioTrack?.end ?? .zero)
  }
}
