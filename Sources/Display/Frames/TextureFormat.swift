// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// The form in which the pixels of a frame are given to the renderer.
enum TextureFormat: Hashable, Sendable {
  /// A conversion from YUV to RGB that the renderer has.
  enum Conversion: Hashable, Sendable { case bt601, bt709, fullRange601 }

  /// Three planes, 4:2:0.
  case planar(Conversion)
  /// Luma, and interleaved chroma, 4:2:0.
  case biplanar(Conversion)
  /// YUYV, 4:2:2.
  case packed(Conversion)
  /// Blue, green, red and alpha, converted before.
  case bgra

  /// Chooses the form by the frame's pixel format and color tags.
  ///
  /// Frames in a format, a matrix or a range that the renderer does not convert become RGB before.
  init(_ frame: MediaFrame) {
    let conversion: Conversion? =
      switch (frame.matrix, frame.isFullRange) {
      case (.bt601, false): .bt601
      case (.bt709, false): .bt709
      case (.bt601, true): .fullRange601
      default: nil
      }
    guard let conversion else {
      self = .bgra
      return
    }
    self =
      switch frame.pixelFormat {
      case .yuv420p, .yuvj420p: .planar(conversion)
      case .nv12: .biplanar(conversion)
      case .yuyv422: .packed(conversion)
      default: .bgra
      }
  }
}
