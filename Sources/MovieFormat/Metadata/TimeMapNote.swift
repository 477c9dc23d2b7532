// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
package import OvercrankMediaCore

/// The mirror of a time map in the tag `comment` of a movie.
///
/// FFmpeg's muxers for MOV and MP4 keep this tag, and drop the box of the map. The note is a sentence
/// for people, followed by a code in brackets. The code has the digest of the movie, and the map itself
/// if it is short. A longer map is replaced by its speed if that gives all capture times exactly.
package struct TimeMapNote: Hashable, Sendable {
  /// The content of a note.
  package enum Content: Hashable, Sendable {
    /// The code of the whole map.
    case code([UInt8])
    /// Capture times that follow from those of the file.
    case line(TimeMap.Recording, start: Int64, timeScale: Rational)
    /// The capture times are not in the note.
    case timesLeftOut
  }

  /// The key of the tag.
  package static let key = "comment"
  private static let sentence = "Real time: "
  private static let mark = "[overcrank-time 1 "
  /// The greatest size of a code that a note holds, in bytes.
  private static let longestCode = 300
  /// The digits of a digest that is not known yet.
  private static let noDigest = String(repeating: "0", count: SampleDigest.digitCount)

  /// The digest of the movie; nil before the movie is finished.
  package var digest: SampleDigest?
  package let content: Content
  /// The sentence for people.
  package let description: String

  /// Makes the note of a map.
  ///
  /// `ticks` are the times of the frames in the movie, and `code` is the code of the map if it is known.
  package init(_ map: TimeMap, code: [UInt8]? = nil, ticks: [Int64], timescale: Int32) {
    description = Self.description(map)
    let code = code ?? map.code
    if code.count <= Self.longestCode {
      content = .code(code)
    } else if let segment = map.segments.first, map.segments.count == 1,
      let number = segment.recording, let scale = segment.timeScale, let first = map.frames.first,
      case let line = Content.line(map.recordings[number], start: first.ticks, timeScale: scale),
      map.frames.allSatisfy({ $0.content == .genuine }),
      Self.ticks(of: line, ticks, timescale)?.elementsEqual(map.frames.lazy.map(\.ticks)) == true
    {
      content = line
    } else {
      content = .timesLeftOut
    }
  }

  /// Makes a note for a movie whose map is not known before it is written.
  package init(withoutTimes map: TimeMap) {
    self.description = Self.description(map)
    content = .timesLeftOut
  }

  /// Finds the note in a comment; nil without one.
  package init?(comment: String) {
    guard let found = Self.find(in: comment) else { return nil }
    let fields = comment[found.code].split(separator: " ")
    guard fields.count >= 2, let digest = SampleDigest(text: fields[0]) else { return nil }
    self.digest = digest
    description = String(comment[found.all.lowerBound..<found.mark])
    switch fields[1] {
    case "map":
      guard fields.count == 3, let data = Data(base64Encoded: String(fields[2])) else { return nil }
      content = .code([UInt8](data))
    case "line":
      guard fields.count == 7, let identity = UInt64(fields[2], radix: 16),
        let basis = UInt8(fields[3]).flatMap(TimeMap.Recording.Basis.init(rawValue:)),
        let timescale = Int32(fields[4]), timescale > 0, let start = Int64(fields[5]),
        let scale = Self.fraction(fields[6])
      else { return nil }
      content = .line(
        TimeMap.Recording(
          identity: identity, basis: basis, timescale: timescale, knowsLosses: false),
        start: start, timeScale: scale)
    default: content = .timesLeftOut
    }
  }

  /// The note as text.
  package var text: String {
    let code: String
    switch content {
    case .code(let bytes): code = "map " + Data(bytes).base64EncodedString()
    case .line(let recording, let start, let scale):
      code =
        "line \(String(recording.identity, radix: 16)) \(recording.basis.rawValue) "
        + "\(recording.timescale) \(start) \(scale)"
    case .timesLeftOut: code = "none"
    }
    return description + Self.mark + (digest?.text ?? Self.noDigest) + " " + code + "]"
  }

  /// Returns the map of a movie whose frames have these times.
  ///
  /// The caller has compared the digest. Nil if the note has no times.
  package func map(ticks: [Int64], timescale: Int32) -> TimeMap? {
    switch content {
    case .code(let code): return TimeMap(code: code, frameCount: ticks.count)
    case .line(let recording, _, let scale):
      guard let captured = Self.ticks(of: content, ticks, timescale) else { return nil }
      var map = TimeMap()
      map.reserveCapacity(captured.count)
      map.beginSegment(recording: map.index(of: recording), timeScale: scale, isContinued: false)
      for (index, ticks) in captured.enumerated() {
        map.append(TimeMap.Frame(index: Int64(index), ticks: ticks))
      }
      return map
    case .timesLeftOut: return nil
    }
  }

  /// Returns a comment without a note.
  package static func removed(from comment: String) -> String {
    guard let found = find(in: comment) else { return comment }
    var rest = comment[..<found.all.lowerBound] + comment[found.all.upperBound...]
    while rest.last == " " { rest.removeLast() }
    return String(rest)
  }

  /// Returns a comment with the note after it.
  package func following(_ comment: String?) -> String {
    let kept = Self.removed(from: comment ?? "")
    return kept.isEmpty ? text : kept + " " + text
  }

  /// Returns the changes that complete the notes in the index of a finished movie, which have zeros for
  /// the digest.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of the `moov` box.
  ///   - digest: The digest of the movie.
  ///   - keepsContent: False to remove the times from the note.
  /// - Returns: The bytes to write, and their positions.
  package static func changes(
    in bytes: [UInt8], digest: SampleDigest, keepsContent: Bool
  ) -> [(position: Int, bytes: [UInt8])] {
    let wanted = Array((mark + noDigest).utf8)
    var changes: [(position: Int, bytes: [UInt8])] = []
    var position = 0
    while let start = firstIndex(of: wanted, in: bytes, from: position) {
      changes.append((start + mark.utf8.count, Array(digest.text.utf8)))
      position = start + wanted.count
      guard !keepsContent, let end = bytes[position...].firstIndex(of: UInt8(ascii: "]")) else {
        continue
      }
      let none = Array(" none".utf8)
      let padding = end - position - none.count
      if padding >= 0 {
        changes.append((position, none + [UInt8](repeating: UInt8(ascii: " "), count: padding)))
      }
    }
    return changes
  }

  /// Returns the index of the next occurrence of a byte sequence that is not empty.
  private static func firstIndex(of wanted: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
    bytes.withUnsafeBytes { all in
      guard let base = all.baseAddress else { return nil }
      var position = start
      while position + wanted.count <= all.count,
        let found = memchr(base + position, Int32(wanted[0]), all.count - position)
      {
        position = UnsafeRawPointer(found) - base
        if all[position...].starts(with: wanted) { return position }
        position += 1
      }
      return nil
    }
  }

  private static func find(
    in comment: String
  ) -> (all: Range<String.Index>, mark: String.Index, code: Range<String.Index>)? {
    guard let marked = comment.ranges(of: mark).last,
      let end = comment[marked.upperBound...].firstIndex(of: "]")
    else { return nil }
    let start = comment[..<marked.lowerBound].ranges(of: sentence).last?.lowerBound
    return (
      (start ?? marked.lowerBound)..<comment.index(after: end), marked.lowerBound,
      marked.upperBound..<end
    )
  }

  /// The capture times that follow from the times of a file; nil on overflow.
  private static func ticks(
    of line: Content, _ ticks: [Int64], _ timescale: Int32
  ) -> [Int64]? {
    guard case .line(let recording, let start, let scale) = line else { return nil }
    let factor = scale * Rational(Int128(recording.timescale), over: Int128(max(1, timescale)))
    guard factor.isValid, let numerator = Int64(exactly: factor.numerator),
      let denominator = Int64(exactly: factor.denominator)
    else { return nil }
    var captured: [Int64] = []
    captured.reserveCapacity(ticks.count)
    for tick in ticks {
      let product = Rational(
        Int128(tick) * Int128(numerator), over: Int128(denominator))
      guard let rounded = try? product.rounded(.halfAwayFromZero),
        let sum = Int64(exactly: rounded + Int128(start))
      else { return nil }
      captured.append(sum)
    }
    return captured
  }

  private static func fraction(_ text: Substring) -> Rational? {
    let sides = text.split(separator: "/", omittingEmptySubsequences: false)
    guard sides.count == 2, let above = Int64(sides[0]), let below = Int64(sides[1]), below > 0
    else { return nil }
    return Rational(Int128(above), over: Int128(below))
  }

  /// Describes the speeds of a map.
  private static func description(_ map: TimeMap) -> String {
    let scales = Set(map.segments.filter { $0.recording != nil }.map(\.timeScale))
    guard scales.count == 1, let scale = scales.first ?? nil else {
      return sentence + "this movie plays at several speeds. "
    }
    if scale == .one { return sentence + "1 s of this movie shows 1 s. " }
    let number = scale.denominator == 1 ? "\(scale.numerator)" : scale.description
    return sentence + "1 s of this movie shows \(number) s. "
  }
}
