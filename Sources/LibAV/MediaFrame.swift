// SPDX-License-Identifier: Apache-2.0

package import CFFmpeg
package import OvercrankMediaCore

/// An uncompressed video frame or a block of uncompressed audio.
///
/// The data is shared by reference, and never changed once the frame is complete.
package final class MediaFrame: @unchecked Sendable {
  let pointer: UnsafeMutablePointer<AVFrame>

  /// Allocates an empty frame that FFmpeg then fills.
  init() throws(CallFailure) {
    guard let frame = av_frame_alloc() else {
      throw CallFailure("allocate", "a frame", code: CFFmpeg_ENOMEM)
    }
    pointer = frame
  }

  deinit {
    var frame: UnsafeMutablePointer<AVFrame>? = pointer
    av_frame_free(&frame)
  }

  /// The duration in ticks of the track from which the frame was decoded.
  ///
  /// Zero if it is unknown.
  package var duration: Int64 { pointer.pointee.pkt_duration }
  /// The presentation time in ticks of the track from which the frame was decoded; nil if unknown.
  package var pts: Int64? {
    let best = pointer.pointee.best_effort_timestamp
    let pts = pointer.pointee.pts
    return pts != CFFmpeg_NOPTS ? pts : best != CFFmpeg_NOPTS ? best : nil
  }
  /// The width of the frame in pixels; 0 for audio.
  package var width: Int { Int(pointer.pointee.width) }
  /// The height of the frame in pixels; 0 for audio.
  package var height: Int { Int(pointer.pointee.height) }
  /// The number of audio samples per channel in the block; 0 for video.
  package var sampleCount: Int { Int(pointer.pointee.nb_samples) }
  /// The number of audio samples per second; 0 for video.
  package var sampleRate: Int { Int(pointer.pointee.sample_rate) }
  /// The number of audio channels; 0 for video.
  package var channelCount: Int { Int(pointer.pointee.ch_layout.nb_channels) }
  /// Whether the decoder found errors in the frame.
  package var isCorrupt: Bool {
    pointer.pointee.flags & AV_FRAME_FLAG_CORRUPT != 0
      || pointer.pointee.decode_error_flags != 0
  }
  /// Whether the frame has full range, according to its color range tag or its pixel format.
  package var isFullRange: Bool {
    pointer.pointee.color_range == AVCOL_RANGE_JPEG || pixelFormat.isFullRange
  }
  /// The frame type: `AV_PICTURE_TYPE_I` (1), `P` (2) or `B` (3); 0 if unknown.
  package var frameType: Int32 { Int32(truncatingIfNeeded: pointer.pointee.pict_type.rawValue) }
  package var pixelFormat: AVPixelFormat { AVPixelFormat(pointer.pointee.format) }
  /// The matrix for the conversion between YUV and RGB.
  ///
  /// `AVCOL_SPC_UNSPECIFIED` if the frame has no tag for it.
  package var colorSpace: AVColorSpace { pointer.pointee.colorspace }

  /// Allocates a video frame with undefined pixels.
  ///
  /// The caller fills it before sharing it.
  package static func video(
    width: Int, height: Int, pixelFormat: AVPixelFormat
  ) throws(CallFailure) -> MediaFrame {
    let frame = try MediaFrame()
    frame.pointer.pointee.width = Int32(clamping: width)
    frame.pointer.pointee.height = Int32(clamping: height)
    frame.pointer.pointee.format = pixelFormat.rawValue
    try CallFailure.check(
      av_frame_get_buffer(frame.pointer, 0), "allocate", "a \(width)x\(height) picture")
    return frame
  }

  /// The size in bytes of a frame in a driver's buffer.
  ///
  /// - Throws: `CallFailure` for an invalid size or format.
  package static func byteCount(
    width: Int, height: Int, pixelFormat: AVPixelFormat, bytesPerRow: Int
  ) throws(CallFailure) -> Int {
    try FrameLayout(
      width: width, height: height, pixelFormat: pixelFormat, bytesPerRow: bytesPerRow
    ).byteCount
  }

  /// Creates a video frame that uses the memory of a driver's buffer.
  ///
  /// The frame must not outlive the buffer. Throws if the buffer has too few bytes for the frame.
  package static func video(
    in bytes: UnsafeRawBufferPointer, width: Int, height: Int, pixelFormat: AVPixelFormat,
    bytesPerRow: Int
  ) throws(CallFailure) -> MediaFrame {
    let layout = try FrameLayout(
      width: width, height: height, pixelFormat: pixelFormat, bytesPerRow: bytesPerRow)
    guard bytes.count >= layout.byteCount, let start = bytes.baseAddress else {
      throw CallFailure(
        "read", "a \(width)x\(height) frame from \(bytes.count) bytes", code: CFFmpeg_EINVAL)
    }
    let frame = try MediaFrame()
    frame.pointer.pointee.width = Int32(clamping: width)
    frame.pointer.pointee.height = Int32(clamping: height)
    frame.pointer.pointee.format = pixelFormat.rawValue
    // Casting away `const` is safe, because no code writes to the planes of a frame.
    let data = UnsafeMutableRawPointer(mutating: start).assumingMemoryBound(to: UInt8.self)
    withUnsafeMutableBytes(of: &frame.pointer.pointee.data) { planes in
      let planes = planes.bindMemory(to: UnsafeMutablePointer<UInt8>?.self)
      for (plane, part) in layout.planes.enumerated() { planes[plane] = data + part.offset }
    }
    withUnsafeMutableBytes(of: &frame.pointer.pointee.linesize) { strides in
      let strides = strides.bindMemory(to: Int32.self)
      for (plane, part) in layout.planes.enumerated() {
        strides[plane] = Int32(clamping: part.stride)
      }
    }
    return frame
  }

  /// Creates a video frame by copying a driver's buffer.
  ///
  /// `bytesPerRow` is the stride of the first plane, or 0 if rows have no padding. Throws if the
  /// buffer has too few bytes for the frame.
  package static func video(
    copying bytes: UnsafeRawBufferPointer, width: Int, height: Int, pixelFormat: AVPixelFormat,
    bytesPerRow: Int
  ) throws(CallFailure) -> MediaFrame {
    let source = try video(
      in: bytes, width: width, height: height, pixelFormat: pixelFormat, bytesPerRow: bytesPerRow)
    let frame = try video(width: width, height: height, pixelFormat: pixelFormat)
    try CallFailure.check(
      av_frame_copy(frame.pointer, source.pointer), "copy", "a \(width)x\(height) picture")
    return frame
  }

  /// Creates an audio frame from an array of samples for each channel, from -1 to 1.
  ///
  /// - Throws: `CallFailure` for sample formats other than float and 16- or 32-bit integers.
  static func audio(
    _ channels: [[Float]], sampleRate: Int, format: AVSampleFormat
  ) throws(CallFailure) -> MediaFrame {
    let count = channels.first?.count ?? 0
    let frame = try MediaFrame()
    frame.pointer.pointee.nb_samples = Int32(clamping: count)
    frame.pointer.pointee.sample_rate = Int32(clamping: sampleRate)
    frame.pointer.pointee.format = format.rawValue
    av_channel_layout_default(&frame.pointer.pointee.ch_layout, Int32(clamping: channels.count))
    try CallFailure.check(av_frame_get_buffer(frame.pointer, 0), "allocate", "a block of sound")
    func write<T>(_ type: T.Type, isInterleaved: Bool, _ convert: (Float) -> T) {
      for (channel, samples) in channels.enumerated() {
        guard let plane = frame.pointer.pointee.extended_data[isInterleaved ? 0 : channel] else {
          continue
        }
        let target = UnsafeMutableRawPointer(plane).assumingMemoryBound(to: T.self)
        for (index, sample) in samples.prefix(count).enumerated() {
          target[isInterleaved ? index * channels.count + channel : index] = convert(sample)
        }
      }
    }
    // This conversion is the inverse of the one in `samples()`. A sample within full scale is
    // unchanged by both conversions.
    func integer(_ sample: Float) -> Int16 {
      Int16(max(-32_768, min(32_767, (sample.isNaN ? 0 : sample * 32_768).rounded())))
    }
    func longInteger(_ sample: Float) -> Int32 {
      let scaled = sample.isNaN ? 0 : Double(sample) * 2_147_483_648
      return Int32(max(-2_147_483_648, min(2_147_483_647, scaled.rounded())))
    }
    switch format {
    case AV_SAMPLE_FMT_FLTP: write(Float.self, isInterleaved: false) { $0 }
    case AV_SAMPLE_FMT_FLT: write(Float.self, isInterleaved: true) { $0 }
    case AV_SAMPLE_FMT_S16P: write(Int16.self, isInterleaved: false, integer)
    case AV_SAMPLE_FMT_S16: write(Int16.self, isInterleaved: true, integer)
    case AV_SAMPLE_FMT_S32P: write(Int32.self, isInterleaved: false, longInteger)
    case AV_SAMPLE_FMT_S32: write(Int32.self, isInterleaved: true, longInteger)
    default:
      throw CallFailure("write", "audio in this sample format", code: CFFmpeg_EINVAL)
    }
    return frame
  }

  /// A pointer to the first byte of a plane.
  ///
  /// Nil if the frame has no such plane.
  package func planeData(_ plane: Int) -> UnsafeMutablePointer<UInt8>? {
    withUnsafePointer(to: &pointer.pointee.data) {
      $0.withMemoryRebound(to: UnsafeMutablePointer<UInt8>?.self, capacity: 8) { $0[plane] }
    }
  }

  /// The size of the frame's buffers in bytes.
  ///
  /// A buffer that several frames share is counted for each of them.
  package var byteCount: Int {
    withUnsafePointer(to: &pointer.pointee.buf) {
      $0.withMemoryRebound(to: UnsafeMutablePointer<AVBufferRef>?.self, capacity: 8) { buffers in
        (0..<8).reduce(0) { $0 + Int(buffers[$1]?.pointee.size ?? 0) }
      }
    }
  }

  /// The stride of a plane in bytes.
  package func bytesPerRow(_ plane: Int) -> Int {
    withUnsafePointer(to: &pointer.pointee.linesize) {
      $0.withMemoryRebound(to: Int32.self, capacity: 8) { Int($0[plane]) }
    }
  }

  /// Returns the samples of each channel as floats, nominally from -1 to 1.
  ///
  /// Floats of 32 and 64 bits and integers of 8, 16 and 32 bits are supported, both planar and
  /// interleaved. Nil for other formats.
  package func samples() -> [[Float]]? {
    let count = sampleCount
    let channels = channelCount
    guard let data = pointer.pointee.extended_data else { return nil }
    func read<T>(_ type: T.Type, interleaved: Bool, _ scale: (T) -> Float) -> [[Float]] {
      (0..<channels).map { channel in
        guard let plane = data[interleaved ? 0 : channel] else { return [] }
        let values = UnsafeRawPointer(plane).assumingMemoryBound(to: T.self)
        return (0..<count).map {
          scale(values[interleaved ? $0 * channels + channel : $0])
        }
      }
    }
    switch AVSampleFormat(pointer.pointee.format) {
    case AV_SAMPLE_FMT_FLTP: return read(Float.self, interleaved: false) { $0 }
    case AV_SAMPLE_FMT_FLT: return read(Float.self, interleaved: true) { $0 }
    case AV_SAMPLE_FMT_S16P: return read(Int16.self, interleaved: false) { Float($0) / 32_768 }
    case AV_SAMPLE_FMT_S16: return read(Int16.self, interleaved: true) { Float($0) / 32_768 }
    case AV_SAMPLE_FMT_U8P: return read(UInt8.self, interleaved: false) { (Float($0) - 128) / 128 }
    case AV_SAMPLE_FMT_U8: return read(UInt8.self, interleaved: true) { (Float($0) - 128) / 128 }
    case AV_SAMPLE_FMT_DBLP: return read(Double.self, interleaved: false) { Float($0) }
    case AV_SAMPLE_FMT_DBL: return read(Double.self, interleaved: true) { Float($0) }
    case AV_SAMPLE_FMT_S32P:
      return read(Int32.self, interleaved: false) { Float($0) / 2_147_483_648 }
    case AV_SAMPLE_FMT_S32:
      return read(Int32.self, interleaved: true) { Float($0) / 2_147_483_648 }
    default: return nil
    }
  }
}

