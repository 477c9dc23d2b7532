// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Everything that a player's window shows, as a value.
struct PlayerScene: Hashable, Sendable {
  /// One of the images in the window, with its title and its zoom.
  struct Pane: Hashable, Sendable {
    /// The frame on screen; nil in a gap of the composition.
    var frame: Frame?
    /// The text in the pane's lower left corner; empty for no text.
    var title = ""
    var viewport = ImageViewport()
  }

  /// A frame, without its pixels.
  struct Frame: Hashable, Sendable {
    let path: String
    let index: Int
    /// The composition time of a synthesized frame; nil for a captured frame.
    var synthesizedTime: Rational?
    /// The size of the frame before its rotation, in pixels.
    let stored: PixelSize
    /// The clockwise rotation of the frame in degrees.
    let rotation: Int

    /// The size after the rotation, in pixels of the frame.
    var size: PixelSize { stored.rotated(by: rotation) }
  }

  var size: PixelSize
  var panes: [Pane]
  var timeline: TimelineContent
  /// The composition time of the playhead.
  var position = Rational.zero
  var loop: TimeRange?
  /// The composition times of the marks on the time line.
  var marks: [Rational] = []
  var isPlaying = false
  /// The text of the status line.
  var status = ""
  /// A text that is shown for a moment; empty for no text.
  var message = ""
  /// The aspect ratio of thumbnails: width divided by height.
  var thumbnailAspect = 16.0 / 9
  /// The size of each thumbnail in pixels, or nil for a thumbnail that is not decoded yet.
  var thumbnails: [PixelSize?] = []

  var layout: WindowLayout { WindowLayout(size, paneCount: panes.count) }
}
