// SPDX-License-Identifier: Apache-2.0

import TestSupport

/// Deliberate mistakes, all of which the soak must detect.
///
/// A faulty box reader crashes, hangs or throws a foreign error for damaged movies. ``Kind`` lists
/// the other mistakes.
enum PlantedMistakes {
  /// Kinds of mistakes.
  ///
  /// One case in 25 makes each of them.
  enum Kind: UInt64, CaseIterable {
    case skippedPacket, unescapedTitle, uncheckedConversion

    init?(of number: UInt64) { self.init(rawValue: number % 25) }
  }

  /// Copies a movie and leaves out one packet.
  static func copy(_ source: String, to target: String, skipping packet: Int) async throws {
    try await FFmpeg.make(
      target,
      [
        "-i", source, "-map", "0:v", "-c", "copy", "-bsf:v",
        "noise=amount=0:drop=eq(n\\,\(packet))",
      ])
  }

  /// A location angle as a photo stores it, without a range check.
  static func nanoseconds(ofDegrees degrees: Double) -> UInt32 { UInt32(degrees * 36_000_000) }

  /// An error type that no module of this project throws.
  struct ForeignError: Error {}

  private static let containers: Set<String> = ["moov", "trak", "mdia", "minf", "stbl"]

  /// Counts the boxes of a movie without validating any byte.
  static func boxCount(in bytes: ArraySlice<UInt8>) throws -> Int {
    var count = 0
    var rest = bytes
    while rest.count >= 8 {
      let size = Int(rest.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
      let name = rest.dropFirst(4).prefix(4)
      guard name.allSatisfy({ (32..<127).contains($0) || $0 == 0xA9 }) else {
        throw ForeignError()
      }
      count += 1
      if containers.contains(String(decoding: name, as: UTF8.self)) {
        count += try boxCount(in: rest[(rest.startIndex + 8)..<(rest.startIndex + size)])
      }
      // An incomplete box makes this loop endless. This is the planted hang.
      guard (8...rest.count).contains(size) else { continue }
      rest = rest[(rest.startIndex + size)...]
    }
    return count
  }
}
