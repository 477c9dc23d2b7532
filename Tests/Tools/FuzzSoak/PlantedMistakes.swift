// SPDX-License-Identifier: Apache-2.0

/// A careless reader of a movie's boxes, which crashes, hangs or throws a foreign error where a
/// damaged one says what no whole one does: what the soak is there to find.
enum PlantedMistakes {
  /// What no room of ours throws.
  struct ForeignError: Error {}

  private static let containers: Set<String> = ["moov", "trak", "mdia", "minf", "stbl"]

  /// Counts the boxes of a movie, believing each of its bytes.
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
      // What has not come yet is waited for.
      guard (8...rest.count).contains(size) else { continue }
      rest = rest[(rest.startIndex + size)...]
    }
    return count
  }
}
