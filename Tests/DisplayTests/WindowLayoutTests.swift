// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import Testing

@testable import OvercrankDisplay

/// The layout of the player window, compared with sizes computed by hand.
struct WindowLayoutTests {
  @Test func `Two clips are laid out side by side above one timeline`() {
    let layout = WindowLayout(VideoSize(width: 1_280, height: 720), paneCount: 2)
    #expect(
      layout.panes == [
        PixelRect(x: 0, y: 0, width: 638, height: 608),
        PixelRect(x: 642, y: 0, width: 638, height: 608),
      ])
    #expect(layout.panel == PixelRect(x: 0, y: 608, width: 1_280, height: 112))
    #expect(layout.thumbnails == PixelRect(x: 12, y: 620, width: 1_256, height: 48))
    #expect(layout.timeline == PixelRect(x: 12, y: 668, width: 1_256, height: 22))
    #expect(layout.status == PixelRect(x: 12, y: 690, width: 1_256, height: 30))
    #expect(layout.textScale == 2)
    #expect(layout.pane(at: Point(x: 637, y: 0)) == 0)
    #expect(layout.pane(at: Point(x: 640, y: 0)) == nil)
    #expect(layout.pane(at: Point(x: 642, y: 607)) == 1)
    #expect(layout.pane(at: Point(x: 642, y: 608)) == nil)
  }

  @Test(
    arguments: [
      (300, true, true), (299, true, false), (140, true, false), (139, false, false),
      (1, false, false),
    ])
  func `A window of little height hides its panels and not the image`(
    _ height: Int, _ hasPanel: Bool, _ hasThumbnails: Bool
  ) {
    let layout = WindowLayout(VideoSize(width: 500, height: height), paneCount: 1)
    #expect(layout.panel.isEmpty == !hasPanel)
    #expect(layout.thumbnails.isEmpty == !hasThumbnails)
    #expect(layout.timeline.isEmpty == !hasPanel)
    #expect(layout.status.isEmpty == !hasPanel)
    #expect(layout.panes[0].height + layout.panel.height == height)
    #expect(layout.panes[0].height >= height / 2)
  }

  @Test func `Pixel columns of the timeline convert to times and back`() {
    let layout = WindowLayout(VideoSize(width: 1_280, height: 720), paneCount: 1)
    let duration = Rational(628, over: 100)
    // Two pixel columns are a hundredth of a second.
    for (column, time) in [
      (12.0, Rational.zero), (13.9, Rational(1, over: 200)), (640, Rational(314, over: 100)),
      (1_268, duration), (0, .zero), (5_000, duration),
    ] {
      #expect(layout.time(atColumn: column, duration: duration) == time)
    }
    for column in [12, 13, 640, 1_267, 1_268] {
      let time = layout.time(atColumn: Double(column), duration: duration)
      #expect(layout.column(of: time, duration: duration) == column)
    }
    #expect(layout.column(of: 7, duration: duration) == 1_268)
    #expect(layout.column(of: 7, duration: .zero) == 12)
  }

  @Test func `Thumbnails fill their row without gaps`() {
    let layout = WindowLayout(VideoSize(width: 1_280, height: 720), paneCount: 1)
    for (aspect, count) in [(4.0 / 3, 19), (16.0 / 9, 14), (9.0 / 16, 46), (100, 3)] {
      let slots = layout.thumbnailSlots(aspect: aspect)
      #expect(slots.count == count)
      #expect(slots.first?.x == 12 && slots.last?.right == 1_268)
      #expect(zip(slots, slots.dropFirst()).allSatisfy { $0.right == $1.x })
    }
    #expect(layout.thumbnailSlots(aspect: 0).isEmpty)
  }
}
