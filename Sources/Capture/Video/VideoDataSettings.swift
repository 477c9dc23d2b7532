// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The pixel format and size of the samples of a data output.
public struct VideoDataSettings: Hashable, Sendable {
  /// The pixel format.
  ///
  /// Nil keeps the camera's format. If compressed frames must be decoded, for example to rotate
  /// them, nil selects ``PixelFormat/yuv420p``.
  public var pixelFormat: PixelFormat?
  /// The width in pixels, after the rotation of the connection.
  ///
  /// Nil keeps the camera's width or, if a height is set, the camera's aspect ratio.
  public var width: Int?
  /// The height in pixels, after the rotation of the connection.
  ///
  /// Nil keeps the camera's height or, if a width is set, the camera's aspect ratio.
  public var height: Int?

  /// Creates settings.
  ///
  /// A value that is nil stays as the camera delivers it.
  public init(pixelFormat: PixelFormat? = nil, width: Int? = nil, height: Int? = nil) {
    (self.pixelFormat, self.width, self.height) = (pixelFormat, width, height)
  }

  /// The width and height to which a frame of the given size is converted.
  func size(ofFrame width: Int, _ height: Int) -> (width: Int, height: Int) {
    func part(_ length: Int, _ numerator: Int, _ denominator: Int) -> Int {
      max(1, Int((Double(length) * Double(numerator) / Double(denominator)).rounded()))
    }
    switch (self.width, self.height) {
    case (let wide?, let high?): return (wide, high)
    case (let wide?, nil): return (wide, part(wide, height, width))
    case (nil, let high?): return (part(high, width, height), high)
    case (nil, nil): return (width, height)
    }
  }
}
