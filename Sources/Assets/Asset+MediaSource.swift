// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

extension Asset {
  /// The asset as the value that compositions hold.
  ///
  /// - Throws: `AssetError` with `.emptyRange` for an asset that lasts no time.
  public func mediaSource() throws(AssetError) -> MediaSource {
    var tracks: [SourceTrack] = []
    if let videoTrack {
      tracks.append(
        SourceTrack(
          .video, rotation: videoTrack.rotation, language: videoTrack.format.metadata["language"]))
    }
    if let audioTrack {
      tracks.append(SourceTrack(.audio, language: audioTrack.format.metadata["language"]))
    }
    do throws(TimingError) {
      return try MediaSource(path: path, duration: duration, tracks: tracks)
    } catch {
      throw AssetError(.emptyRange, error.description, hint: "choose a file that lasts longer")
    }
  }
}
