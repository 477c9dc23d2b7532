// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankPlayback

/// The decode jobs of a player, carried out by the test itself.
struct DecodeJobTests {
  private let scratch: Scratch
  private let stage: Stage

  /// Makes a movie of 240 fps in which each frame is a key frame, and a player that shows the
  /// middle of the movie.
  init() throws {
    scratch = try Scratch()
    stage = try Stage(try Movies.painted(scratch, gop: 1))
    stage.player.seek(to: MediaTime(seconds: 1))
    #expect(stage.number(at: 0) == 240)
  }

  /// Takes the next job and decodes its frames one by one, in the given milliseconds for each.
  ///
  /// - Returns: The frames that were decoded before the job was stopped.
  private func decode(each milliseconds: Int64) throws -> (job: DecodeJob, given: [Int]) {
    let job = try #require(stage.player.core.perform { $0.nextJob($1)?.job })
    var given: [Int] = []
    for frame in job.frames {
      stage.clock.advance(by: milliseconds * 1_000_000)
      given.append(frame)
      guard try stage.give(frame, of: job) else { break }
    }
    return (job, given)
  }

  /// The frame that is due at 240 fps.
  private func due(rate: Int) -> Int {
    240 + rate * Int(stage.clock.now.wholeMicroseconds - Stage.start / 1_000) * 240 / 1_000_000
  }

  @Test func `A forward decode job stops if its next frame is already past`() throws {
    try stage.player.setRate(1)
    // Decoding one frame per refresh in 5 ms is fast enough for all frames.
    let (job, given) = try decode(each: 5)
    #expect(job.frames.count >= 8 && given == job.frames)
    // Decoding in 50 ms per frame is too slow, and playback catches up.
    let late = try decode(each: 50)
    #expect(late.given.count < late.job.frames.count)
    #expect(late.job.frames[late.given.count] < due(rate: 1))
    // The next job begins with the frame that is due at its start.
    let next = try decode(each: 1)
    #expect(try #require(next.given.first) >= due(rate: 1) - next.given.count)
  }

  @Test func `A reverse decode job stops if its remaining frames are past`() throws {
    try stage.player.setRate(-1)
    let (job, given) = try decode(each: 5)
    #expect(job.frames.count >= 4 && given == job.frames)
    // In reverse playback, the last frame that a job decodes is needed first. A slow job leaves out
    // these last frames, but is in time for its first frames.
    let slow = try decode(each: 20)
    let rest = slow.job.frames.dropFirst(slow.given.count)
    #expect(slow.given.count > 2 && rest.allSatisfy { $0 > due(rate: -1) })
  }

  @Test func `A late decode job still delivers its first frame`() throws {
    try stage.player.setRate(1)
    let late = try decode(each: 400)
    #expect(late.given == Array(late.job.frames.prefix(1)))
    // The frame is shown although playback passed it 96 frames ago.
    #expect(stage.player.frame(at: stage.clock.now)?.index == late.given[0])
    let next = try decode(each: 400)
    #expect(next.given.count == 1 && next.given[0] > late.given[0] + 16)
    #expect(stage.player.frame(at: stage.clock.now)?.index == next.given[0])
  }

  @Test func `A running decode job uses a new playback rate immediately`() throws {
    try stage.player.setRate(1)
    let core = stage.player.core
    let job = try #require(core.perform { $0.nextJob($1)?.job })
    try stage.player.setRate(2)
    var given: [Int] = []
    for frame in job.frames {
      stage.clock.advance(by: given.isEmpty ? 1_000_000 : 50_000_000)
      given.append(frame)
      guard try stage.give(frame, of: job) else { break }
    }
    // The first frame is decoded early enough. The second frame is decoded after playback has
    // passed the third frame.
    #expect(given.count == 2 && job.frames.count > 2)
  }

  @Test func `A frame that no display refresh shows is not decoded`() throws {
    try stage.player.setRate(1)
    _ = stage.player.frame(at: MediaTime(nanoseconds: Stage.start + 50_000_000))
    // Frame 253 is due between two refreshes, which show frames 252 and 256.
    stage.clock.advance(by: 56_000_000)
    let (job, _) = try decode(each: 0)
    #expect(!job.frames.contains(253) && job.frames.contains(256))
  }

  @Test func `A decode job that spans the loop end delivers every frame`() throws {
    let range = try TimeRange(start: MediaTime(seconds: 1), end: MediaTime(5, over: 4))
    try stage.player.setLoop(range)
    try stage.player.setRate(1)
    // At the end of the loop, the frames at the start of the loop are needed.
    stage.clock.advance(by: 200_000_000)
    let (job, given) = try decode(each: 1)
    #expect(given == job.frames)
  }

  @Test func `The player opens both its decoders before the first frame`() throws {
    let core = stage.player.core
    stage.work()
    #expect(core.openDecoderCount == 2)
    let sent = stage.player.sentPacketCount
    stage.work()
    #expect(core.openDecoderCount == 2 && stage.player.sentPacketCount == sent)
  }

  /// Compositions of the whole clip six times: forward, reversed, or alternating.
  enum Order: CaseIterable {
    case forward, reversed, pingPong

    static let count: Int128 = 6

    func isDescending(_ copy: Int128) -> Bool {
      self == .reversed || self == .pingPong && !copy.isMultiple(of: 2)
    }

