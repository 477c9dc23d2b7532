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
  case copy(codec: String)
  /// Encoded by one of libav's encoders, decoded first where the camera compresses.
  case encode(encoder: String)

  /// The plan for a file, whose name says which container it is.
  init(
    _ codec: RecordingCodec, for delivery: FrameDelivery, in path: String
  ) throws(MediaError) {
    try self.init(codec, for: delivery)
    guard MovieContainer(path: path) != .mp4 || Self.storableInMP4.contains(codecName) else {
      throw Self.refusal(of: codecName, in: path)
    }
  }

  init(_ codec: RecordingCodec, for delivery: FrameDelivery) throws(MediaError) {
    switch (codec, delivery.layout) {
    case (.auto, .compressed(let name)), (.copy, .compressed(let name)):
      self = .copy(codec: name)
    case (.mjpeg, .compressed("mjpeg")): self = .copy(codec: "mjpeg")
    case (.h264, .compressed("h264")): self = .copy(codec: "h264")
    case (.auto, .raw), (.mjpeg, _): self = .encode(encoder: "mjpeg")
    case (.h264, _): self = .encode(encoder: "libx264")
    case (.ffv1, _): self = .encode(encoder: "ffv1")
    case (.raw, .raw(let format, _)) where Self.readableInMOV.contains(format.name):
      self = .encode(encoder: "rawvideo")
    case (.raw, .raw(let format, _)):
      throw MediaError(
        .codecRefused, "uncompressed \(format.name) cannot be read back from a MOV file",
        recovery: Recovery("store it losslessly as FFV1", .change(.codec)))
    case (.raw, .compressed(let name)):
      throw MediaError(
        .codecRefused, "the camera delivers \(name) in this mode, not uncompressed pictures",
        recovery: Recovery(
          "choose an uncompressed format, or copy", .change(.format), .change(.codec)))
    case (.copy, .raw(let format, _)):
      throw MediaError(
        .codecRefused, "the camera delivers uncompressed \(format.name), which has nothing to copy",
        recovery: Recovery("choose raw, FFV1, MJPEG or H.264", .change(.codec)))
    }
  }

  /// The codecs of cameras and encoders that MP4 has a place for.
  private static let storableInMP4 = ["h264", "hevc", "mjpeg", "mpeg4"]

  static func refusal(of codec: String, in path: String) -> MediaError {
    MediaError(
      .codecRefused, "\(path): MP4 has no place for \(codec)",
      recovery: "name the file .mov, or choose another codec")
  }

  /// What libavformat's MOV reader gives back as it was written.
  private static let readableInMOV = ["yuyv422", "uyvy422", "rgb24", "gray"]

  func makePipeline(
    for delivery: FrameDelivery, frameRate: FrameRate
  ) throws(LibAVError) -> any VideoPipeline {
    switch self {
    case .copy(let codec): return try CopyPipeline(codec: codec, delivery: delivery)
    case .encode(let encoder):
      if encoder == "rawvideo",
        let storing = try StorePipeline(delivery: delivery, frameRate: frameRate)
      {
        return storing
      }
      return try EncodePipeline(encoder: encoder, delivery: delivery, frameRate: frameRate)
    }
  }

  /// FFmpeg's name of the codec that the file holds.
  var codecName: String {
    switch self {
    case .copy(let codec): codec
    case .encode("libx264"): "h264"
    case .encode(let encoder): encoder
    }
  }

  /// Whether the stored pictures are those the camera saw, bit for bit.
  var isLossless: Bool { self == .encode(encoder: "ffv1") || self == .encode(encoder: "rawvideo") }
}
