// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

extension PlayerCore {
  /// The player that another player follows.
  struct Leader: Sendable {
    let core: PlayerCore
    /// The follower's composition time minus the leader's, in seconds.
    let distance: Rational

    /// The present state of the leader.
    var state: LeaderState { core.leaderState(shiftedBy: distance) }
  }

  /// The part of a leader's state that a follower copies.
  struct LeaderState: Sendable {
    let clock: PlaybackClock
    let runs: [TransportRun]
    let written: Int64
    let isPlaying: Bool
    let stepsBackward: Bool
    let distance: Rational
  }

  private func leaderState(shiftedBy distance: Rational) -> LeaderState {
    perform(wakes: false) { model, _ in
      LeaderState(
        clock: model.clock, runs: model.transport.runs, written: model.written,
        isPlaying: model.state == .playing, stepsBackward: model.stepsBackward, distance: distance)
    }
  }
}

extension PlayerModel {
  /// Copies the clock and the transport of the leader.
  ///
  /// Both players then always show frames of the same instant.
  mutating func follow(_ leader: PlayerCore.LeaderState) {
    guard state != .closed else { return }
    clock = leader.clock
    written = leader.written
    stepsBackward = leader.stepsBackward
    state = leader.isPlaying ? .playing : .paused
    seek = nil
    guard let last = leader.runs.last, followedRun != last.id else { return }
    followedRun = last.id
    let timeline = self.timeline
    transport = Transport(
      following: leader.runs.map { $0.shifted(by: leader.distance, onto: timeline) })
    generation += 1
    ring.resetLimit()
  }
}
