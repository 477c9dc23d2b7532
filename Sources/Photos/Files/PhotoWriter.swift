// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import OvercrankTurboJPEG

/// Encodes frames as photo files.
///
/// A writer is used by one thread only.
final class PhotoWriter {
  /// The length of a thumbnail's longer side in pixels.
  static let thumbnailSide = 160

  private let converters = ConverterPool()
  private let encoders: [any PhotoEncoder]
  private var compressor = JPEGCompressor()
  private let previewConverter = SampleConverter(quality: .fast)

  init(encoders: [any PhotoEncoder] = []) { self.encoders = encoders }

  /// Throws an error unless a JPEG quality is valid.
  static func check(quality: Int) throws(MediaError) {
    guard !(1...100).contains(quality) else { return }
    throw MediaError(
      .badConfiguration, "the quality \(quality) is not from 1 to 100",
      recovery: "choose one from 1 to 100")
  }

  /// Determines the path of a photo, and all values that are known before its image is encoded.
  func draft(
    of selected: SelectedFrame, from source: PhotoSource, _ settings: PhotoSettings,
    _ context: PhotoContext
  ) throws(MediaError) -> PhotoDraft {
    let (frame, rotation) = (selected.frame, context.rotation)
    let time = MediaTime(microseconds: frame.time)
    let attachments = SampleBuffer.Attachments(
      frame.observation, frame.exposure,
      FrameZoom(source.geometry, atMicroseconds: frame.time))
    var exif = attachments.exif(capturedAt: time, as: source.format)
    exif["Model"] = source.model
    let size = settings.format.size(ofFrame: source.format, rotation)
    (exif["PixelXDimension"], exif["PixelYDimension"]) = ("\(size.width)", "\(size.height)")
    if !settings.format.isRotated {
      exif["Orientation"] = rotation.exifOrientation.map { "\($0)" }
    }
    if let flash = context.flash { exif["Flash"] = "\(flash)" }
    exif.merge(settings.properties) { _, own in own }
    let metadata = ExifMetadata(exif, settings.location)
    var photo = Photo(
      uniqueID: selected.id, index: selected.index, format: settings.format,
      width: size.width, height: size.height, frameIndex: frame.index,
      sequence: frame.observation.sequence, presentationTimeStamp: time,
      requestTime: MediaTime(microseconds: selected.requestTime), exif: metadata.values, path: nil,
      data: nil)
    photo.path = try path(of: photo, settings.destination)
    return PhotoDraft(
      photo: photo, metadata: metadata,
      transform: PhotoTransform(
        rotation: rotation, factor: source.geometry.outputFactor(atMicroseconds: frame.time)))
  }

  /// Encodes a photo, and writes it to its destination.
  func photo(
    _ draft: PhotoDraft, _ bytes: UnsafeRawBufferPointer, from source: PhotoSource,
    _ settings: PhotoSettings, contentIdentifier: String?
  ) throws(MediaError) -> Photo {
    var photo = draft.photo
    photo.previewPixelBuffer = try preview(of: bytes, source.format, settings, draft.transform)
    let priority = settings.photoQualityPrioritization
    photo.data = try data(
      of: bytes, source.format, as: settings.format, quality: settings.quality,
      encodedQuality: priority.jpegQuality, draft.metadata, draft.transform,
      hasThumbnail: settings.hasThumbnail && priority != .speed,
      contentIdentifier: contentIdentifier, xmp: XMPPacket(properties: settings.xmp))
    guard let path = photo.path else { return photo }
    if case .userDirectory = settings.destination {
      try UserImageDirectory.store(&photo, at: path)
    } else {
      try Self.write(&photo, to: path, settings.destination.overwrites)
    }
    return photo
  }

  /// Returns the preview image that the settings request, or nil.
  private func preview(
    of bytes: UnsafeRawBufferPointer, _ format: FormatDescription, _ settings: PhotoSettings,
    _ transform: PhotoTransform
  ) throws(MediaError) -> PixelBuffer? {
    guard var wanted = settings.previewPhotoFormat else { return nil }
    wanted.pixelFormat = wanted.pixelFormat ?? .bgra
    let work = SampleConverter.Work(
      settings: wanted, rotation: transform.rotation, factor: transform.factor)
    do { return try previewConverter.convert(bytes, format, work).image } catch {
      throw MediaError(
        .notConvertible, "could not make the preview of a photo: \(error)",
        recovery: Recovery("choose another format", .change(.format)))
    }
  }

