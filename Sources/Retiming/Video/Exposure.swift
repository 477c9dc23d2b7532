// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The instants whose frames are averaged into one output frame, as a shutter that stays open
/// averages them.
package struct Exposure: Hashable, Sendable {
  /// The times in composition seconds, in ascending order; at least one.
  package private(set) var times: [Rational] = []
  /// The weight of each time, above zero.
  package private(set) var shares: [Int64] = []
  /// The indices of the source frames that are averaged, one per time; nil for the frames at the
  /// exact times.
  ///
  /// Their times are those at which they become visible. In reverse playback, and at a trim, these
  /// are not the instants of the frames.
  package let frames: [Int]?

  /// The number of visible source frames from which on nothing is synthesized, and of the parts into
  /// which a window with fewer of them is divided.
  package static let partCount = 8
  /// A multiple of all numbers of source frames in a part.
  private static let partShare: Int64 = 420

  private mutating func append(_ time: Rational, _ share: Int64) {
    times.append(time)
    shares.append(share)
  }

  /// Makes an exposure of source frames, each for its visible time.
  init(visible parts: [BlendedFrame.Part], _ starts: [Rational]) {
    frames = parts.map(\.frame)
    for part in parts { append(starts[part.frame], part.share) }
  }

  /// Makes an exposure of equal parts.
  init(partsOf window: ShutterContent.Window, _ content: ShutterContent) {
    frames = nil
    let range = window.range
    let length = Int128(range.upperBound) - Int128(range.lowerBound)
    /// The tick at a number of 1/16 of the window.
    func tick(_ number: Int) -> Int64 {
      range.lowerBound + Int64(length * Int128(number) / Int128(2 * Self.partCount))
    }
    let starts = content.starts
    // The first frame is visible before its start, even if another one starts then as well.
    let starting = window.parts.dropFirst(window.firstStart).map(\.frame).filter {
      $0 + 1 == starts.count || starts[$0] < starts[$0 + 1]
    }
    for number in 0..<Self.partCount {
      let part = tick(2 * number)..<tick(2 * number + 2)
      let inside = starting.filter { part.contains(starts[$0]) }
      for frame in inside {
        append(content.times[frame], Self.partShare / Int64(inside.count))
      }
      if inside.isEmpty {
        append(content.windows.seconds(of: tick(2 * number + 1)), Self.partShare)
      }
    }
  }
}