extension MediaFrame {
  /// Returns a copy that shares no memory with this frame.
  ///
  /// - Throws: `CallFailure` with the operation "allocate" or "copy".
  package func copied() throws(CallFailure) -> MediaFrame {
    let result = try MediaFrame.video(width: width, height: height, pixelFormat: pixelFormat)
    try CallFailure.check(
      av_frame_copy(result.pointer, pointer), "copy", "a \(width)x\(height) picture")
    try CallFailure.check(
      av_frame_copy_props(result.pointer, pointer), "copy", "a \(width)x\(height) picture")
    return result
  }

  /// Returns a part of the frame, which shares the frame's memory.
  ///
  /// For the whole frame, returns the frame itself.
  ///
  /// - Throws: `CallFailure` with the operation "crop" if the part is not inside the frame.
  package func cropped(
    x: Int, y: Int, width: Int, height: Int
  ) throws(CallFailure) -> MediaFrame {
    if x == 0, y == 0, width == self.width, height == self.height { return self }
    guard x >= 0, y >= 0, width > 0, height > 0, x + width <= self.width,
      y + height <= self.height
    else { throw CallFailure("crop", "a picture", code: CFFmpeg_EINVAL) }
    let result = try MediaFrame()
    try CallFailure.check(av_frame_ref(result.pointer, pointer), "crop", "a picture")
    result.pointer.pointee.crop_left = x
    result.pointer.pointee.crop_top = y
    result.pointer.pointee.crop_right = self.width - x - width
    result.pointer.pointee.crop_bottom = self.height - y - height
    let flags = Int32(AV_FRAME_CROP_UNALIGNED)
    try CallFailure.check(av_frame_apply_cropping(result.pointer, flags), "crop", "a picture")
    return result
  }

