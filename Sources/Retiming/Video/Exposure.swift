// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The instants whose frames are averaged into one output frame, as a shutter that stays open
/// averages them.
package struct Exposure: Hashable, Sendable {
  /// The times in composition seconds, in ascending order; at least one.
  package fileprivate(set) var times: [Rational] = []
  /// The weight of each time, above zero.
  package fileprivate(set) var shares: [Int64] = []

  /// The number of captured frames from which on nothing is synthesized, and of the parts into which
  /// a window with fewer of them is divided.
  package static let partCount = 8
  /// A multiple of all numbers of captured frames in a part.
  private static let partShare: Int64 = 420
}

extension OutputFrameGrid {
  /// Returns the instants of each output frame.
  ///
  /// A window in which at least ``Exposure/partCount`` source frames start has only these, each for
  /// its visible time. Other windows are divided into as many equal parts, each with the source
  /// frames that start in it, or with its middle.
  ///
  /// - Parameters:
  ///   - times: The start times of the source frames in composition seconds, in ascending order.
  ///   - end: The end of the last frame; the windows end there, too.
  ///   - shutter: The part of each output period that the instants cover.
  /// - Returns: One exposure per output frame.
  /// - Throws: `MediaError` with `.notAscending`, or `.notExact` if a time cannot be computed
  ///   exactly.
  package func exposures(
    of times: [Rational], until end: Rational, _ shutter: ShutterAngle
  ) throws(MediaError) -> [Exposure] {
    let windows = try ShutterWindows(self, shutter, until: end)
    let starts = try windows.starts(of: times)
    var exposures: [Exposure] = []
    exposures.reserveCapacity(Int(clamping: count))
    var next = 0
    for slot in 0..<count {
      let window = windows.window(of: slot)
      while next < starts.count, starts[next] < window.lowerBound { next += 1 }
      var inside: [Int] = []
      while next < starts.count, starts[next] < window.upperBound {
        // Of two frames at one time, only the second one is visible.
        if let last = inside.last, starts[last] == starts[next] { inside.removeLast() }
        inside.append(next)
        next += 1
      }
      let isFilled = inside.count >= Exposure.partCount
      exposures.append(
        isFilled
          ? Exposure(inside, times, starts, window)
          : Exposure(inside, times, starts, windows, window))
    }
    return exposures
  }
}

extension Exposure {
  private mutating func append(_ time: Rational, _ share: Int64) {
    times.append(time)
    shares.append(share)
  }

  /// Makes an exposure of source frames, each for its visible time.
  fileprivate init(
    _ frames: [Int], _ times: [Rational], _ starts: [Int64], _ window: Range<Int64>
  ) {
    for (position, frame) in frames.enumerated() {
      let isLast = position == frames.count - 1
      let start = position == 0 ? window.lowerBound : starts[frame]
      let end = isLast ? window.upperBound : starts[frames[position + 1]]
      append(times[frame], end - start)
    }
  }

  /// Makes an exposure of equal parts.
  fileprivate init(
    _ frames: [Int], _ times: [Rational], _ starts: [Int64], _ windows: ShutterWindows,
    _ window: Range<Int64>
  ) {
    let length = Int128(window.upperBound) - Int128(window.lowerBound)
    /// The tick at a number of 1/16 of the window.
    func tick(_ number: Int) -> Int64 {
      window.lowerBound + Int64(length * Int128(number) / Int128(2 * Self.partCount))
    }
    for part in 0..<Self.partCount {
      let range = tick(2 * part)..<tick(2 * part + 2)
      let inside = frames.filter { range.contains(starts[$0]) }
      for frame in inside { append(times[frame], Self.partShare / Int64(inside.count)) }
      if inside.isEmpty { append(windows.seconds(of: tick(2 * part + 1)), Self.partShare) }
    }
  }
}
