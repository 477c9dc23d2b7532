// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Planar samples: one array per channel, all of equal length.
typealias Planes = [[Float]]

/// A closure that returns source samples; the range may extend beyond both ends of the source.
typealias SampleReader = (_ start: Int64, _ count: Int) throws -> [[Float]]

extension Planes {
  /// Returns silence of `count` samples per channel.
  static func silence(_ count: Int, channelCount: Int) -> Planes {
    Planes(repeating: [Float](repeating: 0, count: count), count: channelCount)
  }

  /// The number of samples per channel.
  var sampleCount: Int { first?.count ?? 0 }

  /// Appends samples to every channel.
  mutating func append(samples: Planes) {
    for channel in indices { self[channel] += samples[channel] }
  }

  /// Returns a crossfade from these samples to other samples of equal length.
  ///
  /// The gains follow half a cosine and sum to 1.
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

/// A queue of rendered samples.
///
/// The renderer appends blocks of varying size, and the consumer takes exactly the number of
/// samples that it needs.
struct SampleQueue {
  private var planes: Planes
  private var head = 0
  /// The number of incoming samples still to be discarded.
  private var unwanted: Int64

  /// Creates an empty queue that discards its first samples.
  init(channelCount: Int, dropping unwanted: Int64) {
    planes = Planes(repeating: [], count: channelCount)
    self.unwanted = unwanted
  }

  /// The number of available samples per channel.
  var count: Int { planes.sampleCount - head }

  /// Appends samples.
  mutating func append(_ more: Planes) {
    let dropped = Int(min(unwanted, Int64(more.sampleCount)))
    unwanted -= Int64(dropped)
    for channel in planes.indices { planes[channel] += more[channel].dropFirst(dropped) }
  }

  /// Removes and returns up to `wanted` samples from the front.
  mutating func take(_ wanted: Int) -> Planes {
    let end = head + min(wanted, count)
    let taken = planes.map { Array($0[head..<end]) }
    head = end
    // Removing the taken samples moves all remaining samples. So they are removed only after 32768
    // samples, and each sample is moved only a few times.
    if head > 32768 || count == 0 {
      for channel in planes.indices { planes[channel].removeFirst(head) }
      head = 0
    }
    return taken
  }
}
