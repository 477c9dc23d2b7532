// SPDX-License-Identifier: Apache-2.0

/// The frames of a movie that were synthesized instead of captured.
///
/// A movie stores this as text with one character for each frame in presentation order: a dot for a
/// captured frame, and a digit for a synthesized frame. The digit is the confidence in tenths, from
/// 0 to 9.
public struct SynthesizedFrames: Hashable, Sendable {
  /// The key of the tag in a movie's metadata.
  package static let key = "com.overcrank.synthesized_frames"

  /// The text as the movie stores it.
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
    let tenths = min(9, max(0, Int(confidence * 10)))
    text += String(repeating: "\(tenths)", count: Int(clamping: added))
    count += added
    confidenceSum += Double(confidence) * Double(added)
    lowestConfidence = min(lowestConfidence ?? 1, Double(confidence))
  }

  /// Returns the confidence in a synthesized frame in tenths, from 0 to 9; nil for a captured
  /// frame.
  public func confidenceTenths(ofFrame index: Int) -> Int? {
    guard text.utf8.count > index, index >= 0 else { return nil }
    let character = text.utf8[text.utf8.index(text.utf8.startIndex, offsetBy: index)]
    return character == UInt8(ascii: ".") ? nil : Int(character) - Int(UInt8(ascii: "0"))
  }
}

extension Asset {
  /// The synthesized frames of the movie.
  ///
  /// Nil if there are none, or if the movie does not list them.
  public var synthesizedFrames: SynthesizedFrames? {
    metadata[SynthesizedFrames.key].flatMap(SynthesizedFrames.init(text:))
  }
}
