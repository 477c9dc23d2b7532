// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// Options that choose the tracks of a movie, for every command that reads one.
struct TrackOptions: ParsableArguments, Sendable {
  @Option(
    help: "The video track, from 1 as info lists them. Default: as players choose.",
    completion: Completions.videoTrack)
  var videoTrack: Int?

  @Option(
    help: "The audio track, from 1 as info lists them, or none. Default: as players choose.",
    completion: Completions.audioTrack, transform: TrackSelection.Audio.init(parsing:))
  var audioTrack: TrackSelection.Audio?

  func validate() throws {
    if let videoTrack, videoTrack < 1 {
      throw ValidationError("--video-track takes a number from 1")
    }
  }

  /// Opens a movie with the chosen tracks.
  func open(_ path: String, allowsTruncation: Bool = false) throws(MediaError) -> Asset {
    try select(Asset(path: path, allowsTruncation: allowsTruncation))
  }

  /// Returns an already opened movie with the chosen tracks.
  func select(_ asset: Asset) throws(MediaError) -> Asset {
    if videoTrack == nil, audioTrack == nil { return asset }
    return try asset.selecting(
      TrackSelection(video: videoTrack, audio: audioTrack ?? .automatic))
  }
}

extension TrackSelection.Audio {
  /// Parses a track number, counted from 1, or `none`.
  fileprivate init(parsing text: String) throws {
    if text == "none" {
      self = .none
    } else if let number = Int(text), number > 0 {
      self = .number(number)
    } else {
      throw ValidationError("--audio-track takes a number from 1, or none")
    }
  }
}
