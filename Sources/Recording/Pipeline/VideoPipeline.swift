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
  ) throws(RecordingError) {
    try self.init(codec, for: delivery)
    guard MovieContainer(path: path) != .mp4 || Self.storableInMP4.contains(codecName) else {
      throw Self.refusal(of: codecName, in: path)
    }
  }

  init(_ codec: RecordingCodec, for delivery: FrameDelivery) throws(RecordingError) {
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
      throw RecordingError(
        .codecRefused, "uncompressed \(format.name) cannot be read back from a MOV file",
        hint: "store it without loss with --codec ffv1")
    case (.raw, .compressed(let name)):
      throw RecordingError(
        .codecRefused, "the camera delivers \(name) in this mode, not uncompressed pictures",
        hint: "choose an uncompressed mode with --mode, or --codec copy")
    case (.copy, .raw(let format, _)):
      throw RecordingError(
        .codecRefused, "the camera delivers uncompressed \(format.name), which has nothing to copy",
        hint: "choose --codec raw, ffv1, mjpeg or h264")
    }
  }

  /// The codecs of cameras and encoders that MP4 has a place for.
  private static let storableInMP4 = ["h264", "hevc", "mjpeg", "mpeg4"]

  static func refusal(of codec: String, in path: String) -> RecordingError {
    RecordingError(
      .codecRefused, "\(path): MP4 has no place for \(codec)",
      hint: "name the file .mov, or choose another codec")
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

/// Stores a camera's compressed frames untouched.
private struct CopyPipeline: VideoPipeline {
  private(set) var parameters: CodecParameters?
  private let codec: String
  private let delivery: FrameDelivery
  private var headerFinder: FilterBox?

  init(codec: String, delivery: FrameDelivery) throws(LibAVError) {
    self.codec = codec
    self.delivery = delivery
    let plain = try CodecParameters(
      videoCodec: codec, width: delivery.width, height: delivery.height)
    if codec == "h264" {
      // MOV keeps SPS and PPS beside the track: they are taken from the first key frame.
      headerFinder = FilterBox(try BitstreamFilter(named: "extract_extradata", parameters: plain))
    } else {
      parameters = plain
    }
  }

  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(LibAVError) -> FrameOutcome {
    // Bytes without a single unit are no picture, and no sample either.
    if codec == "h264", !AnnexB.holdsUnit(bytes) { return .corrupt }
    let isKeyFrame = codec == "mjpeg" || AnnexB.holdsKeyFrame(bytes)
    if let headerFinder, parameters == nil {
      let packet = try Packet(
        copying: bytes, pts: microseconds, dts: microseconds, duration: 0, isKeyFrame: isKeyFrame)
      let headers = BitstreamFilter.extradata(of: try headerFinder.filter.filter(packet))
      // Nothing before the first key frame can be shown.
      guard isKeyFrame, !headers.isEmpty else { return .unshowable }
      parameters = try CodecParameters(
        videoCodec: codec, width: delivery.width, height: delivery.height, extradata: headers)
    }
    try store(bytes, microseconds, isKeyFrame, parameters)
    return .taken
  }

  private final class FilterBox {
    var filter: BitstreamFilter
    init(_ filter: consuming BitstreamFilter) { self.filter = filter }
  }
}

/// Encodes frames, decoding them first where the camera compresses.
private struct EncodePipeline: VideoPipeline {
  private final class Codecs {
    var encoder: Encoder
    var decoder: Decoder?
    var converter: FrameConverter
    init(
      encoder: consuming Encoder, decoder: consuming Decoder?,
      converter: consuming FrameConverter
    ) {
      self.encoder = encoder
      self.decoder = decoder
      self.converter = converter
    }
  }

  private let codecs: Codecs
  private let delivery: FrameDelivery
  private let isH264: Bool
  private var lastKeyFrame: Int64?
  let parameters: CodecParameters?
  private(set) var maximumBitRate: Int64?

  /// The longest time between key frames: a cut is never farther than this from a free one.
  private static let keyFrameMicroseconds: Int64 = 250_000

  init(
    encoder name: String, delivery: FrameDelivery, frameRate: FrameRate
  ) throws(LibAVError) {
    self.delivery = delivery
    isH264 = name == "libx264"
    let sourceFormat: LibAVPixelFormat
    var decoder: Decoder?
    switch delivery.layout {
    case .raw(let format, _): sourceFormat = format
    case .compressed(let codec):
      sourceFormat = codec == "mjpeg" ? .yuvj422p : .yuv420p
      decoder = try Decoder(
        parameters: CodecParameters(
          videoCodec: codec, width: delivery.width, height: delivery.height),
        subject: "the camera's \(codec)", threadCount: 1)
    }
    let target = Self.pixelFormat(for: name, source: sourceFormat)
    var settings = Encoder.VideoSettings(
      codec: name, width: delivery.width, height: delivery.height, pixelFormat: target,
      timescale: 1_000_000)
    settings.frameRate = frameRate
    settings.threadCount = 2
    settings.isFullRange = target.isFullRange
    settings.hasReorderedFrames = false
    switch name {
    case "mjpeg":
      settings.quantizer = 3
      settings.options = ["huffman": "default"]
    case "libx264":
      settings.options = ["preset": "veryfast", "crf": "18", "tune": "zerolatency"]
      if let level = Self.level(for: delivery, frameRate) {
        // No more than a decoder of this level must take in a second, and can keep.
        maximumBitRate = level.maximumBitRate
        let bits = String(level.maximumBitRate)
        settings.options.merge(["level": level.name, "maxrate": bits, "bufsize": bits]) { $1 }
      }
      // Floor: a group of frames never lasts longer than a quarter of a second.
      settings.keyFrameInterval = max(
        1, Int(frameRate.numerator) / (4 * Int(frameRate.denominator)))
    case "ffv1":
      settings.options = ["level": "3"]
      settings.keyFrameInterval = 1  // By default others lean on the coder state of the last.
    default: break
    }
    let encoder = try Encoder(video: settings)
    parameters = encoder.parameters
    codecs = Codecs(
      encoder: encoder, decoder: decoder,
      converter: FrameConverter(to: target, isFullRange: target.isFullRange))
  }

  /// The level whose decoders take these pictures with a quarter of a bit for each pixel, which is
  /// more than all but noise needs; nil where no level has such pictures.
  private static func level(for delivery: FrameDelivery, _ frameRate: FrameRate) -> H264Level? {
    let pixels = Double(delivery.width * delivery.height) * frameRate.doubleValue
    return [0.25, 0].lazy.compactMap {
      H264Level.least(
        width: delivery.width, height: delivery.height, frameRate: frameRate,
        bitRate: Int64(saturating: pixels * $0))
    }.first
  }

  /// The format to encode: full-range for JPEG, the most portable for H.264, else the nearest.
  private static func pixelFormat(for encoder: String, source: LibAVPixelFormat) -> LibAVPixelFormat
  {
    switch encoder {
    case "mjpeg": source.isWideChroma ? .yuvj422p : .yuvj420p
    case "libx264": .yuv420p
    case "rawvideo": source
    default: Encoder.nearestPixelFormat(to: source, forCodec: encoder) ?? .yuv420p
    }
  }

  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(LibAVError) -> FrameOutcome {
    switch delivery.layout {
    case .raw(let format, let bytesPerRow):
      let frame = try MediaFrame.picture(
        copying: bytes, width: delivery.width, height: delivery.height, pixelFormat: format,
        bytesPerRow: bytesPerRow)
      try encode(frame, at: microseconds, store)
    case .compressed:
      let packet = try Packet(
        copying: bytes, pts: microseconds, dts: microseconds, duration: 0, isKeyFrame: true)
      guard let frames = try decode(packet) else { return .corrupt }
      try encode(frames, store)
    }
    return .taken
  }

  mutating func prime(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(LibAVError) {
    let packet = try Packet(
      copying: bytes, pts: microseconds, dts: microseconds, duration: 0, isKeyFrame: true)
    _ = try decode(packet)
  }

  /// The pictures that are ready after a packet, or nil where it is damaged.
  ///
  /// A picture of another size than agreed is no picture of this take: encoders read as many
  /// bytes as they were told at the start.
  private func decode(_ packet: Packet?) throws(LibAVError) -> [MediaFrame]? {
    var frames: [MediaFrame] = []
    do throws(LibAVError) {
      try codecs.decoder?.send(packet)
      while let frame = try codecs.decoder?.nextFrame() { frames.append(frame) }
    } catch  where error.isInvalidData {
      return nil
    }
    let isWhole = frames.allSatisfy {
      $0.width == delivery.width && $0.height == delivery.height
    }
    // JPEG gives a picture for each packet; H.264 may keep one back.
    let isMissing = frames.isEmpty && packet != nil && delivery.layout == .compressed("mjpeg")
    return isWhole && !isMissing ? frames : nil
  }

  mutating func finish(_ store: SampleStore) throws(LibAVError) {
    if codecs.decoder != nil { try encode(try decode(nil) ?? [], store) }
    try codecs.encoder.send(nil)
    try storeReady(store)
  }

  private mutating func encode(
    _ frames: [MediaFrame], _ store: SampleStore
  ) throws(LibAVError) {
    for frame in frames {
      // A decoder may give back late what it only needed for the first picture.
      guard let time = frame.pts, time >= 0 else { continue }
      try encode(frame, at: time, store)
    }
  }

  private mutating func encode(
    _ frame: MediaFrame, at microseconds: Int64, _ store: SampleStore
  ) throws(LibAVError) {
    // Frames may be missing, so the encoder's count of frames alone does not bound the time.
    let isDue =
      isH264
      && lastKeyFrame.map { microseconds - $0 >= Self.keyFrameMicroseconds } ?? true
    if isDue { lastKeyFrame = microseconds }
    try codecs.encoder.send(
      codecs.converter.convert(frame), at: microseconds, asKeyFrame: isDue)
    try storeReady(store)
  }

  private func storeReady(_ store: SampleStore) throws(LibAVError) {
    while let packet = try codecs.encoder.nextPacket() {
      // Nothing here is stored in another order than it is shown.
      guard let time = packet.pts, packet.dts == time else {
        throw LibAVError("store", "reordered frames", code: -22)
      }
      let isKeyFrame = packet.isKeyFrame
      try packet.withBytes { (bytes) throws(LibAVError) in
        try store(bytes, time, isKeyFrame, parameters)
      }
    }
  }
}
