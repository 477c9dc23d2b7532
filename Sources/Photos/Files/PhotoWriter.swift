// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankTurboJPEG

/// Encodes frames as photo files.
///
/// A writer is used by one thread only.
final class PhotoWriter {
  /// The JPEG quality of frames that the camera did not compress.
  static let defaultQuality = 90
  /// The length of a thumbnail's longer side in pixels.
  static let thumbnailSide = 160

  let converters = ConverterPool()
  private let encoders: [any PhotoEncoder]
  var compressor = JPEGCompressor()

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
    photo.data = try data(
      of: bytes, source.format, as: settings.format, quality: settings.quality, draft.metadata,
      draft.transform, hasThumbnail: settings.hasThumbnail, contentIdentifier: contentIdentifier,
      xmp: XMPPacket(properties: settings.xmp))
    guard let path = photo.path else { return photo }
    if case .userDirectory = settings.destination {
      try UserImageDirectory.store(&photo, at: path)
    } else {
      try Self.write(&photo, to: path, settings.destination.overwrites)
    }
    return photo
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
    quality: Int?, _ metadata: ExifMetadata, _ transform: PhotoTransform = .none,
    hasThumbnail: Bool, contentIdentifier: String? = nil, xmp: XMPPacket = XMPPacket()
  ) throws(MediaError) -> [UInt8] {
    switch photoFormat {
    case .png:
      let png = try encoding(format) { () throws(LibAVError) in
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
          of: bytes, format, transform, quality ?? Self.defaultQuality, exif: exif,
          xmp: xmp.isEmpty ? [] : Array(xmp.text.utf8), hasThumbnail: hasThumbnail))
    case .jpeg:
      let (file, thumbnail) = try jpeg(
        bytes, format, quality, factor: transform.factor, hasThumbnail: hasThumbnail)
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
    try encoding(format) { () throws(LibAVError) in
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
    let small = try encoding(format) { () throws(LibAVError) in
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
    _ format: FormatDescription, _ body: () throws(LibAVError) -> Result
  ) throws(MediaError) -> Result {
    do throws(LibAVError) { return try body() } catch {
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
    do throws(FileCreationError) {
      try WholeFile.write(photo.data ?? [], to: path, overwrites: overwrites)
    } catch { throw MediaError(error) }
    photo.path = path
    photo.data = nil
  }
}
