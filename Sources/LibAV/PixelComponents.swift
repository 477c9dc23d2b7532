// SPDX-License-Identifier: Apache-2.0

package import CFFmpeg

/// Where the samples of each component of a picture lie, for those who work on pixels themselves.
///
/// Only formats of whole samples of one or two bytes, in the machine's own order: neither palettes
/// nor packed bits nor floats.
package struct PixelComponents: Sendable {
  /// Brightness, the two colours, alpha; or red, green, blue, alpha; or grey.
  package struct Component: Hashable, Sendable {
    package let plane: Int
    /// Bytes from the start of a row to the first sample, and from one to the next.
    package let offset: Int
    package let step: Int
    /// Whether it has fewer columns and rows than the picture.
    package let isSubsampled: Bool
  }

  package let components: [Component]
  /// Bits of a sample that count; its other bits are zero.
  package let depth: Int
  /// How many times, as a power of two, colour has fewer columns and rows than brightness.
  package let chromaShift: (x: Int, y: Int)
  /// Whether the first three components are red, green and blue.
  package let isRGB: Bool
  package let hasAlpha: Bool

  /// One for samples of up to 8 bits, two for longer ones.
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

  /// The columns and rows of a component in a picture of some size.
  package func size(of component: Component, width: Int, height: Int) -> (width: Int, height: Int) {
    guard component.isSubsampled else { return (width, height) }
    return (
      (width + (1 << chromaShift.x) - 1) >> chromaShift.x,
      (height + (1 << chromaShift.y) - 1) >> chromaShift.y
    )
  }
}

extension AVPixelFormat {
  /// Bits of each sample of brightness; 8 where it cannot be said.
  package var depth: Int {
    av_pix_fmt_desc_get(self).map { Int($0.pointee.comp.0.depth) } ?? 8
  }

  /// The format of the same kind and depth whose colour is as fine as its brightness; itself where
  /// colour is as coarse in both directions.
  package var withEvenChroma: AVPixelFormat {
    guard let components = PixelComponents(self),
      components.chromaShift.x != components.chromaShift.y
    else { return self }
    let name =
      switch components.depth {
      case 8: isFullRange ? "yuvj444p" : "yuv444p"
      case let depth: "yuv444p\(depth)le"
      }
    return AVPixelFormat(named: name) ?? self
  }
}
