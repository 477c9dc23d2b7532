// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankMovieFormat

/// The metadata of a recording: its device, its mode and its missing frames.
public struct RecordingInfo: Hashable, Sendable, Decodable {
  /// A gap of missing frames after a stored frame.
  public struct Gap: Hashable, Sendable, Decodable {
    /// The index of the stored frame before the gap, from 0.
    public let afterIndex: Int64
    /// The number of missing frames in the gap.
    public let count: Int64
  }

  /// The path of the capture device, or its ID if it has no path.
  public let device: String
  /// The ID of the capture format, which consists of the pixel format, the size and the frame rate.
  public let mode: String
  /// The capture time of the first frame, on the driver's clock.
  public var firstCaptureTime: MediaTime { MediaTime(nanoseconds: firstCaptureNs) }
  private let firstCaptureNs: Int64
  /// The driver's sequence number of the first frame.
  public let firstSequence: Int64
  /// The values of the camera's controls at the start of the take, by V4L2 name.
  ///
  /// Nil if unknown.
  public let controls: [String: String]?
  /// The gaps in order.
  ///
  /// Nil for a recording that was interrupted and not recovered.
  public let gaps: [Gap]?

  /// The key of the metadata tag that contains this information.
  package static let key = "com.overcrank.recording"

  /// For each stored frame, the number of missing frames directly before it.
  ///
  /// Nil if unknown.
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
  /// The key of the tag that contains the capture rate as an exact fraction.
  package static let captureRateKey = "com.overcrank.capture_frame_rate"
  /// The key of the tag that contains the capture rate in Android recordings.
  package static let androidRateKey = "com.android.capture.fps"
  /// The key of the tag by which Apple's cameras state whether a movie plays at its full rate.
  package static let appleIntentKey = "com.apple.quicktime.full-frame-rate-playback-intent"

  /// The metadata of a recording that this library made.
  ///
  /// Nil for any other file, or if the tag is invalid.
  public var recording: RecordingInfo? {
    guard let text = metadata[RecordingInfo.key] else { return nil }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try? decoder.decode(RecordingInfo.self, from: Data(text.utf8))
  }

  /// A capture rate, and the part of the file that states it.
  public struct CaptureFrameRate: Hashable, Sendable {
    /// The capture rate.
    public let rate: FrameRate
    /// The key of the tag that states the rate, or that states that the movie plays at its capture
    /// rate.
    ///
    /// `edit_list` for a movie that is slowed down by its edit list.
    public let source: String
  }

  /// The frame rate of the capture.
  ///
  /// Nil if the file does not state it. The rate comes from the tags of this library and of
  /// Android. In movies from iPhones, and in movies slowed down by their edit list, the frame times
  /// are the capture times. The nominal rate of such a movie is therefore its capture rate.
  public var captureFrameRate: CaptureFrameRate? {
    if let tagged = taggedCaptureFrameRate { return tagged }
    guard let rate = videoTrack?.nominalFrameRate else { return nil }
    if tag(Self.appleIntentKey) != nil {
      return CaptureFrameRate(rate: rate, source: Self.appleIntentKey)
    }
    return container == "mov" && isSlowedByEditList
      ? CaptureFrameRate(rate: rate, source: "edit_list") : nil
  }

  /// The capture rate that a metadata tag states.
  ///
  /// Nil without such a tag.
  package var taggedCaptureFrameRate: CaptureFrameRate? {
    for key in [Self.captureRateKey, Self.androidRateKey] {
      guard let text = tag(key) else { continue }
      // The Android tag is a 32-bit float. libav prints it with more digits than are significant,
      // so it is parsed as a `Float` first.
      let number = key == Self.androidRateKey ? Float(text).map { "\($0)" } : nil
      if let rate = try? FrameRate(parsing: number ?? text) {
        return CaptureFrameRate(rate: rate, source: key)
      }
    }
    return nil
  }

  /// The text of a tag; nil if the file has none.
  ///
  /// Matroska stores the keys of tags in capitals.
  private func tag(_ key: String) -> String? { metadata[key] ?? metadata[key.uppercased()] }

