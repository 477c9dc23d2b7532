// SPDX-License-Identifier: Apache-2.0
import Capture
import FoundationEssentials
import MediaTiming

/// What a recording says of itself inside its file.
enum RecordingTags {
  /// The rate of the sensor as an exact fraction: `240/1`.
  static let captureFrameRate = "com.overcrank.capture_frame_rate"
  /// The same as Android writes it, for players that know no other.
  static let androidCaptureRate = "com.android.capture.fps"
  /// The ledger of the take as JSON, so that each frame can be named by its number and time.
  static let recording = "com.overcrank.recording"

  /// The JSON behind ``recording``.
  struct Recording: Codable {
    struct Gap: Codable {
      var afterIndex: Int64
      var count: Int64
    }
    struct Trigger: Codable {
      var source: String
      var captureNs: Int64
    }
    var version = 1
    var device: String
    var mode: String
    var firstCaptureNs: Int64
    var firstSequence: Int64
    /// Nil while the file grows: nobody knows yet, and a kill must not leave a file that says
    /// none.
    var gaps: [Gap]?
    /// What the clip was made for, on the clock of the first frame; nil for one simply begun.
    var trigger: Trigger?
  }

  static func metadata(frameRate: FrameRate, recording: Recording) -> [String: String] {
    var tags = [
      captureFrameRate: frameRate.description,
      // Six digits, as Android writes a float's text; the exact value is in our own tag.
      androidCaptureRate: decimal(frameRate),
    ]
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if let data = try? encoder.encode(recording) {
      tags[Self.recording] = String(decoding: data, as: UTF8.self)
    }
    tags["creation_time"] = Date.now.ISO8601Format()
    return tags
  }

  private static func decimal(_ rate: FrameRate) -> String {
    let millionths =
      Rational(reducingProduct: rate, 1_000_000).rounded(.halfAwayFromZero)
    let fraction = String(millionths % 1_000_000)
    return "\(millionths / 1_000_000)."
      + String(repeating: "0", count: 6 - fraction.count) + fraction
  }
}

extension Rational {
  /// A rate times a whole number: 32 by 64 bits always fit.
  fileprivate init(reducingProduct rate: FrameRate, _ factor: Int64) {
    let product = try? rate.framesPerSecond.multiplied(by: Rational(factor))
    self = product ?? .zero
  }
}
