// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension SlowMotionMarkers {
  /// Parses the slow-motion ranges in the trailer of a Samsung phone's movie.
  ///
  /// The trailer consists of named blocks, a table, the length of the table, and `SEFT` at the end
  /// of the file. The table holds `SEFH`, a version, the number of blocks, and 12 bytes per block
  /// with the distance of the block from the table. All numbers are little-endian.
  ///
  /// The block `SlowMotion_Data` is text: one `start:end:level` per range, separated by `*`, with
  /// times in milliseconds. Each level plays at half the speed of the next lower level.
  ///
  /// - Parameters:
  ///   - bytes: The last bytes of the file, up to its end.
  ///   - elsewhere: The speed outside all ranges. A movie may be stored at a lower rate than it was
  ///     captured at, and so be slow itself. This speed is then above 1, for example 8 for 240 fps
  ///     stored at 30 fps. The speeds of the ranges are relative to it.
  /// - Throws: `MediaError` with `.invalidProject` for a damaged table or damaged ranges.
  public init?(
    samsungTrailer bytes: [UInt8], elsewhere: Speed = .normal
  ) throws(MediaError) {
    guard bytes.count >= 8, bytes.suffix(4).elementsEqual("SEFT".utf8) else { return nil }
    func number(_ offset: Int) -> Int {
      bytes[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    let table = bytes.count - 8 - number(bytes.count - 8)
    guard table >= 0, table + 12 <= bytes.count - 8,
      bytes[table..<table + 4].elementsEqual("SEFH".utf8)
    else { throw .invalidMarkers("the table after the movie is damaged or truncated") }
    let count = number(table + 8)
    guard count <= (bytes.count - 8 - table - 12) / 12 else {
      throw .invalidMarkers("the table after the movie lists more blocks than it holds")
    }
    var ranges: String?
    for index in 0..<count where ranges == nil {
      let entry = table + 12 + index * 12
      let (start, size) = (table - number(entry + 4), number(entry + 8))
      // The caller passes only the last bytes of the file. A block that starts before these bytes
      // is skipped.
      guard start >= 0, size >= 8, size <= table - start else { continue }
      let nameLength = number(start + 4)
      guard nameLength <= size - 8 else { continue }
      let (name, end) = (start + 8, start + size)
      guard bytes[name..<name + nameLength].elementsEqual("SlowMotion_Data".utf8) else { continue }
      ranges = String(decoding: bytes[name + nameLength..<end], as: UTF8.self)
    }
    guard let ranges else { return nil }
    self.init(changes: try Self.changes(samsung: ranges, elsewhere), elsewhere: elsewhere)
  }

  private static func changes(
    samsung text: String, _ elsewhere: Speed
  ) throws(MediaError) -> [Composition.SpeedChange] {
    var changes: [Composition.SpeedChange] = []
    for part in text.split(separator: "*") {
      let numbers = part.split(separator: ":", omittingEmptySubsequences: false).map { Int64($0) }
      guard numbers.count == 3, let start = numbers[0], let end = numbers[1],
        let level = numbers[2], start >= 0, start < end, end < 1 << 40, (1...16).contains(level),
        let range = try? TimeRange(
          start: MediaTime(microseconds: start * 1_000), end: MediaTime(microseconds: end * 1_000)),
        let speed = try? Speed(elsewhere.fraction / Rational(1 << (level - 1) as Int64))
      else {
        throw .invalidMarkers("a slow-motion range is invalid: \(part.prefix(60))")
      }
      changes.append(Composition.SpeedChange(speed, in: range))
    }
    let ranges = changes.map(\.range).sorted { $0.start < $1.start }
    for (first, second) in zip(ranges, ranges.dropFirst()) where first.overlaps(second) {
      throw .invalidMarkers(
        "the slow-motion ranges \(first.displayText) and \(second.displayText) overlap")
    }
    return changes
  }
}
