// SPDX-License-Identifier: Apache-2.0

/// The frames of a movie that were synthesized, and not captured.
///
/// A movie stores them as a text with one character for each frame in presentation order: a dot for
/// a captured frame, and a digit for a synthesized one. The digit is the tenths of its confidence,
/// from 0 to 9.
public struct SynthesizedFrames: Hashable, Sendable {
  /// The key of the tag in a movie's metadata.
  package static let key = "com.overcrank.synthesized_frames"

  /// The text as the movie stores it.
  public private(set) var text = ""
  /// The number of synthesized frames.
  public private(set) var count: Int64 = 0
  /// The number of captured frames that repeat the previous one.
  package private(set) var duplicatedCount: Int64 = 0
  /// The lowest confidence, from 0 to 1; nil without synthesized frames.
  public private(set) var lowestConfidence: Double?
  private var confidenceSum = 0.0

  /// The mean confidence, from 0 to 1; nil without synthesized frames.
  public var meanConfidence: Double? { count > 0 ? confidenceSum / Double(count) : nil }

  package init() {}

  /// Reads a movie's text; nil if it has other characters than dots and digits.
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

  /// Appends equal frames: synthesized ones with a confidence from 0 to 1, or captured ones.
  package mutating func append(_ confidence: Float?, count added: Int64) {
    guard let confidence else {
      duplicatedCount += added - 1
      text += String(repeating: ".", count: Int(clamping: added))
      return
    }
    let tenths = min(9, max(0, Int(confidence * 10)))
    text += String(repeating: "\(tenths)", count: Int(clamping: added))
    count += added
    confidenceSum += Double(confidence) * Double(added)
    lowestConfidence = min(lowestConfidence ?? 1, Double(confidence))
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
  public var synthesizedFrames: SynthesizedFrames? {
    metadata[SynthesizedFrames.key].flatMap(SynthesizedFrames.init(text:))
  }
}
