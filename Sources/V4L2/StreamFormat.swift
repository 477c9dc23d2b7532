// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
package import OvercrankMediaCore

/// The format that a driver is set to, which may differ from what it was asked for.
package struct StreamFormat: Hashable, Sendable {
  package let fourcc: UInt32
  /// Pixels per line.
  package let width: UInt32
  /// Lines.
  package let height: UInt32
  /// The planes of memory that a frame lies in, one after the other, from the first.
  ///
  /// All but a few formats have one, which holds every plane of the picture.
  package let planes: [Plane]
  /// Whether every frame is a whole picture and not one of its interlaced fields.
  package let isProgressive: Bool

  /// One of the pieces of memory that make up a frame.
  package struct Plane: Hashable, Sendable {
    /// Bytes from one line to the next, padding included; 0 for compressed formats.
    package let bytesPerLine: UInt32
    /// The most bytes that a frame takes here.
    package let byteCount: UInt32
  }

  /// Bytes from one line of the first plane to the next; 0 for compressed formats.
  package var bytesPerLine: UInt32 { planes.first?.bytesPerLine ?? 0 }
  /// The most bytes that a frame takes, in all its planes.
  package var bytesPerFrame: UInt32 {
    UInt32(clamping: planes.reduce(0 as UInt64) { $0 + UInt64($1.byteCount) })
  }

  init(_ pixels: v4l2_pix_format) {
    fourcc = pixels.pixelformat
    width = pixels.width
    height = pixels.height
    planes = [Plane(bytesPerLine: pixels.bytesperline, byteCount: pixels.sizeimage)]
    isProgressive = pixels.field == V4L2_FIELD_NONE.rawValue
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
  }
}

extension VideoDevice {
  /// Reads the format in force: `VIDIOC_G_FMT`.
  ///
  /// - Throws: ``DeviceError`` for `.readFormat`.
  package borrowing func currentFormat() throws(DeviceError) -> StreamFormat {
    var format = v4l2_format()
    format.type = bufferType
    try DeviceError.check(control(CVideo4Linux_VIDIOC_G_FMT, &format), .readFormat, path)
    return streamFormat(format)
  }

  /// Asks for a format of whole pictures, and returns what the driver granted: `VIDIOC_S_FMT`.
  ///
  /// Set the frame duration afterwards: many drivers reset it here.
  ///
  /// - Returns: The format now in force. Compare it with the request: a driver chooses what it
  ///   supports, and that is not an error.
  /// - Throws: ``DeviceError`` for `.setFormat`: `.busy` while another program streams.
  package mutating func setFormat(
    fourcc: UInt32, width: UInt32, height: UInt32
  ) throws(DeviceError) -> StreamFormat {
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
    try DeviceError.check(control(CVideo4Linux_VIDIOC_S_FMT, &format), .setFormat, path)
    return streamFormat(format)
  }

  private borrowing func streamFormat(_ format: v4l2_format) -> StreamFormat {
    switch capabilities.bufferKind {
    case .singlePlanar: StreamFormat(format.fmt.pix)
    case .multiPlanar: StreamFormat(format.fmt.pix_mp)
    }
  }

  /// Reads the frame duration in force, in seconds: `VIDIOC_G_PARM`.
  ///
  /// - Returns: The duration, or nil where the driver keeps none or one that is no time.
  /// - Throws: ``DeviceError`` for `.readFrameDuration`.
  package borrowing func frameDuration() throws(DeviceError) -> MediaTime? {
    let parameters = try streamParameters(.readFrameDuration)
    return MediaTime(parameters.parm.capture.timeperframe)
  }

  /// Asks for a frame duration, and returns the one the driver granted: `VIDIOC_S_PARM`.
  ///
  /// - Parameter duration: Seconds per frame, above zero; 1/240 asks for 240 fps.
  /// - Returns: The duration now in force, in seconds. Compare it with the request: a driver
  ///   rounds to what it supports, and that is not an error.
  /// - Throws: ``DeviceError`` for `.setFrameDuration`: `.busy` while streaming; `ENOTSUP` when
  ///   the driver keeps no frame duration, `EINVAL` when the fraction does not fit its 32 bits.
  package borrowing func setFrameDuration(
    _ duration: MediaTime
  ) throws(DeviceError) -> MediaTime {
    precondition(duration > .zero, "A frame duration is above zero seconds.")
    let seconds = duration.seconds
    guard let numerator = UInt32(exactly: seconds.numerator),
      let denominator = UInt32(exactly: seconds.denominator)
    else { throw DeviceError(.setFrameDuration, path, code: EINVAL) }
    var parameters = try streamParameters(.setFrameDuration)
    guard parameters.parm.capture.capability & UInt32(V4L2_CAP_TIMEPERFRAME) != 0 else {
      throw DeviceError(.setFrameDuration, path, code: ENOTSUP)
    }
    parameters.parm.capture.timeperframe = v4l2_fract(
      numerator: numerator, denominator: denominator)
    try DeviceError.check(
      control(CVideo4Linux_VIDIOC_S_PARM, &parameters), .setFrameDuration, path)
    // The driver wrote this fraction: doubt it.
    guard let granted = MediaTime(parameters.parm.capture.timeperframe) else {
      throw DeviceError(.setFrameDuration, path, code: ENOTSUP)
    }
    return granted
  }

  private borrowing func streamParameters(
    _ operation: DeviceError.Operation
  ) throws(DeviceError) -> v4l2_streamparm {
    var parameters = v4l2_streamparm()
    parameters.type = bufferType
    try DeviceError.check(control(CVideo4Linux_VIDIOC_G_PARM, &parameters), operation, path)
    return parameters
  }
}

extension MediaTime {
  /// The time that a driver's fraction of a second means, if it is one above zero.
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
