// SPDX-License-Identifier: Apache-2.0

/// Crops frames around their center and converts the crop to one size and pixel format.
///
/// libswscale crops whole pixels of the source, and those of chroma in pairs, which are several
/// percent of a narrow crop. The crop is therefore made a little too large, and what exceeds it is
/// cut off after scaling. The factor then has an error of at most half a pixel of the result, and so
/// has the center.
package struct FrameMagnifier: ~Copyable {
  /// The format and size that the crop is scaled to.
  private struct Target: Equatable {
    let format: LibAVPixelFormat
    let isFullRange: Bool
    let width: Int
    let height: Int
  }

  private var scaler: FrameConverter?
  private var target: Target?
  /// The conversion of planes to packed rows with subsampled chroma, and their format.
  private var packer: FrameConverter?
  private var packedFormat: LibAVPixelFormat?
  private let quality: ConversionQuality

  package init(quality: ConversionQuality = .exact) { self.quality = quality }

  /// One direction of a crop.
  struct Axis: Equatable {
    /// The range of pixels of the source.
    let source: Range<Int>
    /// The length to which the range is scaled.
    let scaledLength: Int
    /// The first pixel of the scaled range that belongs to the result.
    let offset: Int

    /// Plans the crop of one direction.
    ///
    /// - Parameters:
    ///   - length: The length of the source in pixels.
    ///   - factor: The zoom factor, at least 1.
    ///   - target: The length of the result in pixels.
    ///   - step: The number of pixels that a crop of the source must not divide.
    init(_ length: Int, factor: Double, to target: Int, step: Int) {
      let wanted = Double(length) / factor
      let start = (Double(length) - wanted) / 2
      let step = Double(step)
      // The tolerance keeps rounding errors from adding a pixel on each side.
      let first = Int(((start + 1e-6) / step).rounded(.down) * step)
      let end = min(length, Int(((start + wanted - 1e-6) / step).rounded(.up) * step))
      source = first..<max(first + 1, end)
      let scale = Double(target) / wanted
      scaledLength = max(target, Int((Double(source.count) * scale).rounded()))
      offset = (scaledLength - target) / 2
    }
  }

  /// Returns the middle of a frame, scaled to a size in a pixel format.
  ///
  /// - Parameters:
  ///   - frame: The frame.
  ///   - factor: The zoom factor. The crop has the frame's width and height divided by it.
  ///   - target: The pixel format of the result.
  ///   - isFullRange: Whether the result has full range.
  ///   - width: The width of the result in pixels.
  ///   - height: The height of the result in pixels.
  /// - Returns: The result, which may share memory with a larger image.
  /// - Throws: `LibAVError` with the operation "convert" or "crop".
  package mutating func magnify(
    _ frame: MediaFrame, by factor: Double, to target: LibAVPixelFormat, isFullRange: Bool,
    width: Int, height: Int
  ) throws(LibAVError) -> MediaFrame {
    // The result is cut at any pixel, and chroma with it at most half a sample beside. In packed rows,
    // it would change places.
    let planar = target.croppable
    let step = frame.pixelFormat.chromaSteps
    let x = Axis(frame.width, factor: factor, to: width, step: step.x)
    let y = Axis(frame.height, factor: factor, to: height, step: step.y)
    let crop = try frame.cropped(
      x: x.source.lowerBound, y: y.source.lowerBound, width: x.source.count,
      height: y.source.count)
    let next = Target(
      format: planar, isFullRange: isFullRange, width: x.scaledLength, height: y.scaledLength)
    if next != self.target {
      scaler = FrameConverter(
        to: planar, isFullRange: isFullRange, width: x.scaledLength, height: y.scaledLength,
        quality: quality)
      self.target = next
    }
    let scaled = try scaler?.convert(crop) ?? crop
    let result = try scaled.cropped(x: x.offset, y: y.offset, width: width, height: height)
    if planar == target { return result }
    if packedFormat != target {
      packer = FrameConverter(to: target, isFullRange: isFullRange, quality: quality)
      packedFormat = target
    }
    return try packer?.convert(result) ?? result
  }
}

extension LibAVPixelFormat {
  /// The number of columns and rows that a crop must not divide.
  ///
  /// They share a chroma sample or, in a Bayer mosaic, form its cell.
  fileprivate var chromaSteps: (x: Int, y: Int) {
    guard let components = PixelComponents(self) else { return (2, 2) }
    return (1 << components.chromaShift.x, 1 << components.chromaShift.y)
  }

  /// The format itself, or one of planes if its packed rows cannot be cut at any pixel.
  fileprivate var croppable: LibAVPixelFormat {
    if isRGB { return self }
    if let layout = PixelComponents(self), let luma = layout.components.first,
      layout.chromaShift == (0, 0)
        || !layout.components.dropFirst().contains(where: { $0.plane == luma.plane })
    {
      return self
    }
    return LibAVPixelFormat(named: isFullRange ? "yuvj422p" : "yuv422p") ?? .rgb24
  }

  /// A format of the same kind in which frames can be rotated, or the format itself if it can be.
  package func rotatable(by rotation: FrameRotation) -> LibAVPixelFormat {
    guard rotation != .none else { return self }
    if PixelComponents(self) != nil { return rotation.isTransposed ? withEvenChroma : self }
    if isRGB || isBayer { return .rgb24 }
    return LibAVPixelFormat(named: isFullRange ? "yuvj444p" : "yuv444p") ?? .rgb24
  }
}
