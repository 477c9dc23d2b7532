// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import OvercrankPhotos

/// The choice of a frame for a photo request, made when each frame arrives.
struct FrameChoiceTests {
  private func choice(
    _ request: Int64, current: Int64, recent: [Int64] = [], arrival: Int64? = nil
  ) -> FrameChoice {
    FrameChoice.decide(
      request, current: current, arrival: arrival ?? current, recent: recent, period: 100)
  }

  @Test func `Chooses the last frame before the photo request`() {
    #expect(choice(250, current: 200) == .current)
    #expect(choice(299, current: 200) == .current)
    #expect(choice(300, current: 200) == .wait)
    #expect(choice(250, current: 300, recent: [100, 200]) == .recent(1))
    #expect(choice(150, current: 300, recent: [100, 200]) == .recent(0))
    #expect(choice(200, current: 300, recent: [100, 200]) == .recent(1))
  }

  @Test func `Chooses the first frame after the request if none is before`() {
    #expect(choice(250, current: 300) == .current)
    #expect(choice(50, current: 300, recent: [100, 200]) == .current)
  }

  @Test func `Chooses the nearest frame if frames at the request were lost`() {
    #expect(choice(250, current: 900, recent: [0, 100]) == .recent(1))
    #expect(choice(850, current: 900, recent: [0, 100]) == .current)
  }

  @Test func `A camera clock that jumps back does not block a photo`() {
    #expect(choice(5_000_000, current: 200, arrival: 5_000_100) == .wait)
    #expect(choice(5_000_000, current: 200, arrival: 6_000_100) == .current)
  }
}
