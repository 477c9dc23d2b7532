// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import OvercrankPlayback

struct PlayerStateTests {
  /// The table in the documentation of ``PlayerState``; nil where an input does not change the
  /// state.
  private static let table: [(PlayerState, [PlayerState?])] = [
    (.paused, [.playing, .scheduled, nil, .seeking, nil, nil, nil, nil, .closed]),
    (.seeking, [nil, .scheduled, nil, .seeking, .paused, .playing, nil, nil, .closed]),
    (.scheduled, [.playing, .scheduled, .paused, .seeking, nil, nil, .playing, nil, .closed]),
    (.playing, [.playing, .scheduled, .paused, .seeking, nil, nil, nil, .ended, .closed]),
    (.ended, [.playing, .scheduled, nil, .seeking, nil, nil, nil, nil, .closed]),
    (.closed, [nil, nil, nil, nil, nil, nil, nil, nil, nil]),
  ]

  @Test func `Each event changes the player state as documented`() {
    #expect(Self.table.count == PlayerState.allCases.count)
    for (state, row) in Self.table {
      #expect(row.count == PlayerState.Input.allCases.count)
      for (input, next) in zip(PlayerState.Input.allCases, row) {
        #expect(state.next(input) == next ?? state, "\(state) \(input)")
      }
    }
  }
}