  /// Returns a rotated copy of the frame.
  ///
  /// Without a rotation, returns the frame itself.
  ///
  /// - Throws: `CallFailure` with the operation "turn" if samples of the format are not whole bytes,
  ///   or if rows and columns are exchanged and chroma is subsampled differently in the two
  ///   directions.
  package func rotated(by rotation: FrameRotation) throws(CallFailure) -> MediaFrame {
    if rotation == .none { return self }
    guard let layout = PixelComponents(pixelFormat),
      !rotation.isTransposed || layout.chromaShift.x == layout.chromaShift.y
    else { throw CallFailure("turn", "a picture", code: CFFmpeg_EINVAL) }
    let result = try MediaFrame.video(
      width: rotation.isTransposed ? height : width, height: rotation.isTransposed ? width : height,
      pixelFormat: pixelFormat)
    for component in layout.components {
      let size = layout.size(of: component, width: result.width, height: result.height)
      guard let from = planeData(component.plane), let to = result.planeData(component.plane)
      else { continue }
      let (stride, step) = (bytesPerRow(component.plane), component.step)
      for y in 0..<size.height {
        let row = rotation.flipsY ? size.height - 1 - y : y
        // In the source plane, the byte offset of the first output column, and the byte distance to
        // the next one.
        let along = rotation.isTransposed ? stride : step
        let start = (rotation.isTransposed ? row * step : row * stride) + component.offset
        let first = rotation.flipsX ? start + (size.width - 1) * along : start
        let stepIn = rotation.flipsX ? -along : along
        let output = to + y * result.bytesPerRow(component.plane) + component.offset
        if layout.bytesPerSample == 1 {
          for x in 0..<size.width { output[x * step] = from[first + x * stepIn] }
        } else {
          for x in 0..<size.width {
            output[x * step] = from[first + x * stepIn]
            output[x * step + 1] = from[first + x * stepIn + 1]
          }
        }
      }
    }
    return result
  }
}

