// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
package import OvercrankMediaCore

/// The current format of a driver, which may differ from the requested one.
package struct StreamFormat: Hashable, Sendable {
  package let fourcc: UInt32
  /// The frame width in pixels.
  package let width: UInt32
  /// The frame height in lines.
  package let height: UInt32
  /// The memory planes of a frame, in order.
  ///
  /// Most formats have one memory plane, which holds all color planes.
  package let planes: [Plane]
  /// Whether frames are progressive rather than interlaced fields.
  package let isProgressive: Bool
  /// The matrix of YUV pixels.
  package let encoding: Encoding

  /// The matrix that converts the RGB of a camera to YUV (`v4l2_ycbcr_encoding`).
  package enum Encoding: Hashable, Sendable {
    /// That of BT.601, which sYCC and JPEG have as well.
    case bt601
    /// That of BT.709.
    case bt709
    /// Another one, such as that of BT.2020.
    case other

    /// The matrix that a driver states; by default, that of its color space
    /// (`V4L2_MAP_YCBCR_ENC_DEFAULT`).
    init(_ stated: UInt32, colorSpace: UInt32) {
      switch v4l2_ycbcr_encoding(stated) {
      case V4L2_YCBCR_ENC_DEFAULT:
        switch v4l2_colorspace(colorSpace) {
        case V4L2_COLORSPACE_REC709, V4L2_COLORSPACE_DCI_P3: self = .bt709
        case V4L2_COLORSPACE_BT2020, V4L2_COLORSPACE_SMPTE240M: self = .other
        default: self = .bt601
        }
      case V4L2_YCBCR_ENC_601, V4L2_YCBCR_ENC_XV601, V4L2_YCBCR_ENC_SYCC: self = .bt601
      case V4L2_YCBCR_ENC_709, V4L2_YCBCR_ENC_XV709: self = .bt709
      default: self = .other
      }
    }
  }

  /// One memory plane of a frame.
  package struct Plane: Hashable, Sendable {
    /// Bytes per line, including padding.
    ///
    /// 0 for compressed formats.
    package let bytesPerLine: UInt32
    /// The maximum number of bytes of a frame in this plane.
    package let byteCount: UInt32
  }

  /// Bytes per line of the first plane.
  ///
  /// 0 for compressed formats.
  package var bytesPerLine: UInt32 { planes.first?.bytesPerLine ?? 0 }
  /// The maximum number of bytes of a frame, over all planes.
  package var bytesPerFrame: UInt32 {
    UInt32(clamping: planes.reduce(0 as UInt64) { $0 + UInt64($1.byteCount) })
  }

  init(_ pixels: v4l2_pix_format) {
    fourcc = pixels.pixelformat
    width = pixels.width
    height = pixels.height
    planes = [Plane(bytesPerLine: pixels.bytesperline, byteCount: pixels.sizeimage)]
    isProgressive = pixels.field == V4L2_FIELD_NONE.rawValue
    encoding = Encoding(pixels.ycbcr_enc, colorSpace: pixels.colorspace)
  }

  init(_ pixels: v4l2_pix_format_mplane) {
    fourcc = pixels.pixelformat
    width = pixels.width
    height = pixels.height
    planes = withUnsafeBytes(of: pixels.plane_fmt) { bytes in
      bytes.bindMemory(to: v4l2_plane_pix_format.self).prefix(Int(pixels.num_planes)).map {
        Plane(bytesPerLine: $0.bytesperline, byteCount: $0.sizeimage)
      }
    }
    isProgressive = pixels.field == V4L2_FIELD_NONE.rawValue
    encoding = Encoding(UInt32(pixels.ycbcr_enc), colorSpace: pixels.colorspace)
  }
}

extension VideoDevice {
  /// Reads the current format: `VIDIOC_G_FMT`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.readFormat`.
  package borrowing func currentFormat() throws(CallFailure) -> StreamFormat {
    var format = v4l2_format()
    format.type = bufferType
    try CallFailure.check(control(CVideo4Linux_VIDIOC_G_FMT, &format), .readFormat, path)
    return streamFormat(format)
  }