  /// The mean luma of a frame, from 0 (black) to 1 (white).
  ///
  /// Nil if the frame cannot be decoded.
  func meanLevel(of bytes: UnsafeRawBufferPointer, _ format: FormatDescription) -> Double? {
    guard let image = try? converters.convert(bytes, format, to: .gray),
      let luma = image.planeData(0)
    else { return nil }
    // Every 64th pixel is enough for a mean.
    var (sum, count) = (0, 0)
    for y in stride(from: 0, to: image.height, by: 8) {
      for x in stride(from: 0, to: image.width, by: 8) {
        sum += Int(luma[y * image.bytesPerRow(0) + x])
        count += 1
      }
    }
    return count == 0 ? nil : Double(sum) / Double(count) / 255
  }

  /// Encodes a frame as a file.
  ///
  /// - Throws: `MediaError` with `.invalidData` for a damaged frame, `.notConvertible` for pixels
  ///   that cannot be converted.
  func data(
    of bytes: UnsafeRawBufferPointer, _ format: FormatDescription, as photoFormat: PhotoFormat,
    quality: Int?, encodedQuality: Int = QualityPrioritization.balanced.jpegQuality,
    _ metadata: ExifMetadata, _ transform: PhotoTransform = .none,
    hasThumbnail: Bool, contentIdentifier: String? = nil, xmp: XMPPacket = XMPPacket()
  ) throws(MediaError) -> [UInt8] {
    switch photoFormat {
    case .png:
      let png = try encoding(format) { () throws(CallFailure) in
        let image = try self.converters.convert(
          bytes, format, to: .rgb24, magnifiedBy: transform.factor)
        return try image.rotated(by: transform.rotation).pngBytes()
      }
      let exif = metadata.bytes(
        isJPEG: false, thumbnail: nil, contentIdentifier: contentIdentifier)
      return PNGFile.adding(exif: exif, to: png)
    case .dng: return try dng(bytes, format, metadata)
    case .heic:
      guard let encoder = encoders.first(where: { $0.format == photoFormat }) else {
        throw MediaError(
          .badConfiguration, "no encoder writes \(photoFormat.rawValue) files",
          recovery: Recovery("choose JPEG", .change(.format)))
      }
      let exif = metadata.bytes(
        isJPEG: false, thumbnail: nil, contentIdentifier: contentIdentifier)
      return try encoder.encode(
        image(
          of: bytes, format, transform, quality ?? encodedQuality, exif: exif,
          xmp: xmp.isEmpty ? [] : Array(xmp.text.utf8), hasThumbnail: hasThumbnail))
    case .jpeg:
      let (file, thumbnail) = try jpeg(
        bytes, format, quality, encodedQuality: encodedQuality, factor: transform.factor,
        hasThumbnail: hasThumbnail)
      guard let file else {
        throw MediaError(
          .invalidData, "a frame of \(bytes.count) bytes is not a whole JPEG image",
          recovery: "check the camera's cable, or choose another mode")
      }
      return file.bytes(
        withExif: metadata.bytes(
          isJPEG: true, thumbnail: thumbnail, contentIdentifier: contentIdentifier),
        xmp: xmp.segment)
    }
  }

  /// Returns the planes of the image after rotation, and the metadata for its file.
  private func image(
    of bytes: UnsafeRawBufferPointer, _ format: FormatDescription, _ transform: PhotoTransform,
    _ quality: Int, exif: [UInt8], xmp: [UInt8], hasThumbnail: Bool
  ) throws(MediaError) -> PhotoImage {
    try encoding(format) { () throws(CallFailure) in
      let image = try self.converters.convert(
        bytes, format, to: PixelFormat(rawValue: "yuvj420p"), magnifiedBy: transform.factor
      ).rotated(by: transform.rotation)
      return PhotoImage(
        width: image.width, height: image.height, pixels: try image.packedBytes(),
        quality: quality, exif: exif, xmp: xmp,
        thumbnailSide: hasThumbnail ? Self.thumbnailSide : nil)
    }
  }

