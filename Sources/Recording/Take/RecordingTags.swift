// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import OvercrankCapture
import OvercrankMediaCore
import OvercrankMovieFormat

/// The metadata tags of a recording.
enum RecordingTags {
  /// The key of the capture rate as an exact fraction, such as `240/1`.
  static let captureFrameRate = "com.overcrank.capture_frame_rate"
  /// The key under which Android cameras store the capture rate.
  ///
  /// Other players read this key.
  static let androidCaptureRate = "com.android.capture.fps"
  /// The key of the zoom factor of a copied frame and of those after it.
  ///
  /// The clean aperture of the file has the factor of the first frame.
  static let zoomFactor = "com.overcrank.zoom_factor"
  /// The key of a JSON value that describes the gaps and times of the take.
  static let recording = "com.overcrank.recording"

  /// The JSON value of ``recording``.
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
    /// The gaps in the recording.
    ///
    /// Nil while the file grows, because an empty array would state that the recording has no gaps.
    /// That would be wrong if the process is killed.
    var gaps: [Gap]?
    /// The values of the camera's controls at the start of the take, by name.
    ///
    /// Nil without values.
    var controls: [String: String]?
    /// The number of hidden lead-in frames before the first shown frame.
    ///
    /// Nil if there are none.
    var leadIn: Int64?
    /// The trigger of the clip.
    ///
    /// Its time is on the same clock as the first frame's capture time.
    ///
    /// Nil without a trigger.
    var trigger: Trigger?
    // Recovery rebuilds the frame account from `switchedOnUs`, `beginsWithStream`, `countsExactly`
    // and the frame rate.
    var switchedOnUs: Int64?
    var beginsWithStream: Bool?
    var countsExactly: Bool?

    init(
      device: String, mode: String, firstCaptureNs: Int64, firstSequence: Int64, gaps: [Gap]?,
      trigger: Trigger? = nil, controls: [String: String] = [:], switchedOnUs: Int64,
      beginsWithStream: Bool, countsExactly: Bool, leadIn: Int
    ) {
      (self.device, self.mode, self.gaps, self.trigger) = (device, mode, gaps, trigger)
      (self.firstCaptureNs, self.firstSequence) = (firstCaptureNs, firstSequence)
      self.controls = controls.isEmpty ? nil : controls
      (self.beginsWithStream, self.countsExactly) = (beginsWithStream, countsExactly)
      self.switchedOnUs = switchedOnUs
      self.leadIn = leadIn > 0 ? Int64(leadIn) : nil
    }

    /// The time of the trigger after the first frame, in microseconds; nil without a trigger.
    var triggerMicroseconds: Int64? { trigger.map { ($0.captureNs &- firstCaptureNs) / 1_000 } }

    /// Parses the JSON text of a file's recording tag.
    ///
    /// Nil for invalid text.
    init?(_ text: String) {
      let decoder = JSONDecoder()
      decoder.keyDecodingStrategy = .convertFromSnakeCase
      guard let read = try? decoder.decode(Self.self, from: Data(text.utf8)) else { return nil }
      self = read
    }

    /// The value of the recording tag as JSON text.
    var text: String? {
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// The chapters that mark triggers.
  ///
  /// - Parameters:
  ///   - instants: The times of the triggers after the first frame, in microseconds.
  ///   - frameRate: The frame rate, whose frame duration is the length of a chapter; nil if unknown.
  ///   - end: The end of the movie in microseconds.
  /// - Returns: The titles and starts in microseconds.
  static func chapters(
    ofTriggersAt instants: [Int64], frameRate: FrameRate?, end: Int64
  ) -> [(title: String, start: Int64)] {
    let period = frameRate.map { TakeTimeline.microseconds(ofPeriods: 1, at: $0) }
    return ChapterList.chapters(
      at: instants, title: triggerMark, length: period ?? 1_000, end: end)
  }

  /// The title of the chapters that mark triggers.
  private static let triggerMark = "trigger"

  /// The tags of a take that began `age` microseconds ago.
  static func metadata(
    frameRate: FrameRate?, recording: Recording?, agedMicroseconds age: Int64 = 0
  ) -> [String: String] {
    var tags: [String: String] = [:]
    if let frameRate {
      tags[captureFrameRate] = frameRate.description
      // The Android tag has only the precision of a 32-bit float. The exact rate is in
      // ``captureFrameRate``.
      tags[androidCaptureRate] = decimal(frameRate)
    }
    tags[Self.recording] = recording?.text
    // The age of the take comes from the driver's clock, which may be wrong. If the age is negative
    // or above 10^12 microseconds (11 days), the current time becomes the creation time.
    let seconds = (0..<Int64(1e12)).contains(age) ? Double(age) / 1e6 : 0
    tags["creation_time"] = Date.now.addingTimeInterval(-seconds).ISO8601Format()
    return tags
  }

  private static func decimal(_ rate: FrameRate) -> String {
    // The numerator and the denominator of a frame rate are so small that this multiplication
    // cannot overflow. The fallback 0 is therefore never used.
    let millionths =
      (try? (rate.framesPerSecond * 1_000_000).rounded(.halfAwayFromZero)) ?? 0
    return Rational.decimals(millionths, count: 6)
  }
}
