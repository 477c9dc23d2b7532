// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankRetiming

extension AudioSegment {
  /// Creates the audio segment of a composition segment; returns nil if the segment is silent.
  ///
  /// The source identifier is the index of the asset.
  init?(_ segment: TrackSegment, of assets: [Asset]) throws(MediaError) {
    guard let mapping = segment.mapping, mapping.motion != .hold,
      let id = assets.firstIndex(where: { $0.path == segment.source?.path })
    else { return nil }
    try self.init(playing: mapping, of: id, endingAt: assets[id].audioTrack?.end ?? .zero)
  }
}
