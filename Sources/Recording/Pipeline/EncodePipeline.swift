// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Encodes frames; compressed frames are decoded first.
struct EncodePipeline: VideoPipeline {
  private final class Codecs {
    var encoder: Encoder
    var decoder: Decoder?
    var converter: FrameConverter
    var magnifier = FrameMagnifier()
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
  private let pixelFormat: LibAVPixelFormat
  private let isH264: Bool
  private var factor = 1.0
  /// The zoom factors of the frames in the decoder and of the next frame, by presentation time in
  /// microseconds.
  private var factors: [Int64: Double] = [:]
  private let isReordered: Bool
  private var lastKeyFrame: Int64?
  let parameters: CodecParameters?
  private(set) var maximumBitRate: Int64?

  /// The longest time between key frames, in microseconds.
  ///
  /// Every time in the file is then at most this far from a key frame, at which the file can be
  /// cut.
  private static let keyFrameMicroseconds: Int64 = 250_000

  /// The supported distances between reference frames, in frames.
  ///
  /// The frames between two reference frames are droppable.
  ///
  /// Droppable frames are B-frames that are not used as references. libx264 makes no other
  /// droppable frames, because its P-frames are always references. A B-frame is stored only after
  /// the reference frame that follows it, up to `referenceInterval` frames late. If the process is
  /// killed, that many more frames are lost.
  ///
  /// `Benchmarks/Droppable/run.sh 120` measures the cost at 640x480 and 240 fps, relative to a file
  /// without droppable frames. The file has 0.97 to 1.68 times the size with an interval of 2, 0.86
  /// to 1.22 times with an interval of 4, and 0.84 to 0.97 times with an interval of 8. A noisy
  /// scene gives the greatest values. The PSNR changes by +0.4 to -0.4 dB, but by -1.7 dB for the
  /// still synthetic scene with an interval of 8.
  static let referenceIntervals = 2...16

  init(
    codec: VideoCodec, delivery: FrameDelivery, frameRate: FrameRate, referenceInterval: Int = 1
  ) throws(CallFailure) {
    self.delivery = delivery
    isH264 = codec == .h264
    isReordered = referenceInterval > 1
    let sourceFormat: LibAVPixelFormat
    var decoder: Decoder?
    switch delivery.layout {
    case .raw(let format, _): sourceFormat = format
    case .compressed(let codec):
      sourceFormat = codec == .mjpeg ? .yuvj422p : .yuv420p
      decoder = try Decoder(
        parameters: CodecParameters(
          videoCodec: codec.rawValue, width: delivery.width, height: delivery.height),
        subject: "the camera's \(codec)", threadCount: 1)
    }
    let target = Self.pixelFormat(for: codec, source: sourceFormat)
    pixelFormat = target
    var settings = Encoder.VideoSettings(
      codec: isH264 ? "libx264" : codec.rawValue, width: delivery.width, height: delivery.height,
      pixelFormat: target,
      timescale: 1_000_000)
    settings.frameRate = frameRate
    settings.threadCount = 2
    settings.isFullRange = target.isFullRange
    if codec != .mjpeg {
      settings.colors = Self.colors(of: delivery, from: sourceFormat, to: target)
    }
    settings.hasReorderedFrames = isReordered
    switch codec {
    case .mjpeg:
      settings.quantizer = 3
      settings.options = ["huffman": "default"]
    case .h264:
      settings.options = ["preset": "veryfast", "crf": "18", "tune": "zerolatency"]
      if let level = Self.level(for: delivery, frameRate) {
        // The bit rate is capped at the maximum of the level. The rate-control buffer (VBV) holds
        // one second of data at this bit rate.
        maximumBitRate = level.maximumBitRate
        let bits = String(level.maximumBitRate)
        settings.options.merge(["level": level.name, "maxrate": bits, "bufsize": bits]) { $1 }
      }
      if isReordered {
        // A fixed pattern of frame types, in which B-frames are not used as references.
        settings.options["x264-params"] =
          "bframes=\(referenceInterval - 1):b-adapt=0:b-pyramid=none:scenecut=0"
      }
      // The key frame interval, in frames, is rounded down, so that the time between key frames
      // never exceeds a quarter of a second.
      settings.keyFrameInterval = max(
        1, Int(frameRate.numerator) / (4 * Int(frameRate.denominator)))
    case .ffv1:
      settings.options = ["level": "3"]
      settings.keyFrameInterval = 1  // Every frame can be decoded alone.
    default: break
    }
    let encoder = try Encoder(video: settings)
    parameters = encoder.parameters
    codecs = Codecs(
      encoder: encoder, decoder: decoder,
      converter: FrameConverter(to: target, isFullRange: target.isFullRange))
  }

  /// The color tags of encoded frames.
  ///
  /// Untagged frames of high definition would be taken for BT.709. JPEG is always BT.601, and needs no
  /// tag. The frames of an H.264 camera have their own tags.
  private static func colors(
    of delivery: FrameDelivery, from source: LibAVPixelFormat, to target: LibAVPixelFormat
  ) -> Encoder.ColorTags? {
    guard !target.isRGB, !target.isGray else { return nil }
    if source.isRGB { return Encoder.ColorTags(.bt601) }
    return delivery.layout == .compressed(.h264) ? nil : Encoder.ColorTags(delivery.matrix)
  }

