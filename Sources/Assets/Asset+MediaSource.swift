// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

extension Asset {
  /// The asset as a media source for compositions.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for an asset of zero duration.
  public func mediaSource() throws(MediaError) -> MediaSource {
    var tracks: [SourceTrack] = []
    if let videoTrack {
      tracks.append(
        SourceTrack(
          .video, rotation: videoTrack.rotation, language: videoTrack.format.metadata["language"]))
    }
    if let audioTrack {
      tracks.append(SourceTrack(.audio, language: audioTrack.format.metadata["language"]))
    }
    do throws(MediaError) {
      return try MediaSource(path: path, duration: duration, tracks: tracks)
    } catch {
      throw MediaError(.emptyRange, error.description, recovery: "choose a file that lasts longer")
    }
  }
}