  private func dng(
    _ bytes: UnsafeRawBufferPointer, _ format: FormatDescription, _ metadata: ExifMetadata
  ) throws(MediaError) -> [UInt8] {
    guard case .pixels(let pixels) = format.mediaSubType, let pattern = BayerPattern(pixels) else {
      throw MediaError(
        .notConvertible, "frames of \(format.mediaSubType) are not those of a Bayer sensor",
        recovery: Recovery("choose another format", .change(.format)))
    }
    let small = try encoding(format) { () throws(CallFailure) in
      try Self.reduced(
        self.converters.convert(bytes, format, to: .rgb24), to: .rgb24, isFullRange: false)
    }
    let rowBytes = 3 * small.width
    var preview: [UInt8] = []
    for row in 0..<small.height {
      guard let start = small.planeData(0) else { break }
      let line = start + row * small.bytesPerRow(0)
      preview += UnsafeBufferPointer(start: line, count: rowBytes)
    }
    return DNGFile.bytes(
      bytes, format, pattern,
      DNGFile.Preview(width: small.width, height: small.height, pixels: preview), metadata)
  }

  func encoding<Result>(
    _ format: FormatDescription, _ body: () throws(CallFailure) -> Result
  ) throws(MediaError) -> Result {
    do throws(CallFailure) { return try body() } catch {
      throw MediaError(
        .notConvertible, "could not encode a frame: \(error)",
        recovery: Recovery("choose another format", .change(.format)), cause: error.cause)
    }
  }

  // MARK: - Destinations

  /// Returns the path of a photo; nil if the photo stays in memory.
  private func path(
    of photo: Photo, _ destination: PhotoDestination
  ) throws(MediaError) -> String? {
    switch destination {
    case .memory: nil
    case .file(let path, _): path
    case .files(_, let path): path(photo)
    case .userDirectory: try UserImageDirectory.unusedPath(for: photo)
    }
  }

  static func write(
    _ photo: inout Photo, to path: String, _ overwrites: Bool
  ) throws(MediaError) {
    do throws(CallFailure) {
      try WholeFile.write(photo.data ?? [], to: path, overwrites: overwrites)
    } catch { throw MediaError(creating: error) }
    photo.path = path
    photo.data = nil
  }
}

/// Encodes JPEG images and thumbnails.
extension PhotoWriter {
  /// Returns the image as a JPEG file with its thumbnail.
  ///
  /// Returns nil if the image is damaged.
  func jpeg(
    _ bytes: UnsafeRawBufferPointer, _ format: FormatDescription, _ quality: Int?,
    encodedQuality: Int = QualityPrioritization.balanced.jpegQuality, factor: Double,
    hasThumbnail: Bool
  ) throws(MediaError) -> (file: JPEGFile?, thumbnail: [UInt8]?) {
    if format.mediaSubType == .codec(.mjpeg), quality == nil, factor == 1 {
      guard let file = JPEGFile(parsing: bytes) else { return (nil, nil) }
      // The compressed data is stored even if libav cannot decode it. In this case, only the
      // thumbnail is missing.
      guard hasThumbnail else { return (file, nil) }
      return (file, try? thumbnail(ofJPEG: bytes, format))
    }
    return try encoding(format) { () throws(CallFailure) in
      let frame = try self.converters.convert(
        bytes, format, to: Self.target(for: format), magnifiedBy: factor)
      let encoded = try self.encode(frame, quality ?? encodedQuality)
      let thumbnail = try hasThumbnail ? self.thumbnail(of: frame) : nil
      return (encoded.withUnsafeBytes { JPEGFile(parsing: $0) }, thumbnail)
    }
  }

  private func encode(_ frame: MediaFrame, _ quality: Int) throws(CallFailure) -> [UInt8] {
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
  ) throws(CallFailure) -> [UInt8]? {
    // The decoder can skip fine detail, so that it returns a smaller image. That is several times
    // faster than decoding the whole image.
    let side = max(format.width, format.height)
    let reduction = (0...3).last { side >> $0 >= Self.thumbnailSide } ?? 0
    var decoder = try Decoder(
      parameters: CodecParameters(
        videoCodec: "mjpeg", width: format.width, height: format.height),
      subject: "a photo", threadCount: 1, reduction: reduction)
    try decoder.send(Packet(copying: bytes, pts: 0, dts: 0, duration: 1, isKeyFrame: true))
    return try decoder.nextFrame().flatMap { frame throws(CallFailure) in
      try thumbnail(of: frame)
    }
  }

