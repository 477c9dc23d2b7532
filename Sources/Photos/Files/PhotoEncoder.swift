// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore

/// Encodes frames as photo files, for one thread.
final class PhotoEncoder {
  /// The JPEG quality of frames that the camera did not compress.
  static let defaultQuality = 90
  /// The longest side of a thumbnail in pixels.
  static let thumbnailSide = 160

  private let converters = ConverterPool()

  /// Makes a photo of a frame, and writes it to its destination.
  func photo(
    of selected: SelectedFrame, _ bytes: UnsafeRawBufferPointer, from source: PhotoSource,
    _ settings: PhotoSettings, rotation: FrameRotation
  ) throws(MediaError) -> Photo {
    let frame = selected.frame
    let time = MediaTime(microseconds: frame.time)
    let transform = PhotoTransform(
      rotation: rotation, factor: source.geometry.outputFactor(atMicroseconds: frame.time))
    let attachments = SampleBuffer.Attachments(
      frame.observation, frame.exposure,
      FrameZoom(source.geometry, atMicroseconds: frame.time))
    var exif = attachments.exif(capturedAt: time, as: source.format)
    exif["Model"] = source.model
    let size = settings.format.size(ofFrame: source.format, rotation)
    (exif["PixelXDimension"], exif["PixelYDimension"]) = ("\(size.width)", "\(size.height)")
    if settings.format == .jpeg { exif["Orientation"] = rotation.exifOrientation.map { "\($0)" } }
    exif.merge(settings.properties) { _, own in own }
    let metadata = ExifMetadata(exif, settings.location)
    let data = try data(
      of: bytes, source.format, as: settings.format, quality: settings.quality, metadata,
      transform, hasThumbnail: settings.hasThumbnail)
    var photo = Photo(
      uniqueID: selected.id, index: selected.index, format: settings.format,
      width: size.width, height: size.height, frameIndex: frame.index,
      sequence: frame.observation.sequence, presentationTimeStamp: time,
      requestTime: MediaTime(microseconds: selected.requestTime), exif: metadata.values, path: nil,
      data: data)
    try store(&photo, to: settings.destination)
    return photo
  }

  /// Encodes a frame as a file.
  ///
  /// - Throws: `MediaError` with `.invalidData` for a damaged frame, `.notConvertible` for pixels
  ///   that cannot be converted.
  func data(
    of bytes: UnsafeRawBufferPointer, _ format: FormatDescription, as photoFormat: PhotoFormat,
    quality: Int?, _ metadata: ExifMetadata, _ transform: PhotoTransform = .none,
    hasThumbnail: Bool
  ) throws(MediaError) -> [UInt8] {
    switch photoFormat {
    case .png:
      let png = try encoding(format) { () throws(LibAVError) in
        let image = try self.converters.convert(
          bytes, format, to: .rgb24, magnifiedBy: transform.factor)
        return try image.rotated(by: transform.rotation).pngBytes()
      }
      return PNGFile.adding(exif: metadata.bytes(isJPEG: false, thumbnail: nil), to: png)
    case .jpeg:
      let (file, thumbnail) = try jpeg(
        bytes, format, quality, factor: transform.factor, hasThumbnail: hasThumbnail)
      guard let file else {
        throw MediaError(
          .invalidData, "a frame of \(bytes.count) bytes is not a whole JPEG image",
          recovery: "check the camera's cable, or choose another mode")
      }
      return file.bytes(withExif: metadata.bytes(isJPEG: true, thumbnail: thumbnail))
    }
  }

  /// The image as JPEG, or nil if it is damaged, and its thumbnail.
  private func jpeg(
    _ bytes: UnsafeRawBufferPointer, _ format: FormatDescription, _ quality: Int?,
    factor: Double, hasThumbnail: Bool
  ) throws(MediaError) -> (file: JPEGFile?, thumbnail: [UInt8]?) {
    if format.mediaSubType == .codec(.mjpeg), quality == nil, factor == 1 {
      guard let file = JPEGFile(parsing: bytes) else { return (nil, nil) }
      // The compressed data is stored even if this decoder cannot read it. Only the thumbnail is
      // missing then.
      guard hasThumbnail else { return (file, nil) }
      return (file, try? Self.thumbnail(ofJPEG: bytes, format))
    }
    return try encoding(format) { () throws(LibAVError) in
      let frame = try self.converters.convert(
        bytes, format, to: Self.target(for: format), magnifiedBy: factor)
      let encoded = try frame.jpegBytes(
        quantizer: Self.quantizer(quality ?? Self.defaultQuality))
      let thumbnail = try hasThumbnail ? Self.thumbnail(of: frame) : nil
      return (encoded.withUnsafeBytes { JPEGFile(parsing: $0) }, thumbnail)
    }
  }

