// SPDX-License-Identifier: Apache-2.0

package import CFFmpeg

/// Describes where a pixel format stores the samples of each color component, for direct access to
/// pixels.
///
/// The initializer returns nil for unsupported formats. Samples must be integers of one or two
/// bytes in native byte order, with the same depth in every component. They must not be palette
/// indices, a Bayer mosaic or packed bits.
package struct PixelComponents: Sendable {
  /// One color component of a format.
  ///
  /// The components are Y, U, V and alpha, or red, green, blue and alpha, or gray.
  package struct Component: Hashable, Sendable {
    package let plane: Int
    /// The offset of the first sample in a row, in bytes.
    ///
    /// `step` is the distance to the next sample, in bytes.
    package let offset: Int
    package let step: Int
    /// Whether the component has fewer columns or fewer rows than the frame.
    package let isSubsampled: Bool
  }

  package let components: [Component]
  /// The number of significant bits per sample.
  ///
  /// The remaining bits of a sample are zero.
  package let depth: Int
  /// The chroma subsampling as exponents of two.
  ///
  /// For example, 1 halves the number of columns or rows.
  package let chromaShift: (x: Int, y: Int)
  /// Whether the first three components are red, green and blue.
  package let isRGB: Bool
  package let hasAlpha: Bool

  /// The number of bytes per sample: 1 for up to 8 bits, otherwise 2.
  package var bytesPerSample: Int { depth > 8 ? 2 : 1 }

  package init?(_ format: LibAVPixelFormat) {
    guard let description = av_pix_fmt_desc_get(format)?.pointee else { return nil }
    let flags = description.flags
    let refused =
      UInt64(AV_PIX_FMT_FLAG_BITSTREAM) | UInt64(AV_PIX_FMT_FLAG_PAL)
      | UInt64(AV_PIX_FMT_FLAG_FLOAT) | UInt64(AV_PIX_FMT_FLAG_BAYER)
      | UInt64(AV_PIX_FMT_FLAG_HWACCEL)
    let list = [
      description.comp.0, description.comp.1, description.comp.2, description.comp.3,
    ].prefix(Int(description.nb_components))
    let depth = Int(description.comp.0.depth)
    guard flags & refused == 0, depth <= 16, !list.isEmpty,
      list.allSatisfy({ Int($0.depth) == depth && $0.shift == 0 }),
      depth <= 8 || flags & UInt64(AV_PIX_FMT_FLAG_BE) == 0
    else { return nil }
    isRGB = flags & UInt64(AV_PIX_FMT_FLAG_RGB) != 0
    hasAlpha = flags & UInt64(AV_PIX_FMT_FLAG_ALPHA) != 0
    self.depth = depth
    let shift = (x: Int(description.log2_chroma_w), y: Int(description.log2_chroma_h))
    chromaShift = shift
    components = list.enumerated().map { number, item in
      Component(
        plane: Int(item.plane), offset: Int(item.offset), step: Int(item.step),
        isSubsampled: (number == 1 || number == 2) && (shift.x > 0 || shift.y > 0))
    }
  }

  /// The sample value of black in luma, or in red, green and blue, not rounded.
  package func black(isFullRange: Bool) -> Double {
    isFullRange || isRGB ? 0 : Double(1 << depth) / 16
  }

  /// The sample value of the chroma components for gray.
  package var colorlessChroma: Double { Double(1 << (depth - 1)) }

  /// The number of columns and rows of a component, given the size of the frame.
  package func size(of component: Component, width: Int, height: Int) -> (width: Int, height: Int) {
    guard component.isSubsampled else { return (width, height) }
    return (
      (width + (1 << chromaShift.x) - 1) >> chromaShift.x,
      (height + (1 << chromaShift.y) - 1) >> chromaShift.y
    )
  }
}

extension AVPixelFormat {
  /// The number of bits per luma sample; 8 if unknown.
  package var depth: Int {
    av_pix_fmt_desc_get(self).map { Int($0.pointee.comp.0.depth) } ?? 8
  }

  /// A format in which frames can be rotated by 90°.
  ///
  /// If chroma is subsampled differently in the two directions, as in 4:2:2, this is the 4:4:4
  /// format of the same depth. Otherwise this is the format itself.
  package var withEvenChroma: AVPixelFormat {
    guard let components = PixelComponents(self),
      components.chromaShift.x != components.chromaShift.y
    else { return self }
    let planes = hasAlpha ? "yuva444p" : isFullRange ? "yuvj444p" : "yuv444p"
    let name = components.depth == 8 ? planes : "\(planes)\(components.depth)le"
    return AVPixelFormat(named: name) ?? self
  }
}