  /// Requests a progressive format and returns the granted one: `VIDIOC_S_FMT`.
  ///
  /// Set the frame duration after this call, because many drivers reset it when the format is set.
  ///
  /// - Returns: The granted format. Compare it with the request: the driver selects the nearest
  ///   supported format, and a difference is not an error.
  /// - Throws: ``CallFailure`` with the operation `.setFormat`. The kind is `.busy` while another
  ///   program streams.
  package mutating func setFormat(
    fourcc: UInt32, width: UInt32, height: UInt32
  ) throws(CallFailure) -> StreamFormat {
    var format = v4l2_format()
    format.type = bufferType
    switch capabilities.bufferKind {
    case .singlePlanar:
      format.fmt.pix.pixelformat = fourcc
      format.fmt.pix.width = width
      format.fmt.pix.height = height
      format.fmt.pix.field = V4L2_FIELD_NONE.rawValue
    case .multiPlanar:
      format.fmt.pix_mp.pixelformat = fourcc
      format.fmt.pix_mp.width = width
      format.fmt.pix_mp.height = height
      format.fmt.pix_mp.field = V4L2_FIELD_NONE.rawValue
    }
    try CallFailure.check(control(CVideo4Linux_VIDIOC_S_FMT, &format), .setFormat, path)
    return streamFormat(format)
  }

  /// Whether another program streams from the device: `VIDIOC_S_FMT` of the current format, which
  /// a driver rejects while buffers are in use.
  ///
  /// - Throws: ``CallFailure`` with the operation `.readFormat` or `.setFormat`.
  package mutating func isStreamingElsewhere() throws(CallFailure) -> Bool {
    var format = v4l2_format()
    format.type = bufferType
    try CallFailure.check(control(CVideo4Linux_VIDIOC_G_FMT, &format), .readFormat, path)
    do throws(CallFailure) {
      try CallFailure.check(control(CVideo4Linux_VIDIOC_S_FMT, &format), .setFormat, path)
      return false
    } catch {
      guard error.kind == .busy else { throw error }
      return true
    }
  }

  private borrowing func streamFormat(_ format: v4l2_format) -> StreamFormat {
    switch capabilities.bufferKind {
    case .singlePlanar: StreamFormat(format.fmt.pix)
    case .multiPlanar: StreamFormat(format.fmt.pix_mp)
    }
  }

  /// Reads the current frame duration in seconds: `VIDIOC_G_PARM`.
  ///
  /// - Returns: The duration, or nil if the driver reports none or an invalid one.
  /// - Throws: ``CallFailure`` with the operation `.readFrameDuration`.
  package borrowing func frameDuration() throws(CallFailure) -> MediaTime? {
    let parameters = try streamParameters(.readFrameDuration)
    return MediaTime(parameters.parm.capture.timeperframe)
  }

  /// Requests a frame duration and returns the granted one: `VIDIOC_S_PARM`.
  ///
  /// - Parameter duration: The duration of a frame in seconds, above zero. 1/240 requests 240 fps.
  /// - Returns: The granted duration in seconds. Compare it with the request: the driver rounds to
  ///   a supported value, and a difference is not an error.
  /// - Throws: ``CallFailure`` with the operation `.setFrameDuration`. The kind is `.busy` while
  ///   the device streams. The code is `ENOTSUP` if the driver has no frame duration, and `EINVAL`
  ///   if the fraction does not fit 32 bits.
  package borrowing func setFrameDuration(
    _ duration: MediaTime
  ) throws(CallFailure) -> MediaTime {
    precondition(duration > .zero, "A frame duration is above zero seconds.")
    let seconds = duration.seconds
    guard let numerator = UInt32(exactly: seconds.numerator),
      let denominator = UInt32(exactly: seconds.denominator)
    else { throw CallFailure(.setFrameDuration, path, code: EINVAL) }
    var parameters = try streamParameters(.setFrameDuration)
    guard parameters.parm.capture.capability & UInt32(V4L2_CAP_TIMEPERFRAME) != 0 else {
      throw CallFailure(.setFrameDuration, path, code: ENOTSUP)
    }
    parameters.parm.capture.timeperframe = v4l2_fract(
      numerator: numerator, denominator: denominator)
    try CallFailure.check(
      control(CVideo4Linux_VIDIOC_S_PARM, &parameters), .setFrameDuration, path)
    // The fraction comes from the driver and may be invalid.
    guard let granted = MediaTime(parameters.parm.capture.timeperframe) else {
      throw CallFailure(.setFrameDuration, path, code: ENOTSUP)
    }
    return granted
  }

  private borrowing func streamParameters(
    _ operation: VideoOperation
  ) throws(CallFailure) -> v4l2_streamparm {
    var parameters = v4l2_streamparm()
    parameters.type = bufferType
    try CallFailure.check(control(CVideo4Linux_VIDIOC_G_PARM, &parameters), operation, path)
    return parameters
  }
}

extension MediaTime {
  /// Creates a time from a driver's fraction of a second, or returns nil if the fraction is zero or
  /// invalid.
  fileprivate init?(_ fraction: v4l2_fract) {
    guard fraction.numerator > 0, fraction.denominator > 0,
      let seconds = Rational(
        Int128(fraction.numerator), over: Int128(fraction.denominator)
      ).ifValid,
      let time = try? MediaTime(seconds)
    else { return nil }
    self = time
  }
}