  /// The lowest H.264 level that allows this size and rate at 0.25 bit per pixel.
  ///
  /// If no level allows 0.25 bit per pixel, this is the lowest level that allows the size and rate
  /// alone. Nil if no level allows the size and rate.
  private static func level(for delivery: FrameDelivery, _ frameRate: FrameRate) -> H264Level? {
    let pixels = Double(delivery.width * delivery.height) * frameRate.doubleValue
    return [0.25, 0].lazy.compactMap {
      H264Level.least(
        width: delivery.width, height: delivery.height, frameRate: frameRate,
        bitRate: Int64(saturating: pixels * $0))
    }.first
  }

  /// The pixel format in which frames are encoded.
  ///
  /// JPEG uses full-range 4:2:2 if the source has the full vertical chroma resolution, otherwise
  /// full-range 4:2:0. H.264 uses 4:2:0. Other codecs use the format they support that is nearest
  /// to the source.
  private static func pixelFormat(for codec: VideoCodec, source: LibAVPixelFormat)
    -> LibAVPixelFormat
  {
    switch codec {
    case .mjpeg: source.isWideChroma ? .yuvj422p : .yuvj420p
    case .h264: .yuv420p
    case .rawVideo: source
    default: Encoder.nearestPixelFormat(to: source, forCodec: codec.rawValue) ?? .yuv420p
    }
  }

  mutating func zoom(to factor: Double) { self.factor = factor }

  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(CallFailure) -> FrameOutcome {
    if factor != 1 { factors[microseconds] = factor }
    switch delivery.layout {
    case .raw(let format, let bytesPerRow):
      let frame = try MediaFrame.video(
        copying: bytes, width: delivery.width, height: delivery.height, pixelFormat: format,
        bytesPerRow: bytesPerRow)
      try encode(frame, at: microseconds, store)
    case .compressed:
      let packet = try Packet(
        copying: bytes, pts: microseconds, dts: microseconds, duration: 0, isKeyFrame: true)
      guard let frames = try decode(packet) else {
        factors[microseconds] = nil
        return .corrupt
      }
      try encode(frames, store)
    }
    return .taken
  }

  mutating func prime(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(CallFailure) {
    let packet = try Packet(
      copying: bytes, pts: microseconds, dts: microseconds, duration: 0, isKeyFrame: true)
    _ = try decode(packet)
  }

  /// Decodes a packet.
  ///
  /// Returns the available frames, or nil if the packet is damaged.
  ///
  /// A frame of an unexpected size counts as damaged, because the encoder reads a fixed number of
  /// bytes per frame.
  private func decode(_ packet: Packet?) throws(CallFailure) -> [MediaFrame]? {
    var frames: [MediaFrame] = []
    do throws(CallFailure) {
      try codecs.decoder?.send(packet)
      while let frame = try codecs.decoder?.nextFrame() { frames.append(frame) }
    } catch  where error.kind == .invalidData {
      return nil
    }
    let isWhole = frames.allSatisfy {
      $0.width == delivery.width && $0.height == delivery.height
    }
    // A JPEG packet that decodes to no frame is damaged. An H.264 decoder may deliver the frame
    // later.
    let isMissing = frames.isEmpty && packet != nil && delivery.layout == .compressed(.mjpeg)
    return isWhole && !isMissing ? frames : nil
  }

  mutating func finish(_ store: SampleStore) throws(CallFailure) {
    if codecs.decoder != nil { try encode(try decode(nil) ?? [], store) }
    try codecs.encoder.send(nil)
    try storeReady(store)
  }

  private mutating func encode(
    _ frames: [MediaFrame], _ store: SampleStore
  ) throws(CallFailure) {
    for frame in frames {
      // The decoder may still output lead-in frames. These have negative times and are not stored,
      // because they are decoded only for the later frames that refer to them.
      guard let time = frame.pts, time >= 0 else { continue }
      try encode(frame, at: time, store)
    }
  }

  private mutating func encode(
    _ frame: MediaFrame, at microseconds: Int64, _ store: SampleStore
  ) throws(CallFailure) {
    // The encoder's own key frame interval is a number of frames, so lost frames would lengthen the
    // time between key frames. Key frames are therefore also requested by time.
    let isDue =
      isH264
      && lastKeyFrame.map { microseconds - $0 >= Self.keyFrameMicroseconds } ?? true
    if isDue { lastKeyFrame = microseconds }
    try codecs.encoder.send(
      prepared(frame, factors.isEmpty ? nil : factors.removeValue(forKey: microseconds)),
      at: microseconds, asKeyFrame: isDue)
    try storeReady(store)
  }

  /// The frame in the encoder's format, enlarged by the zoom factor.
  private func prepared(
    _ frame: MediaFrame, _ factor: Double?
  ) throws(CallFailure) -> MediaFrame {
    guard let factor else { return try codecs.converter.convert(frame) }
    return try codecs.magnifier.magnify(
      frame, by: factor, to: pixelFormat, isFullRange: pixelFormat.isFullRange,
      width: delivery.width, height: delivery.height)
  }

  private func storeReady(_ store: SampleStore) throws(CallFailure) {
    while let packet = try codecs.encoder.nextPacket() {
      guard let time = packet.pts, let decodeTime = packet.dts,
        isReordered ? decodeTime <= time : decodeTime == time
      else { throw CallFailure("store", "reordered frames", code: -22) }
      var sample = VideoSample(time: time, isKeyFrame: packet.isKeyFrame)
      sample.decodeTime = decodeTime
      try packet.withBytes { (bytes) throws(CallFailure) in
        if isReordered { sample.isDroppable = !AnnexB.isReferenced(bytes) }
        try store(bytes, sample, parameters)
      }
    }
  }
}
