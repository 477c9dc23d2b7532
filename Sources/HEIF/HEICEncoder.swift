// SPDX-License-Identifier: Apache-2.0

import CHEIF
public import OvercrankMediaCore
public import OvercrankPhotos

/// Encodes HEIC photos with libheif.
///
/// ```swift
/// let output = PhotoOutput(encoders: [HEICEncoder()])
/// var settings = PhotoSettings(format: .heic, destination: .file("goal.heic"))
/// ```
///
/// The encoder may be used from any thread.
public struct HEICEncoder: PhotoEncoder {
  /// Creates an encoder.
  public init() {}

  /// The format of the encoded files, which is HEIC.
  public var format: PhotoFormat { .heic }

  /// The preset of x265.
  ///
  /// It is three times as fast as the default preset, and the files are only slightly larger.
  private static let preset = "fast"

  /// Encodes an image (`heif_context_encode_image`).
  ///
  /// - Throws: `MediaError` with `.notConvertible` if libheif rejects the image, or has no HEVC
  ///   encoder.
  public func encode(_ image: PhotoImage) throws(MediaError) -> [UInt8] {
    let file = try HEIFFile()
    let encoder = try file.makeEncoder()
    try encoder.configure(quality: image.quality, preset: Self.preset)
    let pixels = try HEIFPixels.make(image)
    let handle = try file.add(pixels, encoder)
    try file.add(exif: image.exif, to: handle)
    try file.add(xmp: image.xmp, to: handle)
    if let side = image.thumbnailSide, side < max(image.width, image.height) {
      try file.addThumbnail(of: pixels, to: handle, encoder, side: side)
    }
    return try file.bytes()
  }
}

/// A HEIF file that is built in memory.
private struct HEIFFile: ~Copyable {
  private let context: OpaquePointer

  init() throws(MediaError) {
    guard let context = heif_context_alloc() else { throw .heifMemory }
    self.context = context
  }

  deinit { heif_context_free(context) }

  func makeEncoder() throws(MediaError) -> HEIFImageEncoder {
    var encoder: OpaquePointer?
    try MediaError.check(
      heif_context_get_encoder_for_format(context, heif_compression_HEVC, &encoder))
    guard let encoder else { throw .heifMemory }
    return HEIFImageEncoder(adopting: encoder)
  }

  func add(
    _ image: borrowing HEIFPixels, _ encoder: borrowing HEIFImageEncoder
  ) throws(MediaError) -> HEIFHandle {
    var handle: OpaquePointer?
    try MediaError.check(
      heif_context_encode_image(context, image.image, encoder.encoder, nil, &handle))
    guard let handle else { throw .heifMemory }
    return HEIFHandle(adopting: handle)
  }

  func add(exif: [UInt8], to handle: borrowing HEIFHandle) throws(MediaError) {
    try MediaError.check(
      heif_context_add_exif_metadata(context, handle.handle, exif, Int32(exif.count)))
  }

  func add(xmp: [UInt8], to handle: borrowing HEIFHandle) throws(MediaError) {
    if xmp.isEmpty { return }
    try MediaError.check(
      heif_context_add_XMP_metadata(context, handle.handle, xmp, Int32(xmp.count)))
  }

  func addThumbnail(
    of image: borrowing HEIFPixels, to handle: borrowing HEIFHandle,
    _ encoder: borrowing HEIFImageEncoder, side: Int
  ) throws(MediaError) {
    var thumbnail: OpaquePointer?
    try MediaError.check(
      heif_context_encode_thumbnail(
        context, image.image, handle.handle, encoder.encoder, nil, Int32(side), &thumbnail))
    // libheif returns nil if the image is smaller than the thumbnail would be.
    if let thumbnail { _ = HEIFHandle(adopting: thumbnail) }
  }

  func bytes() throws(MediaError) -> [UInt8] {
    var writer = heif_writer(writer_api_version: 1) { _, data, count, target in
      target?.assumingMemoryBound(to: [UInt8].self).pointee
        .append(contentsOf: UnsafeRawBufferPointer(start: data, count: count))
      return heif_error(code: heif_error_Ok, subcode: heif_suberror_Unspecified, message: nil)
    }
    var bytes: [UInt8] = []
    try MediaError.check(
      withUnsafeMutablePointer(to: &bytes) { heif_context_write(context, &writer, $0) })
    return bytes
  }
}

