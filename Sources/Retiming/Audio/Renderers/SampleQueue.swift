// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Planar samples, one array a channel, all of one length.
typealias Planes = [[Float]]

/// Gives the samples of a source from a position that may lie before zero or past the end.
typealias SampleReader = (_ start: Int64, _ count: Int) throws -> [[Float]]

extension Planes {
  /// Silence of a length.
  static func silence(_ count: Int, channelCount: Int) -> Planes {
    Planes(repeating: [Float](repeating: 0, count: count), count: channelCount)
  }

  /// The length of every plane.
  var sampleCount: Int { first?.count ?? 0 }

  /// Puts samples at the end of every plane.
  mutating func append(samples: Planes) {
    for channel in indices { self[channel] += samples[channel] }
  }

  /// An equal-gain fade along half a cosine from these samples into as many others.
  func faded(into others: Planes) -> Planes {
    let length = sampleCount
    let gains = (0..<length).map {
      Float(0.5 - 0.5 * cos(.pi * (Double($0) + 0.5) / Double(length)))
    }
    return zip(self, others).map { old, new in
      (0..<length).map { old[$0] + (new[$0] - old[$0]) * gains[$0] }
    }
  }
}

/// Planar samples between an engine, which gives them as it likes, and those who take them by
/// number.
struct SampleQueue {
  private var planes: Planes
  private var head = 0
  /// How many of the samples still to come are thrown away.
  private var unwanted: Int64

  /// Makes an empty queue that throws its first samples away.
  init(channelCount: Int, dropping unwanted: Int64) {
    planes = Planes(repeating: [], count: channelCount)
    self.unwanted = unwanted
  }

  /// How many samples can be taken.
  var count: Int { planes.sampleCount - head }

  /// Puts samples at the end.
  mutating func append(_ more: Planes) {
    let dropped = Int(min(unwanted, Int64(more.sampleCount)))
    unwanted -= Int64(dropped)
    for channel in planes.indices { planes[channel] += more[channel].dropFirst(dropped) }
  }

  /// Takes samples from the front; no more than there are.
  mutating func take(_ wanted: Int) -> Planes {
    let end = head + min(wanted, count)
    let taken = planes.map { Array($0[head..<end]) }
    head = end
    // Move what is left only now and then, so that each sample is moved a few times at most.
    if head > 32768 || count == 0 {
      for channel in planes.indices { planes[channel].removeFirst(head) }
      head = 0
    }
    return taken
  }
}
