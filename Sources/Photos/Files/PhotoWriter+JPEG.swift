// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankTurboJPEG

/// Encodes JPEG images and thumbnails.
extension PhotoWriter {
  /// Returns the image as a JPEG file with its thumbnail.
  ///
  /// Returns nil if the image is damaged.
  func jpeg(
    _ bytes: UnsafeRawBufferPointer, _ format: FormatDescription, _ quality: Int?,
    factor: Double, hasThumbnail: Bool
  ) throws(MediaError) -> (file: JPEGFile?, thumbnail: [UInt8]?) {
    if format.mediaSubType == .codec(.mjpeg), quality == nil, factor == 1 {
      guard let file = JPEGFile(parsing: bytes) else { return (nil, nil) }
      // The compressed data is stored even if libav cannot decode it. In this case, only the
      // thumbnail is missing.
      guard hasThumbnail else { return (file, nil) }
      return (file, try? thumbnail(ofJPEG: bytes, format))
    }
    return try encoding(format) { () throws(LibAVError) in
      let frame = try self.converters.convert(
        bytes, format, to: Self.target(for: format), magnifiedBy: factor)
      let encoded = try self.encode(frame, quality ?? Self.defaultQuality)
      let thumbnail = try hasThumbnail ? self.thumbnail(of: frame) : nil
      return (encoded.withUnsafeBytes { JPEGFile(parsing: $0) }, thumbnail)
    }
  }

  private func encode(_ frame: MediaFrame, _ quality: Int) throws(LibAVError) -> [UInt8] {
    if let image = JPEGCompressor.Image(frame),
      let bytes = compressor?.compress(image, quality: quality)
    {
      return bytes
    }
    return try frame.jpegBytes(quantizer: Self.quantizer(quality))
  }

  /// The pixel format for the JPEG encoder in which the chroma resolution of the frame is kept.
  private static func target(for format: FormatDescription) -> PixelFormat {
    let isWide =
      switch format.mediaSubType {
      case .codec: true
      case .pixels(let pixels): LibAVPixelFormat(pixels)?.isWideChroma ?? false
      }
    return PixelFormat(rawValue: isWide ? "yuvj422p" : "yuvj420p")
  }

  /// The quantizer of libav's JPEG encoder that is nearest to a quality on the scale of the
  /// Independent JPEG Group.
  ///
  /// The group's library scales its luma table, whose mean is 57.6. The factor is 50 / quality for
  /// a quality below 50, and 2 - quality / 50 for a quality of 50 or more. libav scales the table
  /// of MPEG-1, whose mean is 27.4, by an eighth of the quantizer.
  static func quantizer(_ quality: Int) -> Int {
    let scale = quality < 50 ? 50 / Double(quality) : 2 - Double(quality) / 50
    return max(2, min(31, Int((scale * 57.6 * 8 / 27.4).rounded())))
  }

  // MARK: - Thumbnails

  private func thumbnail(
    ofJPEG bytes: UnsafeRawBufferPointer, _ format: FormatDescription
  ) throws(LibAVError) -> [UInt8]? {
    // The decoder can skip fine detail, so that it returns a smaller image. That is several times
    // faster than decoding the whole image.
    let side = max(format.width, format.height)
    let reduction = (0...3).last { side >> $0 >= Self.thumbnailSide } ?? 0
    var decoder = try Decoder(
      parameters: CodecParameters(
        videoCodec: "mjpeg", width: format.width, height: format.height),
      subject: "a photo", threadCount: 1, reduction: reduction)
    try decoder.send(Packet(copying: bytes, pts: 0, dts: 0, duration: 1, isKeyFrame: true))
    return try decoder.nextFrame().flatMap { frame throws(LibAVError) in
      try thumbnail(of: frame)
    }
  }

  private func thumbnail(of frame: MediaFrame) throws(LibAVError) -> [UInt8]? {
    var small = try ThumbnailReducer.reduced(frame, to: Self.thumbnailSide)
    if small == nil { small = try Self.reduced(frame, to: .yuvj420p, isFullRange: true) }
    guard let small else { return nil }
    // The metadata of a JPEG file has at most 64 kB. The thumbnail of a noisy image might exceed
    // that, so the quality of the thumbnail is reduced if necessary.
    for quality in [85, 50, 5] {
      let bytes = try encode(small, quality)
      if bytes.count < 60_000 { return bytes }
    }
    return nil
  }

  /// Returns the image reduced to the size of a thumbnail.
  static func reduced(
    _ frame: MediaFrame, to format: LibAVPixelFormat, isFullRange: Bool
  ) throws(LibAVError) -> MediaFrame {
    let side = max(frame.width, frame.height)
    let shown = min(side, thumbnailSide)
    var converter = FrameConverter(
      to: format, isFullRange: isFullRange, width: max(1, frame.width * shown / side),
      height: max(1, frame.height * shown / side))
    return try converter.convert(frame)
  }
}

extension JPEGCompressor.Image {
  /// The planes of a full-range frame.
  ///
  /// Returns nil for a format or size at which libjpeg-turbo would read beyond the planes.
  fileprivate init?(_ frame: MediaFrame) {
    let sampling: JPEGCompressor.ChromaSampling
    switch frame.pixelFormat {
    case .yuvj420p: sampling = .yuv420
    case .yuvj422p: sampling = .yuv422
    default: return nil
    }
    let planes = (0..<3).compactMap { frame.planeData($0).map { UnsafePointer($0) } }
    guard planes.count == 3, frame.width % 2 == 0, frame.height % 2 == 0 else { return nil }
    self.init(
      width: frame.width, height: frame.height, sampling: sampling, planes: planes,
      bytesPerRow: (0..<3).map(frame.bytesPerRow))
  }
}
