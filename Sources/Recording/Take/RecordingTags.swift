// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import OvercrankCapture
import OvercrankMediaCore

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
    /// What the camera's settings held when the take began, by their names; nil for a camera that
    /// tells none.
    var controls: [String: String]?
    /// Pictures before the first frame, which are not shown; nil for none.
    var leadIn: Int64?
    /// What the clip was made for, on the clock of the first frame; nil for one simply begun.
    var trigger: Trigger?
    // What the account of a take is opened with, beside the frame rate.
    var switchedOnUs: Int64?
    var beginsWithStream: Bool?
    var countsExactly: Bool?

    init(
      device: String, mode: String, firstCaptureNs: Int64, firstSequence: Int64, gaps: [Gap]?,
      trigger: Trigger? = nil, controls: [String: String] = [:], switchedOnUs: Int64,
      beginsWithStream: Bool, countsExactly: Bool, leadIn: Int
    ) {
      self.device = device
      self.mode = mode
      self.firstCaptureNs = firstCaptureNs
      self.firstSequence = firstSequence
      self.gaps = gaps
      self.trigger = trigger
      self.controls = controls.isEmpty ? nil : controls
      self.switchedOnUs = switchedOnUs
      self.beginsWithStream = beginsWithStream
      self.countsExactly = countsExactly
      self.leadIn = leadIn > 0 ? Int64(leadIn) : nil
    }

    /// Reads the tag of a file; nil where it is no such tag.
    init?(_ text: String) {
      let decoder = JSONDecoder()
      decoder.keyDecodingStrategy = .convertFromSnakeCase
      guard let read = try? decoder.decode(Self.self, from: Data(text.utf8)) else { return nil }
      self = read
    }

    /// The text of the tag.
    var text: String? {
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// The tags of a take that began so long ago.
  static func metadata(
    frameRate: FrameRate, recording: Recording?, agedMicroseconds age: Int64 = 0
  ) -> [String: String] {
    var tags = [
      captureFrameRate: frameRate.description,
      // The file gets it as a number of 32 bits; the exact value is in our own tag.
      androidCaptureRate: decimal(frameRate),
    ]
    tags[Self.recording] = recording?.text
    // A driver's clock that tells no such age is not trusted with the date.
    let seconds = (0..<Int64(1e12)).contains(age) ? Double(age) / 1e6 : 0
    tags["creation_time"] = Date.now.addingTimeInterval(-seconds).ISO8601Format()
    return tags
  }

  private static func decimal(_ rate: FrameRate) -> String {
    // 32 by 64 bits always fit.
    let millionths =
      (try? (rate.framesPerSecond * 1_000_000).rounded(.halfAwayFromZero)) ?? 0
    let fraction = String(millionths % 1_000_000)
    return "\(millionths / 1_000_000)."
      + String(repeating: "0", count: 6 - fraction.count) + fraction
  }
}