  private func thumbnail(of frame: MediaFrame) throws(CallFailure) -> [UInt8]? {
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
  ) throws(CallFailure) -> MediaFrame {
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

/// Adds metadata to PNG files.
enum PNGFile {
  /// The size in bytes of the signature and of the IHDR chunk, which is the first chunk.
  private static let headerSize = 33

  /// Returns a PNG file with Exif metadata in an `eXIf` chunk, which the third edition of PNG
  /// defines.
  static func adding(exif: [UInt8], to png: [UInt8]) -> [UInt8] {
    guard png.count > headerSize else { return png }
    let body = Array("eXIf".utf8) + exif
    let checksum = body.withUnsafeBytes { CRC32.checksum(of: $0) }
    let chunk = bigEndian(UInt32(exif.count)) + body + bigEndian(checksum)
    return png[..<headerSize] + chunk + png[headerSize...]
  }

  private static func bigEndian(_ number: UInt32) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
  }
}

/// A photo before its image is encoded.
struct PhotoDraft {
  /// The photo without its data, but with the path of its future file.
  let photo: Photo
  let metadata: ExifMetadata
  let transform: PhotoTransform
}

/// Reduces images to thumbnails by averaging blocks of pixels.
///
/// At the large reduction factors of thumbnails, the filters of libswscale take several times as
/// long.
enum ThumbnailReducer {
  /// The least reduction factor at which averaging blocks gives as good an image as a filter.
  private static let smallestFactor = 4

  /// Reduces an image by a whole factor, so that its sides have at most `side` pixels.
  ///
  /// - Returns: The reduced image. Nil if the factor would be less than 4, or if the pixel format
  ///   is not one of JPEG.
  /// - Throws: `CallFailure` if memory is exhausted.
  static func reduced(_ frame: MediaFrame, to side: Int) throws(CallFailure) -> MediaFrame? {
    let shifts: (x: Int, y: Int)
    switch frame.pixelFormat {
    case .yuvj420p: shifts = (1, 1)
    case .yuvj422p: shifts = (1, 0)
    default: return nil
    }
    let factor = (max(frame.width, frame.height) + side - 1) / side
    // Width and height must be even, because chroma is subsampled.
    let (width, height) = (frame.width / factor & ~1, frame.height / factor & ~1)
    guard factor >= smallestFactor, width > 0, height > 0 else { return nil }
    let result = try MediaFrame.video(
      width: width, height: height, pixelFormat: frame.pixelFormat)
    for plane in 0..<3 {
      guard let source = frame.planeData(plane), let target = result.planeData(plane) else {
        return nil
      }
      let (x, y) = plane == 0 ? (0, 0) : shifts
      reduce(
        UnsafePointer(source), frame.bytesPerRow(plane), into: target, result.bytesPerRow(plane),
        width: width >> x, height: height >> y, factor: factor)
    }
    return result
  }

  private static func reduce(
    _ source: UnsafePointer<UInt8>, _ sourceStride: Int,
    into target: UnsafeMutablePointer<UInt8>, _ targetStride: Int, width: Int, height: Int,
    factor: Int
  ) {
    // Every second row of a block is enough for its mean.
    let rows = stride(from: 0, to: factor, by: 2)
    let count = UInt32((factor + 1) / 2 * factor)
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: width) { sums in
      for y in 0..<height {
        sums.update(repeating: 0)
        for row in rows {
          var pixel = source + (y * factor + row) * sourceStride
          for x in 0..<width {
            var sum: UInt32 = 0
            for column in 0..<factor { sum &+= UInt32(pixel[column]) }
            sums[x] &+= sum
            pixel += factor
          }
        }
        let line = target + y * targetStride
        for x in 0..<width { line[x] = UInt8(truncatingIfNeeded: (sums[x] &+ count / 2) / count) }
      }
    }
  }
}
