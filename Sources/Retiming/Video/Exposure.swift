// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The instants whose frames are averaged into one output frame, to imitate an open shutter.
package struct Exposure: Hashable, Sendable {
  /// The times of the averaged frames in composition seconds, in ascending order; at least one.
  package private(set) var times: [Rational] = []
  /// The weight of the frame at each time, above zero.
  package private(set) var shares: [Int64] = []
  /// The indices of the source frames to average, one for each time; nil if frames are synthesized
  /// at the exact times.
  ///
  /// With indices, each time is when the source frame becomes visible. In reverse playback and at a
  /// trim, this is not the frame's own time.
  package let frames: [Int]?

  /// The number of equal parts into which a window is divided for synthesis.
  ///
  /// A window with at least this many visible source frames is not divided.
  package static let partCount = 8
  /// The total weight of one of these parts.
  ///
  /// It is a multiple of each possible number of source frames in a part, from 1 to 7.
  private static let partShare: Int64 = 420

  private mutating func append(_ time: Rational, _ share: Int64) {
    times.append(time)
    shares.append(share)
  }

  /// Makes an exposure of source frames, each weighted by its visible time.
  init(visible parts: [BlendedFrame.Part], _ starts: [Rational]) {
    frames = parts.map(\.frame)
    for part in parts { append(starts[part.frame], part.share) }
  }

  /// Makes an exposure of a window that is divided into equal parts.
  init(partsOf window: ShutterContent.Window, _ content: ShutterContent) {
    frames = nil
    let range = window.range
    let length = Int128(range.upperBound) - Int128(range.lowerBound)
    /// Returns the tick after a number of sixteenths of the window.
    func tick(_ number: Int) -> Int64 {
      range.lowerBound + Int64(length * Int128(number) / Int128(2 * Self.partCount))
    }
    let starts = content.starts
    // Leaves out a source frame that starts at the same tick as the next one. The first source
    // frame may start at the same tick as the second, and is still among the visible frames,
    // because it is shown even before its start.
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