  private func encoding<Result>(
    _ format: FormatDescription, _ body: () throws(LibAVError) -> Result
  ) throws(MediaError) -> Result {
    do throws(LibAVError) { return try body() } catch {
      throw MediaError(
        .notConvertible, "could not encode a frame: \(error)",
        recovery: Recovery("choose another format", .change(.format)), cause: error.cause)
    }
  }

  /// The pixel format for the JPEG encoder that keeps the chroma resolution.
  private static func target(for format: FormatDescription) -> PixelFormat {
    let isWide =
      switch format.mediaSubType {
      case .codec: true
      case .pixels(let pixels): LibAVPixelFormat(pixels)?.isWideChroma ?? false
      }
    return PixelFormat(rawValue: isWide ? "yuvj422p" : "yuvj420p")
  }

  /// The quantizer of libav's encoder that is nearest to a quality of the Independent JPEG Group.
  ///
  /// The group's library scales its tables, whose mean is 57.6 for luma, by 50 / quality or by
  /// 2 - quality / 50. libav scales the table of MPEG-1, whose mean is 27.4, by an eighth of the
  /// quantizer.
  static func quantizer(_ quality: Int) -> Int {
    let scale = quality < 50 ? 50 / Double(quality) : 2 - Double(quality) / 50
    return max(2, min(31, Int((scale * 57.6 * 8 / 27.4).rounded())))
  }

  // MARK: - Thumbnails

  private static func thumbnail(
    ofJPEG bytes: UnsafeRawBufferPointer, _ format: FormatDescription
  ) throws(LibAVError) -> [UInt8]? {
    // The decoder can leave out the fine detail. That is several times faster than decoding the
    // whole image.
    let side = max(format.width, format.height)
    let reduction = (0...3).last { side >> $0 >= thumbnailSide } ?? 0
    var decoder = try Decoder(
      parameters: CodecParameters(
        videoCodec: "mjpeg", width: format.width, height: format.height),
      subject: "a photo", threadCount: 1, reduction: reduction)
    try decoder.send(Packet(copying: bytes, pts: 0, dts: 0, duration: 1, isKeyFrame: true))
    return try decoder.nextFrame().flatMap { frame throws(LibAVError) in
      try thumbnail(of: frame)
    }
  }

  private static func thumbnail(of frame: MediaFrame) throws(LibAVError) -> [UInt8]? {
    let side = max(frame.width, frame.height)
    let shown = min(side, thumbnailSide)
    var converter = FrameConverter(
      to: .yuvj420p, isFullRange: true, width: max(1, frame.width * shown / side),
      height: max(1, frame.height * shown / side))
    let small = try converter.convert(frame)
    // The whole metadata has at most 64 kB. A thumbnail of noise might exceed that.
    for quantizer in [4, 12, 31] {
      let bytes = try small.jpegBytes(quantizer: quantizer)
      if bytes.count < 60_000 { return bytes }
    }
    return nil
  }

  // MARK: - Destinations

  private func store(
    _ photo: inout Photo, to destination: PhotoDestination
  ) throws(MediaError) {
    switch destination {
    case .memory: return
    case .file(let path, let overwrites): try Self.write(&photo, to: path, overwrites)
    case .files(let overwrites, let path): try Self.write(&photo, to: path(photo), overwrites)
    case .userDirectory: try UserImageDirectory.store(&photo)
    }
  }

  static func write(
    _ photo: inout Photo, to path: String, _ overwrites: Bool
  ) throws(MediaError) {
    do throws(FileCreationError) {
      try WholeFile.write(photo.data ?? [], to: path, overwrites: overwrites)
    } catch { throw MediaError(error) }
    photo.path = path
    photo.data = nil
  }
}