  /// Whether the edit list of the video track slows down the whole track by one factor.
  ///
  /// libavformat ignores the rates in edit lists, so the frame times are the capture times.
  private var isSlowedByEditList: Bool {
    guard let track = videoTrack?.format.index,
      let rates = EditListBox.mediaRates(ofTrack: track, in: path), let first = rates.first
    else { return false }
    // Rates are fixed-point numbers with 16 fractional bits. A rate of zero means a still frame,
    // not slow motion.
    return rates.allSatisfy { $0 == first } && (1..<0x1_0000).contains(first)
  }

  /// The times and the capture data of one frame.
  public struct FrameTimingRow: Hashable, Sendable {
    /// The index of the frame in the movie, from 0.
    public let index: Int
    /// The presentation time of the frame in the file.
    public let time: MediaTime
    /// The capture time on the driver's clock.
    ///
    /// Nil if unknown or on overflow.
    public let captureTime: MediaTime?
    /// The driver's sequence number of the frame.
    ///
    /// Nil if unknown.
    public let sequence: Int64?
    /// The duration of the frame.
    public let duration: MediaTime
    /// The number of missing frames directly before this one.
    ///
    /// Nil if unknown.
    public let lostBefore: Int64?
    /// Whether the frame repeats the image of the frame before.
    ///
    /// Nil if unknown. In recordings of this library, no frame is a repetition.
    public let isDuplicate: Bool?
  }

  /// The records of the frames in the ledger; nil without a ledger that has them all.
  func takenRecords(frameCount: Int) -> [FrameObservation]? {
    let records = LedgerBox.read(from: path)?.filter { $0.outcome == .taken }
    return records.flatMap { $0.count >= frameCount ? Array($0.prefix(frameCount)) : nil }
  }

  /// The times of all frames of the video track.
  ///
  /// Capture times come from the time map or the ledger of the file. In a recording without a ledger,
  /// they are computed from the first frame and the gaps. Sequence numbers are those of a recording.
  ///
  /// - Parameter clock: The clock of the capture times; nil for that of the map or the ledger.
  /// - Returns: The rows.
  public func frameTimingRows(_ clock: CaptureClock? = nil) -> [FrameTimingRow] {
    guard let frames = videoTrack?.frames else { return [] }
    switch storedTimeMap() {
    case .panes(let panes): return frameTimingRows(frames, panes.first?.map, clock)
    case .none, .recording: return frameTimingRows(frames, nil, clock)
    case .refused:
      // The tags about single frames no longer fit either.
      return frames.entries.enumerated().map { index, entry in
        FrameTimingRow(
          index: index, time: MediaTime(entry.ticks, over: frames.timescale),
          captureTime: clock?.map.captureTime(ofFrame: index), sequence: nil,
          duration: MediaTime(entry.duration, over: frames.timescale), lostBefore: nil,
          isDuplicate: nil)
      }
    }
  }

  private func frameTimingRows(
    _ frames: FrameTable, _ map: TimeMap?, _ clock: CaptureClock?
  ) -> [FrameTimingRow] {
    let recording = recording
    let missing = recording?.missing(frameCount: frames.entries.count)
    var sequence = missing == nil ? nil : recording?.firstSequence
    let repeated = metadata[RepeatedFrameTag.key].flatMap { RepeatedFrameTag($0) }?
      .flags(frameCount: frames.entries.count)
    let records = takenRecords(frameCount: frames.entries.count)
    return frames.entries.enumerated().map { index, entry in
      let time = MediaTime(entry.ticks, over: frames.timescale)
      let lost = missing?[index]
      if index > 0 { sequence = sequence.map { $0 &+ 1 } }
      sequence = sequence.map { $0 &+ (lost ?? 0) }
      let record = records?[index]
      let late = recording.flatMap {
        MediaTime(exactly: $0.firstCaptureTime + time)
      }
      let number = record.map { Int64($0.sequence) } ?? sequence
      let captured = record.map { MediaTime(microseconds: $0.microseconds) } ?? late
      let isDuplicate = repeated?[index] ?? (number == nil ? nil : false)
      let isKnown = map?.recording(ofFrame: index) != nil
      return FrameTimingRow(
        index: index, time: time,
        captureTime: clock.map { $0.map.captureTime(ofFrame: index) }
          ?? (map == nil ? captured : map?.captureTime(ofFrame: index)),
        sequence: number, duration: MediaTime(entry.duration, over: frames.timescale),
        lostBefore: map?.lostBefore(frame: index) ?? lost,
        isDuplicate: isKnown ? map?.frames[index].content == .repeated : isDuplicate)
    }
  }
}