extension MediaFrame {
  /// The matrix for the conversion between YUV and RGB.
  package enum Matrix: Hashable, Sendable {
    case bt601, bt709, other

    /// The matrix of a track's frames: that of its tag, or what players assume.
    package init(of parameters: CodecParameters) {
      let space = parameters.pointer.pointee.color_space
      let isHigh = Self.isHighDefinition(parameters.width, parameters.height)
      self = space == AVCOL_SPC_UNSPECIFIED && isHigh ? .bt709 : Self(space)
    }

    fileprivate init(_ space: AVColorSpace) {
      switch space {
      case AVCOL_SPC_UNSPECIFIED, AVCOL_SPC_BT470BG, AVCOL_SPC_SMPTE170M: self = .bt601
      case AVCOL_SPC_BT709: self = .bt709
      default: self = .other
      }
    }

    /// Players assume BT.709 for frames of at least 1280 columns or 577 rows (mpv,
    /// `mp_csp_guess_colorspace`).
    fileprivate static func isHighDefinition(_ width: Int, _ height: Int) -> Bool {
      width >= 1280 || height > 576
    }
  }

  /// Tags a YUV frame above standard definition as BT.709 if the frame has no matrix tag.
  ///
  func guessMatrix() {
    guard colorSpace == AVCOL_SPC_UNSPECIFIED, Matrix.isHighDefinition(width, height),
      !pixelFormat.isRGB, !pixelFormat.isGray
    else { return }
    pointer.pointee.colorspace = AVCOL_SPC_BT709
  }

