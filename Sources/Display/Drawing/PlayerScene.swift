// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Everything that a player's window shows, as a value.
struct PlayerScene: Hashable, Sendable {
  /// One image and what belongs to it.
  struct Pane: Hashable, Sendable {
    /// The frame on screen; nil in a gap.
    var frame: Frame?
    /// The text in the lower corner; empty for none.
    var title = ""
    var viewport = ImageViewport()
  }

  /// A frame, without its pixels.
  struct Frame: Hashable, Sendable {
    let path: String
    let index: Int
    /// The composition time of a synthesized frame; nil for a captured one.
    var synthesizedTime: Rational?
    /// The size before the rotation.
    let stored: PixelSize
    /// The clockwise rotation in degrees.
    let rotation: Int

    /// The size on screen at one pixel per pixel.
    var size: PixelSize { stored.rotated(by: rotation) }
  }

  var size: PixelSize
  var panes: [Pane]
  var timeline: TimelineContent
  /// The composition time on screen.
  var position = Rational.zero
  var loop: TimeRange?
  /// The composition times of the marks.
  var marks: [Rational] = []
  var isPlaying = false
  /// The text of the status line.
  var status = ""
  /// A text that is shown for a moment; empty for none.
  var message = ""
  /// The aspect of thumbnails, width by height.
  var thumbnailAspect = 16.0 / 9
  /// The sizes of the thumbnails that are decoded; nil for others.
  var thumbnails: [PixelSize?] = []

  var layout: WindowLayout { WindowLayout(size, paneCount: panes.count) }
}
