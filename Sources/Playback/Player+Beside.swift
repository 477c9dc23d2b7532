// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankEditing
public import OvercrankMediaCore

extension Player {
  /// Creates a player that shows another composition beside this one, on the same clock.
  ///
  /// The new player has no audio, and commands to it have no effect. It follows every command to
  /// this player: rate, seek, step, loop and pause. After the end of its own composition, the new
  /// player shows the last frame, and before the start the first frame.
  ///
  /// - Parameters:
  ///   - composition: The composition of the new player.
  ///   - assets: The assets that it plays.
  ///   - origin: The time in `composition` that is shown together with `ownOrigin`.
  ///   - ownOrigin: The time in this player's composition.
  /// - Returns: The new player.
  /// - Throws: `MediaError` with `.missingAsset` for a source that is not among the assets,
  ///   `.outOfMemory`.
  public func makeFollower(
    _ composition: Composition, of assets: [Asset], origin: MediaTime = .zero,
    besideOrigin ownOrigin: MediaTime = .zero
  ) throws(MediaError) -> Player {
    let timeline = try PlaybackTimeline(composition, assets: assets.map(PlayerAsset.init))
    return try Player(following: self, timeline, distance: origin - ownOrigin)
  }
}