  /// The YUV matrix that the frame's tag states; BT.601 for an untagged frame, as in ``Scaler``.
  package var matrix: Matrix { Matrix(colorSpace) }
}

extension MediaFrame {
  /// Encodes the frame as a PNG file.
  ///
  /// The pixel format must be `rgb24`.
  ///
  /// - Parameter source: The frame that was converted to this one. If it is PQ or HLG, the chunk `cICP`
  ///   says so (PNG, third edition, 11.3.2.6). libavcodec 59 does not write that chunk.
  /// - Returns: The bytes of the file.
  /// - Throws: `CallFailure` if the encoder is missing or rejects the frame.
  package func pngBytes(convertedFrom source: MediaFrame? = nil) throws(CallFailure) -> [UInt8] {
    var settings = Encoder.VideoSettings(
      codec: "png", width: width, height: height, pixelFormat: .rgb24, timescale: 1)
    var bytes = try stillBytes(&settings)
    guard let color = source?.pointer.pointee, color.color_trc.isHighDynamicRange else {
      return bytes
    }
    // RGB has no matrix, and is converted to full range.
    let chunk =
      Array("cICP".utf8) + [
        UInt8(truncatingIfNeeded: color.color_primaries.rawValue),
        UInt8(truncatingIfNeeded: color.color_trc.rawValue), 0, 1,
      ]
    let sum = ~av_crc(av_crc_get_table(AV_CRC_32_IEEE_LE), ~0, chunk, chunk.count)
    // The signature and the header chunk have a fixed length.
    bytes.insert(
      contentsOf: [0, 0, 0, 4] + chunk + withUnsafeBytes(of: sum.bigEndian) { Array($0) }, at: 33)
    return bytes
  }

  /// Encodes the frame as a single image.
  private func stillBytes(_ settings: inout Encoder.VideoSettings) throws(CallFailure) -> [UInt8] {
    // The encoders of images use one thread for each frame, so more threads would not encode a
    // single frame faster.
    settings.threadCount = 1
    var encoder = try Encoder(video: settings)
    try encoder.send(self)
    try encoder.send(nil)
    guard let packet = try encoder.nextPacket() else {
      throw CallFailure("encode", "an image as \(settings.codec)", code: -22)
    }
    return packet.withBytes { [UInt8]($0) }
  }

  /// Encodes the frame as a JPEG file.
  ///
  /// The pixel format must be a full-range format of JPEG, such as `yuvj420p`.
  ///
  /// - Parameter quantizer: The quantizer, from 2 (best) to 31.
  /// - Returns: The bytes of the file.
  /// - Throws: `CallFailure` if the encoder is missing or rejects the frame.
  package func jpegBytes(quantizer: Int) throws(CallFailure) -> [UInt8] {
    var settings = Encoder.VideoSettings(
      codec: "mjpeg", width: width, height: height, pixelFormat: pixelFormat, timescale: 1)
    settings.isFullRange = true
    settings.quantizer = quantizer
    return try stillBytes(&settings)
  }
}
