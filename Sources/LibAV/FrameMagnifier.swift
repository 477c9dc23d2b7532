// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// Crops frames around their center and converts the crop to one size and pixel format.
///
/// A source can be cropped only at whole pixels, and with subsampled chroma only at pairs of
/// pixels. In a narrow crop, this would be an error of several percent. The source is therefore
/// cropped slightly too large, and the excess is removed after scaling. The errors of the zoom
/// factor and of the center are then at most half a pixel of the result.
package struct FrameMagnifier: ~Copyable {
  /// The format, range and size to which the crop is scaled.
  private struct Target: Equatable {
    let format: LibAVPixelFormat
    let isFullRange: Bool
    let width: Int
    let height: Int
  }

  private var scaler: FrameConverter?
  private var target: Target?
  /// The conversion from planes to a packed format with subsampled chroma.
  ///
  /// `packedFormat` is that format.
  private var packer: FrameConverter?
  private var packedFormat: LibAVPixelFormat?
  private let quality: ConversionQuality

  package init(quality: ConversionQuality = .exact) { self.quality = quality }

  /// The crop in one direction, horizontal or vertical.
  struct Axis: Equatable {
    /// The range of source pixels that is scaled.
    let source: Range<Int>
    /// The length in pixels to which the range of source pixels is scaled.
    let scaledLength: Int
    /// The index of the first scaled pixel that belongs to the result.
    let offset: Int

    /// Computes the crop in one direction.
    ///
    /// - Parameters:
    ///   - length: The length of the source in pixels.
    ///   - factor: The zoom factor, at least 1.
    ///   - target: The length of the result in pixels.
    ///   - step: The number of source pixels in a group that a crop must not divide.
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

  /// Returns the center of a frame, scaled to a size and converted to a pixel format.
  ///
  /// - Parameters:
  ///   - frame: The frame.
  ///   - factor: The zoom factor. Width and height of the crop are those of the frame divided by
  ///     this factor.
  ///   - target: The pixel format of the result.
  ///   - isFullRange: Whether the result has full range.
  ///   - width: The width of the result in pixels.
  ///   - height: The height of the result in pixels.
  /// - Returns: The result, which may share memory with a larger image.
  /// - Throws: `CallFailure` with the operation "convert" or "crop".
  package mutating func magnify(
    _ frame: MediaFrame, by factor: Double, to target: LibAVPixelFormat, isFullRange: Bool,
    width: Int, height: Int
  ) throws(CallFailure) -> MediaFrame {
    // The scaled image is cut at any pixel, so its chroma may be shifted by at most half a sample.
    // In a packed format with subsampled chroma, the two chroma components could be exchanged, so a
    // planar format is cut instead.
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
  /// The number of columns and rows in a group of pixels that a crop must not divide.
  ///
  /// Such pixels share a chroma sample or, in a Bayer mosaic, form one cell of the mosaic.
  fileprivate var chromaSteps: (x: Int, y: Int) {
    guard let components = PixelComponents(self) else { return (2, 2) }
    return (1 << components.chromaShift.x, 1 << components.chromaShift.y)
  }

  /// This format, or a planar format if frames of this format cannot be cut at any pixel.
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

  /// This format, or a similar one if frames of this format do not support `rotation`.
  package func rotatable(by rotation: FrameRotation) -> LibAVPixelFormat {
    guard rotation != .none else { return self }
    if PixelComponents(self) != nil { return rotation.isTransposed ? withEvenChroma : self }
    if isRGB || isBayer { return .rgb24 }
    return LibAVPixelFormat(named: isFullRange ? "yuvj444p" : "yuv444p") ?? .rgb24
  }
}
