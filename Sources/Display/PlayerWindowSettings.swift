// SPDX-License-Identifier: Apache-2.0

/// The settings of a player's window.
public struct PlayerWindowSettings: Hashable, Sendable {
  /// The title of the window.
  public var title = ""
  /// The names of the clips, one for each player, which are shown on the images together with the
  /// position.
  ///
  /// Empty shows no names.
  public var clipNames: [String] = []
  /// The width of the window in pixels; zero for a width that fits the clips.
  public var width = 0
  /// The height of the window in pixels; zero for a height that fits the clips.
  public var height = 0
  /// Whether a row of thumbnails is shown above the time line.
  public var showsThumbnails = true

  /// Creates the default settings: a window that fits the clips, with thumbnails.
  public init() {}
}
