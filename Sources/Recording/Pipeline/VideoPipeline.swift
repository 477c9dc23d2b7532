// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Turns captured frames into the packets that the file stores, in order of capture.
///
/// Times are in microseconds, the driver's own unit; the file's timescale is 1 000 000.
protocol VideoPipeline {
  /// What the file must say of the pictures; known once the first frame was taken.
  var parameters: CodecParameters? { get }

  /// The most bits a second that the encoder may make; nil where it has no limit, or there is none.
  var maximumBitRate: Int64? { get }

  /// Takes a frame, and stores the samples that are ready now.
  ///
  /// - Returns: `.taken`; `.corrupt` for a frame of which nothing can be made, the next may be whole;
  ///   `.unshowable` for one without the frame that it builds on.
  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(LibAVError) -> FrameOutcome

  /// Takes a frame from before the take, which is not shown but which the next ones build on.
  mutating func prime(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(LibAVError)

  /// Stores the samples that were still inside.
  mutating func finish(_ store: SampleStore) throws(LibAVError)
}

/// Where a pipeline's samples go: their bytes, their time, whether decoding may start there, and
/// what the file must say of them.
typealias SampleStore = (
  _ bytes: UnsafeRawBufferPointer, _ microseconds: Int64, _ isKeyFrame: Bool,
  _ parameters: CodecParameters?
) throws(LibAVError) -> Void

extension VideoPipeline {
  var maximumBitRate: Int64? { nil }

  mutating func prime(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(LibAVError) {
    _ = try take(bytes, at: microseconds, store)
  }

  func finish(_ store: SampleStore) {}
}

/// Which pipeline a take needs, from what the camera delivers and what the user wants.
enum VideoPipelinePlan: Equatable {
  /// The camera's packets as they are.
  case copy(VideoCodec)
  /// Encoded by libav, decoded first where the camera compresses.
  case encode(VideoCodec)

  /// The plan for a file, whose name says which container it is.
  init(
    _ video: VideoOutputSettings, for delivery: FrameDelivery, in path: String
  ) throws(MediaError) {
    try self.init(video, for: delivery)
    guard MovieContainer(path: path) != .mp4 || Self.storableInMP4.contains(codec) else {
      throw Self.refusal(of: codec.rawValue, in: path)
    }
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
        .codecRefused, "the camera delivers \(name) in this mode, not uncompressed pictures",
        recovery: Recovery(
          "choose an uncompressed format, or copy", .change(.format), .change(.codec)))
    case (.passthrough, .raw(let format, _)):
      throw MediaError(
        .codecRefused, "the camera delivers uncompressed \(format.name), which has nothing to copy",
        recovery: Recovery("choose raw, FFV1, MJPEG or H.264", .change(.codec)))
    case (.codec(let codec), _):
      throw MediaError(
        .codecRefused, "takes cannot be encoded as \(codec)",
        recovery: Recovery("choose raw, FFV1, MJPEG or H.264", .change(.codec)))
    }
  }

  /// The codecs of cameras and encoders that MP4 has a place for.
  private static let storableInMP4 = [.h264, .hevc, .mjpeg, VideoCodec(rawValue: "mpeg4")]

  static func refusal(of content: String, in path: String) -> MediaError {
    MediaError(
      .codecRefused, "\(path): MP4 has no place for \(content)",
      recovery: "name the file .mov, or choose another codec")
  }

  /// What libavformat's MOV reader gives back as it was written.
  private static let readableInMOV = ["yuyv422", "uyvy422", "rgb24", "gray"]

  func makePipeline(
    for delivery: FrameDelivery, frameRate: FrameRate
  ) throws(LibAVError) -> any VideoPipeline {
    switch self {
    case .copy(let codec): return try CopyPipeline(codec: codec, delivery: delivery)
    case .encode(let codec):
      if codec == .rawVideo,
        let storing = try StorePipeline(delivery: delivery, frameRate: frameRate)
      {
        return storing
      }
      return try EncodePipeline(codec: codec, delivery: delivery, frameRate: frameRate)
    }
  }

  /// The codec that the file holds.
  var codec: VideoCodec {
    switch self {
    case .copy(let codec), .encode(let codec): codec
    }
  }

  /// Whether the stored pictures are those the camera saw, bit for bit.
  var isLossless: Bool { self == .encode(.ffv1) || self == .encode(.rawVideo) }
}
