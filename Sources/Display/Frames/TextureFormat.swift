// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// The pixel layout in which a video frame is uploaded to the renderer.
enum TextureFormat: Hashable, Sendable {
  /// A conversion from YUV to RGB that the renderer supports.
  enum Conversion: Hashable, Sendable { case bt601, bt709, fullRange601 }

  /// A plane each of luma, blue chroma and red chroma, 4:2:0.
  case planar(Conversion)
  /// A plane of luma and a plane of interleaved chroma, 4:2:0.
  case biplanar(Conversion)
  /// YUYV, 4:2:2.
  case packed(Conversion)
  /// Blue, green, red and alpha; other formats are converted to this one before the upload.
  case bgra

  /// Selects the layout by the frame's pixel format and color tags.
  ///
  /// If the renderer cannot convert the frame's pixel format, color matrix or range, the layout is
  /// ``bgra``.
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
