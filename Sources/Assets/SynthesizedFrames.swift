// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The frames of a movie that were synthesized, and not captured.
///
/// As a text, they have one character for each frame in presentation order: a dot for a captured frame,
/// and a digit for a synthesized one. The digit is the tenths of its confidence, from 0 to 9.
public struct SynthesizedFrames: Hashable, Sendable {
  /// The key of the tag in a movie of an earlier version; now the time map has it.
  package static let key = "com.overcrank.synthesized_frames"

  /// The text.
  public private(set) var text = ""
  /// The number of synthesized frames in the movie.
  public private(set) var count: Int64 = 0
  /// The number of captured frames that repeat the previous one.
  package private(set) var duplicatedCount: Int64 = 0
  /// The lowest confidence in a synthesized frame, from 0 to 1; nil without synthesized frames.
  public private(set) var lowestConfidence: Double?
  private var confidenceSum = 0.0

  /// The mean confidence in the synthesized frames, from 0 to 1; nil without synthesized frames.
  public var meanConfidence: Double? { count > 0 ? confidenceSum / Double(count) : nil }

  package init() {}

  /// Parses the text that a movie stores.
  ///
  /// Returns nil if it contains characters other than dots and digits.
  package init?(text: String) {
    for character in text.utf8 {
      switch character {
      case UInt8(ascii: "."): append(nil, count: 1)
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        append(Float(character - UInt8(ascii: "0")) / 10, count: 1)
      default: return nil
      }
    }
  }

  /// Appends equal frames: captured frames, or synthesized frames with a confidence from 0 to 1.
  package mutating func append(_ confidence: Float?, count added: Int64) {
    guard let confidence else {
      duplicatedCount += added - 1
      text += String(repeating: ".", count: Int(clamping: added))
      return
    }
    let tenths = Self.tenths(of: confidence)
    text += String(repeating: "\(tenths)", count: Int(clamping: added))
    count += added
    confidenceSum += Double(confidence) * Double(added)
    lowestConfidence = min(lowestConfidence ?? 1, Double(confidence))
  }

  /// Returns a confidence from 0 to 1 in tenths, from 0 to 9.
  package static func tenths(of confidence: Float) -> UInt8 {
    UInt8(min(9, max(0, Int(confidence * 10))))
  }

  /// Returns the confidence of a frame in tenths, from 0 to 9; nil for a captured frame.
  public func confidenceTenths(ofFrame index: Int) -> Int? {
    guard text.utf8.count > index, index >= 0 else { return nil }
    let character = text.utf8[text.utf8.index(text.utf8.startIndex, offsetBy: index)]
    return character == UInt8(ascii: ".") ? nil : Int(character) - Int(UInt8(ascii: "0"))
  }
}

extension Asset {
  /// The synthesized frames of the movie; nil if it has none, or if none are known.
  ///
  /// They are read from the time map in the file, or from the tag of an earlier version.
  public var synthesizedFrames: SynthesizedFrames? {
    switch storedTimeMap() {
    case .panes(let panes): panes.first.flatMap { SynthesizedFrames($0.map) }
    case .none, .recording: metadata[SynthesizedFrames.key].flatMap(SynthesizedFrames.init(text:))
    case .refused: nil
    }
  }
}

extension SynthesizedFrames {
  /// The synthesized frames of a time map; nil if it has none.
  fileprivate init?(_ map: TimeMap) {
    self.init()
    for frame in map.frames {
      if case .synthesized(let tenths) = frame.content {
        // The middle of the tenth, so that rounding cannot leave it.
        append((Float(tenths) + 0.5) / 10, count: 1)
      } else {
        append(nil, count: 1)
      }
    }
    if count == 0 { return nil }
  }
}
