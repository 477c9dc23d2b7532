// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankMovieFormat

/// What a recording says of itself in its file: from where its frames came, and what is missing.
public struct RecordingInfo: Hashable, Sendable, Decodable {
  /// Frames missing after a stored one.
  public struct Gap: Hashable, Sendable, Decodable {
    /// The stored frame after which they are missing, from 0.
    public let afterIndex: Int64
    /// How many.
    public let count: Int64
  }

  /// The device that was recorded.
  public let device: String
  /// The mode it was recorded in.
  public let mode: String
  /// When the first frame was captured, by the driver's clock.
  public var firstCaptureTime: MediaTime { MediaTime(nanoseconds: firstCaptureNs) }
  private let firstCaptureNs: Int64
  /// The driver's number of the first frame.
  public let firstSequence: Int64
  /// What the camera's settings held when the take began, by the names that `slowmo controls` lists;
  /// nil for a camera that tells none.
  public let controls: [String: String]?
  /// Where frames are missing, in order; nil for a recording that was cut off and not recovered.
  public let gaps: [Gap]?

  /// The tag of the file that holds it.
  package static let key = "com.overcrank.recording"

  /// Frames missing just before each of the stored frames; nil where nobody knows.
  func missing(frameCount: Int) -> [Int64]? {
    guard let gaps else { return nil }
    var missing = [Int64](repeating: 0, count: frameCount)
    for gap in gaps {
      guard let next = Int(exactly: gap.afterIndex)?.addingReportingOverflow(1),
        !next.overflow, missing.indices.contains(next.partialValue), gap.count > 0
      else { continue }
      missing[next.partialValue] &+= gap.count
    }
    return missing
  }
}

extension Asset {
  /// The tag that holds the capture rate as an exact fraction.
  package static let captureRateKey = "com.overcrank.capture_frame_rate"
  /// The tag in which Android stores it.
  package static let androidRateKey = "com.android.capture.fps"

  /// What the recorder wrote of its take; nil for other files, and where it cannot be read.
  public var recording: RecordingInfo? {
    guard let text = metadata[RecordingInfo.key] else { return nil }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try? decoder.decode(RecordingInfo.self, from: Data(text.utf8))
  }

  /// The rate at which frames were captured, as a tag says it.
  public struct CaptureFrameRate: Hashable, Sendable {
    /// The rate.
    public let rate: FrameRate
    /// The tag.
    public let source: String
  }

  /// The rate at which the frames were captured; nil where no tag says so.
  public var captureFrameRate: CaptureFrameRate? {
    for key in [Self.captureRateKey, Self.androidRateKey] {
      guard let text = metadata[key] else { continue }
      // Android's is a number of 32 bits, which readers tell with more digits than it has.
      let number = key == Self.androidRateKey ? Float(text).map { "\($0)" } : nil
      if let rate = try? FrameRate(parsing: number ?? text) {
        return CaptureFrameRate(rate: rate, source: key)
      }
    }
    return nil
  }

  /// One line for each frame, as `frames --csv` writes it.
  public struct FrameTimingRow: Hashable, Sendable {
    /// The number of the frame, from 0.
    public let index: Int
    /// When it is shown, in the time of the file.
    public let time: MediaTime
    /// When it was captured, by the driver's clock; nil where unknown, or where it does not fit.
    public let captureTime: MediaTime?
    /// The driver's number; nil where unknown.
    public let sequence: Int64?
    /// How long it is shown.
    public let duration: MediaTime
    /// Frames missing just before it; nil where unknown.
    public let lostBefore: Int64?
  }

  /// A line for each frame of the picture track.
  ///
  /// Of a recording that brings the records of its frames along, they are the driver's own numbers
  /// and times; otherwise they follow from its first frame's and from the gaps.
  public func frameTimingRows() -> [FrameTimingRow] {
    guard let frames = videoTrack?.frames else { return [] }
    let recording = recording
    let missing = recording?.missing(frameCount: frames.entries.count)
    var sequence = missing == nil ? nil : recording?.firstSequence
    var records = LedgerBox.read(from: path)?.filter { $0.outcome == .taken }
    if let count = records?.count, count < frames.entries.count { records = nil }
    return frames.entries.enumerated().map { index, entry in
      let time = MediaTime(entry.ticks, over: frames.timescale)
      let lost = missing?[index]
      if index > 0 { sequence = sequence.map { $0 &+ 1 } }
      sequence = sequence.map { $0 &+ (lost ?? 0) }
      let record = records?[index]
      let late = recording.flatMap {
        MediaTime(exactly: $0.firstCaptureTime + time)
      }
      return FrameTimingRow(
        index: index, time: time,
        captureTime: record.map { MediaTime(microseconds: $0.microseconds) } ?? late,
        sequence: record.map { Int64($0.sequence) } ?? sequence,
        duration: MediaTime(entry.duration, over: frames.timescale), lostBefore: lost)
    }
  }
}
