// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Converts captured frames to the packets of the file, in order of capture.
///
/// Times are in microseconds, the unit of V4L2 timestamps. The file's timescale is 1,000,000.
protocol VideoPipeline {
  /// The codec parameters of the video track, known after the first frame.
  var parameters: CodecParameters? { get }

  /// The bit rate limit of the encoder in bits per second.
  ///
  /// Nil without a limit or an encoder.
  var maximumBitRate: Int64? { get }

  /// Processes a frame, and stores all encoded samples that are complete by then.
  ///
  /// - Returns: `.taken` if the pipeline accepted the frame; `.corrupt` for a damaged frame;
  ///   `.unshowable` if the key frame that the frame depends on is missing.
  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(CallFailure) -> FrameOutcome

  /// Processes a lead-in frame: a frame from before the take, which is not shown but is needed to
  /// decode the following frames.
  mutating func prime(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(CallFailure)

  /// Sets the factor by which the next frame is enlarged around its center.
  ///
  /// A pipeline that copies compressed frames cannot enlarge them.
  mutating func zoom(to factor: Double)

  /// Stores the samples that are still in the pipeline.
  mutating func finish(_ store: SampleStore) throws(CallFailure)
}

/// A closure that stores a sample, given its bytes, its times and the codec parameters.
typealias SampleStore = (
  _ bytes: UnsafeRawBufferPointer, _ sample: VideoSample, _ parameters: CodecParameters?
) throws(CallFailure) -> Void

/// A sample of a video track, without its bytes.
struct VideoSample {
  /// The presentation time of the sample in microseconds.
  var time: Int64
  /// The decoding time in microseconds, at or before the presentation time.
  var decodeTime: Int64
  /// Whether decoding may start at this sample.
  var isKeyFrame: Bool
  /// Whether no other sample depends on this one.
  var isDroppable = false

  /// Creates a sample whose decoding time equals its presentation time.
  init(time: Int64, isKeyFrame: Bool) {
    (self.time, decodeTime, self.isKeyFrame) = (time, time, isKeyFrame)
  }
}

extension VideoPipeline {
  var maximumBitRate: Int64? { nil }

  func zoom(to factor: Double) {}

  mutating func prime(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(CallFailure) {
    _ = try take(bytes, at: microseconds, store)
  }

  func finish(_ store: SampleStore) {}
}

/// The pipeline for a take, chosen from the camera's format and the requested encoding.
enum VideoPipelinePlan: Equatable {
  /// The camera's packets are copied.
  case copy(VideoCodec)
  /// Frames are encoded by libav. Compressed frames are decoded first.
  ///
  /// If `referenceInterval` is n, only every nth frame is a reference frame.
  case encode(VideoCodec, referenceInterval: Int = 1)

  /// Chooses the pipeline, and checks that the container of the file name supports the codec.
  init(
    _ video: VideoOutputSettings, for delivery: FrameDelivery, in path: String
  ) throws(MediaError) {
    self = try VideoPipelinePlan(video, for: delivery).checked(in: path)
  }

  /// Returns this plan, or throws an error if the container of the file name does not support its
  /// codec.
  func checked(in path: String) throws(MediaError) -> VideoPipelinePlan {
    guard MovieContainer(recording: path) != .mp4 || Self.storableInMP4.contains(codec) else {
      throw Self.refusal(of: codec.rawValue, in: path)
    }
    return self
  }