/// libheif's encoder for HEVC images.
private struct HEIFImageEncoder: ~Copyable {
  let encoder: OpaquePointer

  init(adopting encoder: OpaquePointer) { self.encoder = encoder }

  func configure(quality: Int, preset: String) throws(MediaError) {
    try MediaError.check(heif_encoder_set_lossy_quality(encoder, Int32(clamping: quality)))
    // An encoder that does not support presets returns an error and keeps its default, so the error
    // is ignored.
    _ = heif_encoder_set_parameter_string(encoder, "preset", preset)
  }

  deinit { heif_encoder_release(encoder) }
}

/// libheif's handle of an encoded image in a HEIF file.
private struct HEIFHandle: ~Copyable {
  let handle: OpaquePointer

  init(adopting handle: OpaquePointer) { self.handle = handle }

  deinit { heif_image_handle_release(handle) }
}

/// The pixels of an image before it is encoded.
private struct HEIFPixels: ~Copyable {
  let image: OpaquePointer

  private init(adopting image: OpaquePointer) { self.image = image }

  deinit { heif_image_release(image) }

  static func make(_ photo: PhotoImage) throws(MediaError) -> HEIFPixels {
    var image: OpaquePointer?
    try MediaError.check(
      heif_image_create(
        Int32(photo.width), Int32(photo.height), heif_colorspace_YCbCr, heif_chroma_420, &image))
    guard let image else { throw .heifMemory }
    let pixels = HEIFPixels(adopting: image)
    try pixels.fill(photo)
    try pixels.setColorProfile()
    return pixels
  }

  private func fill(_ photo: PhotoImage) throws(MediaError) {
    let (width, height) = (photo.width, photo.height)
    var start = 0
    for (channel, columns, rows) in [
      (heif_channel_Y, width, height),
      (heif_channel_Cb, (width + 1) / 2, (height + 1) / 2),
      (heif_channel_Cr, (width + 1) / 2, (height + 1) / 2),
    ] {
      try MediaError.check(
        heif_image_add_plane(image, channel, Int32(columns), Int32(rows), 8))
      var stride: Int32 = 0
      guard let plane = heif_image_get_plane(image, channel, &stride),
        start + columns * rows <= photo.pixels.count
      else { throw .heifMemory }
      photo.pixels.withUnsafeBytes { pixels in
        for row in 0..<rows {
          let line = UnsafeRawBufferPointer(
            rebasing: pixels[(start + row * columns)..<(start + (row + 1) * columns)])
          UnsafeMutableRawBufferPointer(start: plane + row * Int(stride), count: columns)
            .copyMemory(from: line)
        }
      }
      start += columns * rows
    }
  }

  private func setColorProfile() throws(MediaError) {
    guard let profile = heif_nclx_color_profile_alloc() else { throw .heifMemory }
    defer { heif_nclx_color_profile_free(profile) }
    profile.pointee.color_primaries = heif_color_primaries_ITU_R_BT_709_5
    profile.pointee.transfer_characteristics =
      heif_transfer_characteristic_IEC_61966_2_1
    profile.pointee.matrix_coefficients = heif_matrix_coefficients_ITU_R_BT_601_6
    profile.pointee.full_range_flag = 1
    try MediaError.check(heif_image_set_nclx_color_profile(image, profile))
  }
}

extension MediaError {
  fileprivate static var heifMemory: MediaError {
    MediaError(.outOfMemory, "libheif has no memory for a photo", recovery: "choose a smaller mode")
  }

  /// Throws an error if a call of libheif failed.
  fileprivate static func check(_ error: heif_error) throws(MediaError) {
    guard error.code != heif_error_Ok else { return }
    let message = error.message.map { String(cString: $0) } ?? "error \(error.code.rawValue)"
    throw MediaError(
      .notConvertible, "libheif could not encode a photo: \(message)",
      recovery: Recovery("choose JPEG", .change(.format)))
  }
}