    /// The frames near a composition time, which is given in frames.
    func frames(near position: Rational) throws -> Set<Int> {
      Set(
        try [-1, 0, 1].map { (slack: Int128) in
          let near = min(
            max(0, position + Rational(slack, over: 100)), Rational(480 * Self.count) - 1)
          let index = Int(try near.rounded(.towardNegativeInfinity))
          return isDescending(Int128(index / 480)) ? 479 - index % 480 : index % 480
        })
    }
  }

  /// A job decodes only frames that a refresh will show, except for the first one.
  ///
  /// This holds for any order of frames and for a slow decoder.
  @Test(arguments: Order.allCases, [2, 7, 23, 60] as [Int64])
  func `Decode jobs decode only frames that a display refresh shows`(
    _ order: Order, _ milliseconds: Int64
  ) throws {
    let asset = try Asset(path: scratch.file("clip.mov"))
    let source = try asset.mediaSource()
    var composition = Composition()
    for copy in 0..<Order.count {
      try composition.append(source)
      let start = MediaTime(seconds: 2 * Int64(copy))
      let range = try TimeRange(start: start, duration: MediaTime(seconds: 2))
      if order.isDescending(copy) { try composition.reverse(range) }
    }
    for rate in [1, -1, 3] as [Int128] {
      let stage = try Stage(composition, of: [asset])
      let start = composition.duration.seconds / 2 - Rational(rate, over: 10)
      stage.player.seek(to: try #require(MediaTime(exactly: start)))
      _ = stage.number(at: 0)
      try stage.player.setRate(Rational(rate))
      let core = stage.player.core
      var (elapsed, refresh, jobCount) = (Rational.zero, 0 as Int128, 0)
      /// The frames that the coming refreshes show, also if a refresh is a little early or late.
      func coming() throws -> Set<Int> {
        var shown: Set<Int> = []
        for count in 0...64 as ClosedRange<Int128> {
          for slack in [-1, 0, 1] as [Int128] {
            let time = Rational(refresh + count, over: 60) + Rational(slack, over: 1_920)
            let position = (start + time * Rational(rate)) * 240
            shown.formUnion(try order.frames(near: position))
          }
        }
        return shown
      }
      while elapsed < Rational(1, over: 2) {
        guard let job = core.perform({ $0.nextJob($1)?.job }) else {
          stage.clock.advance(by: 1_000_000)
          elapsed += Rational(1, over: 1_000)
          continue
        }
        jobCount += 1
        for (number, frame) in job.frames.enumerated() {
          if number > 0 {
            #expect(try coming().contains(frame), "\(frame) in \(job.frames) at \(elapsed)")
          }
          for _ in 0..<milliseconds {
            stage.clock.advance(by: 1_000_000)
            elapsed += Rational(1, over: 1_000)
            guard Rational(refresh + 1, over: 60) <= elapsed else { continue }
            refresh += 1
            let time = Stage.start + Int64(refresh) * 1_000_000_000 / 60
            _ = stage.player.frame(at: MediaTime(nanoseconds: time))
          }
          guard try stage.give(frame, of: job) else { break }
        }
      }
      #expect(jobCount > 0)
    }
  }

  @Test func `Reversing playback never shows a frame before it was due`() throws {
    let player = stage.player
    try player.setRate(1)
    let job = try #require(player.core.perform { $0.nextJob($1)?.job })
    for frame in [246, 250, 255] { _ = try stage.give(frame, of: job) }
    stage.clock.advance(by: 50_000_000)
    #expect(player.frame(at: stage.clock.now)?.index == 250)
    try player.setRate(-1)
    // Frame 248 is due. Frame 255 comes before it in this direction, but playback turned around at
    // frame 252.
    stage.clock.advance(by: 16_000_000)
    #expect(player.frame(at: stage.clock.now)?.index == 250)
    // Frame 245 is due but not decoded. Frame 246 was due before it, and is decoded.
    stage.clock.advance(by: 12_000_000)
    #expect(player.frame(at: stage.clock.now)?.index == 246)
  }

  @Test func `The last decoded frame is shown until the due one is decoded`() throws {
    let player = stage.player
    try player.setLoop(try TimeRange(start: MediaTime(seconds: 1), end: MediaTime(5, over: 4)))
    try player.setRate(1)
    let job = try #require(player.core.perform { $0.nextJob($1)?.job })
    for frame in [246, 255, 299] { _ = try stage.give(frame, of: job) }
    /// The frame that is shown after some milliseconds of playback.
    func shown(after milliseconds: Int64) -> (Int?, Bool?) {
      let frame = player.frame(at: MediaTime(nanoseconds: Stage.start + milliseconds * 1_000_000))
      return (frame?.index, frame?.isCurrent)
    }
    #expect(shown(after: 0) == (240, true))
    // Frames 247, 252 and 256 are due.
    #expect(shown(after: 30) == (246, false))
    #expect(shown(after: 50) == (246, false))
    #expect(shown(after: 70) == (255, false))
    #expect(shown(after: 247) == (299, true))
    // The loop has begun again.
    #expect(shown(after: 251) == (240, true))
    #expect(shown(after: 281) == (246, false))
  }
}

extension Stage {
  /// Completes one frame of a job with a blank image.
  ///
  /// - Returns: Whether the job continues.
  fileprivate func give(_ frame: Int, of job: DecodeJob) throws -> Bool {
    let image = try MediaFrame.video(width: 16, height: 16, pixelFormat: .yuv420p)
    return player.core.perform {
      $0.insert(image, for: FrameKey(asset: 0, frame: frame), of: job, $1)
    }
  }
}