  init(_ video: VideoOutputSettings, for delivery: FrameDelivery) throws(MediaError) {
    switch (video, delivery.layout) {
    case (.automatic, .compressed(let codec)), (.passthrough, .compressed(let codec)):
      self = .copy(codec)
    case (.codec(let wanted), .compressed(let codec))
    where wanted == codec && [.mjpeg, .h264].contains(codec):
      self = .copy(codec)
    case (.automatic, .raw): self = .encode(.mjpeg)
    case (.codec(let codec), _) where [.mjpeg, .h264, .ffv1].contains(codec):
      self = .encode(codec)
    case (.codec(.rawVideo), .raw(let format, _)) where Self.readableInMOV.contains(format.name):
      self = .encode(.rawVideo)
    case (.codec(.rawVideo), .raw(let format, _)):
      throw MediaError(
        .codecRefused, "uncompressed \(format.name) cannot be read back from a MOV file",
        recovery: Recovery("store it losslessly as FFV1", .change(.codec)))
    case (.codec(.rawVideo), .compressed(let name)):
      throw MediaError(
        .codecRefused, "the camera delivers \(name) in this mode, not uncompressed frames",
        recovery: Recovery(
          "choose an uncompressed format, or copy", .change(.format), .change(.codec)))
    case (.passthrough, .raw(let format, _)):
      throw MediaError(
        .codecRefused, "the camera delivers uncompressed \(format.name), which has nothing to copy",
        recovery: Recovery("choose raw, FFV1, MJPEG or H.264", .change(.codec)))
    case (.codec(let codec), _):
      throw MediaError(
        .codecRefused, "recordings cannot be encoded as \(codec)",
        recovery: Recovery("choose raw, FFV1, MJPEG or H.264", .change(.codec)))
    }
  }

  /// This plan, with every nth frame as a reference frame and droppable frames between them.
  ///
  /// - Throws: `MediaError` with `.codecRefused` if the frames are not encoded as H.264, or the
  ///   interval is not supported.
  func referencing(everyNth interval: Int?) throws(MediaError) -> VideoPipelinePlan {
    guard let interval else { return self }
    guard case .encode(.h264, _) = self else {
      throw MediaError(
        .codecRefused, "only frames that are encoded as H.264 can be droppable",
        recovery: Recovery("choose H.264, and an uncompressed or MJPEG format", .change(.codec)))
    }
    guard EncodePipeline.referenceIntervals.contains(interval) else {
      throw MediaError(
        .codecRefused, "every \(interval)th frame cannot be the only one that others refer to",
        recovery: "choose an interval from 2 to 16")
    }
    return .encode(.h264, referenceInterval: interval)
  }

  /// The codecs of cameras and encoders that MP4 supports.
  private static let storableInMP4 = [.h264, .hevc, .mjpeg, VideoCodec(rawValue: "mpeg4")]

  static func refusal(of content: String, in path: String) -> MediaError {
    MediaError(
      .codecRefused, "\(path): MP4 does not support \(content)",
      recovery: "name the file .mov, or choose another codec")
  }

  /// The uncompressed formats that libavformat's MOV demuxer reads back unchanged.
  private static let readableInMOV = ["yuyv422", "uyvy422", "rgb24", "gray"]

  func makePipeline(
    for delivery: FrameDelivery, frameRate: FrameRate
  ) throws(CallFailure) -> any VideoPipeline {
    switch self {
    case .copy(let codec): return try CopyPipeline(codec: codec, delivery: delivery)
    case .encode(let codec, let interval):
      if codec == .rawVideo,
        let storing = try StorePipeline(delivery: delivery, frameRate: frameRate)
      {
        return storing
      }
      return try EncodePipeline(
        codec: codec, delivery: delivery, frameRate: frameRate, referenceInterval: interval)
    }
  }

  /// The codec of the video in the file.
  var codec: VideoCodec {
    switch self {
    case .copy(let codec), .encode(let codec, _): codec
    }
  }

  /// Whether the camera's compressed frames are stored as they are.
  var isCopy: Bool {
    if case .copy = self { true } else { false }
  }

  /// Whether frames are stored in another order than they are shown.
  var isReordered: Bool {
    if case .encode(_, let interval) = self { interval > 1 } else { false }
  }

  /// Whether the stored frames are bit-identical to the captured frames.
  var isLossless: Bool { self == .encode(.ffv1) || self == .encode(.rawVideo) }
}
